-- Log

-- name: CreateLog :exec
INSERT INTO log (id, epoch, head, horizon, indexed, manifests) VALUES (1, ?, 0, 0, 0, 0) ON CONFLICT DO NOTHING;

-- name: Log :one
SELECT * FROM log;

-- name: SetLog :exec
UPDATE log SET head = ?, horizon = ?, indexed = ?;

-- name: NextManifestVersion :one
UPDATE log SET manifests = manifests + 1 RETURNING manifests;

-- Apps, keys, manifests

-- name: App :one
SELECT * FROM apps WHERE id = ?;

-- name: Apps :many
SELECT * FROM apps ORDER BY n;

-- name: CreateApp :execrows
INSERT INTO apps (id, name, created_at) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING;

-- name: DeleteApp :execrows
DELETE FROM apps WHERE id = ?;

-- name: Key :one
SELECT * FROM keys WHERE id = ?;

-- name: Keys :many
SELECT * FROM keys WHERE app = ? ORDER BY n;

-- name: CreateKey :execrows
INSERT INTO keys (id, app, name, public, created_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING;

-- name: RevokeKey :execrows
UPDATE keys SET revoked_at = CASE revoked_at WHEN 0 THEN @at ELSE revoked_at END WHERE app = @app AND id = @id;

-- name: Manifest :one
SELECT version, body FROM manifests WHERE app = ?;

-- name: ManifestVersion :one
SELECT version FROM manifests WHERE app = ?;

-- name: PutManifest :exec
INSERT INTO manifests (app, version, body) VALUES (?, ?, ?)
ON CONFLICT (app) DO UPDATE SET version = excluded.version, body = excluded.body;

-- Conversations

-- name: Conversation :one
SELECT * FROM conversations WHERE id = ?;

-- name: ConversationOf :one
SELECT * FROM conversations WHERE app = ? AND kind = ? AND user_id = ? AND thread = ? ORDER BY n LIMIT 1;

-- name: PutConversation :exec
INSERT INTO conversations (id, app, harness, client, version, kind, user_id, thread, position, created_at, seen_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET app = excluded.app, harness = excluded.harness, client = excluded.client, version = excluded.version,
    kind = excluded.kind, user_id = excluded.user_id, thread = excluded.thread, created_at = excluded.created_at, seen_at = excluded.seen_at;

-- name: Advance :execrows
UPDATE conversations SET position = @position WHERE id = @id AND position < @position;

-- name: ConversationsSeenBefore :many
SELECT n, id, seen_at, EXISTS (SELECT 1 FROM subscriptions WHERE subscriptions.conversation = conversations.id) AS subscribed
FROM conversations WHERE seen_at < @before AND (seen_at, n) > (@after_seen_at, @after_n) ORDER BY seen_at, n LIMIT @max;

-- name: DeleteConversation :exec
DELETE FROM conversations WHERE id = ?;

-- Subscriptions

-- name: Subscription :one
SELECT * FROM subscriptions WHERE id = ?;

-- name: SubscriptionOf :one
SELECT * FROM subscriptions
WHERE conversation = ? AND until_seq = 0 AND ended_at = 0 AND topic = ? AND event = ? AND arguments IS sqlc.narg(arguments)
ORDER BY n LIMIT 1;

-- name: SubscriptionsOf :many
SELECT * FROM subscriptions WHERE subscriptions.n IN (
    SELECT s.n FROM subscriptions AS s WHERE s.conversation = @conversation AND s.until_seq = 0 AND s.ended_at = 0
    UNION ALL
    SELECT s.n FROM conversations AS c JOIN subscriptions AS s ON s.conversation = c.id
    WHERE c.id = @conversation AND s.until_seq > c.position
) ORDER BY subscriptions.n;

-- name: SubscriptionsEver :many
SELECT * FROM subscriptions WHERE conversation = ? ORDER BY n;

-- name: CountSubscriptions :one
SELECT count(*) FROM subscriptions WHERE conversation = ? AND until_seq = 0 AND ended_at = 0;

-- name: SubscriptionsTo :many
SELECT * FROM subscriptions WHERE app = ? AND topic = ? AND ended_at = 0 ORDER BY n;

-- name: SubscriptionsOfUser :many
SELECT * FROM subscriptions WHERE app = ? AND user_id = ? AND ended_at = 0 ORDER BY n;

-- name: SubscriptionsOfEvent :many
SELECT * FROM subscriptions WHERE app = ? AND event = ? AND ended_at = 0 ORDER BY n;

-- name: SubscriptionsOfApp :many
SELECT * FROM subscriptions WHERE app = ? AND ended_at = 0 ORDER BY n;

-- name: ExpiredSubscriptions :many
SELECT * FROM subscriptions WHERE expires_at <= ? AND ended_at = 0 ORDER BY expires_at, n LIMIT ?;

-- name: PutSubscription :one
INSERT INTO subscriptions (id, app, conversation, user_id, topic, event, arguments, filter, once, claimed,
    from_seq, until_seq, created_at, expires_at, ended_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET app = excluded.app, conversation = excluded.conversation, user_id = excluded.user_id,
    topic = excluded.topic, event = excluded.event, arguments = excluded.arguments, filter = excluded.filter, once = excluded.once,
    claimed = excluded.claimed, from_seq = excluded.from_seq, until_seq = excluded.until_seq, created_at = excluded.created_at,
    expires_at = excluded.expires_at, ended_at = excluded.ended_at
RETURNING n;

-- name: EndSubscription :one
UPDATE subscriptions SET until_seq = ?, ended_at = ? WHERE id = ? AND ended_at = 0 RETURNING app, topic;

-- name: DeleteSubscriptionsEndedBefore :execrows
DELETE FROM subscriptions WHERE n IN
    (SELECT s.n FROM subscriptions AS s WHERE s.ended_at <> 0 AND s.ended_at < @before ORDER BY s.ended_at LIMIT @max);

-- Webhooks and deliveries

-- name: Webhook :one
SELECT * FROM webhooks WHERE id = ?;

-- name: WebhooksTo :many
SELECT * FROM webhooks WHERE app = ? AND topic = ? ORDER BY n;

-- name: WebhooksOfUser :many
SELECT * FROM webhooks WHERE app = ? AND user_id = ? ORDER BY n;

-- name: WebhooksOfEvent :many
SELECT * FROM webhooks WHERE app = ? AND event = ? ORDER BY n;

-- name: WebhooksOfApp :many
SELECT * FROM webhooks WHERE app = ? ORDER BY n;

-- name: PutWebhook :exec
INSERT INTO webhooks (id, app, principal, user_id, url, event, arguments, topic, filter, dialect, from_seq, created_at, expires_at,
    secret, former, former_until, last_delivery_at, last_error, failed_since, suspended)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET app = excluded.app, principal = excluded.principal, user_id = excluded.user_id, url = excluded.url,
    event = excluded.event, arguments = excluded.arguments, topic = excluded.topic, filter = excluded.filter,
    dialect = excluded.dialect, from_seq = excluded.from_seq, created_at = excluded.created_at, expires_at = excluded.expires_at,
    secret = excluded.secret, former = excluded.former, former_until = excluded.former_until,
    last_delivery_at = excluded.last_delivery_at, last_error = excluded.last_error, failed_since = excluded.failed_since,
    suspended = excluded.suspended;

-- name: DeleteWebhook :one
DELETE FROM webhooks WHERE id = ? RETURNING app, topic;

-- name: IdleWebhooksExpiredBefore :many
SELECT id FROM webhooks WHERE expires_at < @before AND due_at IS NULL ORDER BY expires_at LIMIT @max;

-- name: DeliveriesExpiredBefore :many
SELECT webhook, seq FROM deliveries WHERE webhook IN (SELECT id FROM webhooks WHERE expires_at < @before) LIMIT @max;

-- name: NextDue :one
SELECT due_at FROM webhooks WHERE suspended = 0 AND due_at IS NOT NULL ORDER BY due_at LIMIT 1;

-- name: DueWebhooks :many
SELECT id FROM webhooks WHERE suspended = 0 AND due_at IS NOT NULL AND due_at <= @now ORDER BY due_at, n LIMIT @max;

-- name: DueDeliveries :many
SELECT * FROM deliveries WHERE webhook = ? AND next_at <= @now ORDER BY next_at, seq LIMIT @max;

-- name: QueueDelivery :execrows
INSERT INTO deliveries (webhook, seq, attempts, next_at, error) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: PostponeDelivery :exec
UPDATE deliveries SET next_at = ? WHERE webhook = ? AND seq = ?;

-- name: RetryDelivery :execrows
UPDATE deliveries SET attempts = ?, next_at = ?, error = ? WHERE webhook = ? AND seq = ?;

-- name: FinishDelivery :execrows
DELETE FROM deliveries WHERE webhook = ? AND seq = ?;

-- name: DeleteDeliveriesOf :many
DELETE FROM deliveries WHERE seq = ? RETURNING webhook;

-- name: HastenWebhook :exec
UPDATE webhooks SET due_at = @due_at WHERE id = @id AND (due_at IS NULL OR due_at > @due_at);

-- name: RefreshWebhook :exec
UPDATE webhooks SET due_at = (SELECT min(next_at) FROM deliveries WHERE webhook = webhooks.id) WHERE id = ?;

-- Occurrences

-- name: Occurrence :one
SELECT * FROM occurrences WHERE seq = ?;

-- name: OccurrenceOf :one
SELECT * FROM occurrences WHERE app = ? AND event = ? AND own_key = ?;

-- name: KeyTaken :one
SELECT EXISTS (SELECT 1 FROM occurrences WHERE app = ? AND event = ? AND own_key = ?);

-- name: OccurrencesAt :many
SELECT occurrences.* FROM json_each(@places) AS place CROSS JOIN occurrences ON occurrences.seq = place.value;

-- name: RunsOn :many
SELECT last, earlier FROM topic_places WHERE app = ? AND topic = ? AND last > @after ORDER BY last LIMIT @max;

-- name: TopicsBetween :many
SELECT seq, app, topics FROM occurrences WHERE seq > @after AND seq <= @through ORDER BY seq LIMIT @max;

-- name: OldestOccurrences :many
SELECT seq, app, topics, at FROM occurrences ORDER BY seq LIMIT ?;

-- name: DeleteOccurrence :exec
DELETE FROM occurrences WHERE seq = ?;

-- name: DeleteRuns :exec
DELETE FROM topic_places WHERE app = ? AND topic = ? AND last <= @through;

-- name: DeleteOccurrencesOfApp :exec
DELETE FROM occurrences WHERE app = ?;

-- name: DeletePlacesOfApp :exec
DELETE FROM topic_places WHERE app = ?;

-- Used-up ids

-- name: Spent :many
SELECT until, ids FROM spent WHERE until > ?;

-- name: AddSpent :exec
INSERT INTO spent (until, ids) VALUES (?, ?);

-- name: ForgetSpent :execrows
DELETE FROM spent WHERE n IN (SELECT s.n FROM spent AS s WHERE s.until <= @now ORDER BY s.until LIMIT @max);

-- name: PublishURL :one
SELECT * FROM publish_urls WHERE id = ?;

-- name: CountPublishURLs :one
SELECT count(*) FROM publish_urls WHERE app = ? AND revoked_at = 0;

-- name: PutPublishURL :exec
INSERT INTO publish_urls (id, app, event, arguments, recipient, topic, created_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET app = excluded.app, event = excluded.event, arguments = excluded.arguments,
    recipient = excluded.recipient, topic = excluded.topic, created_at = excluded.created_at, revoked_at = excluded.revoked_at;
