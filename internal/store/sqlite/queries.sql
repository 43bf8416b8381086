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

-- name: Hand :execrows
UPDATE conversations SET handing_until = @lease WHERE id = @id AND handing_until <= @now;

-- name: Handed :execrows
UPDATE conversations SET handing_until = 0 WHERE id = @id AND handing_until = @lease;

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

-- name: DeleteSubscriptionsEndedBefore :many
DELETE FROM subscriptions WHERE n IN
    (SELECT s.n FROM subscriptions AS s WHERE s.ended_at <> 0 AND s.ended_at < @before ORDER BY s.ended_at LIMIT @max)
RETURNING id;

-- The sum of what two indexes count; one to a topic by its name is never claimed.
-- name: CountSubscriptionsTo :one
SELECT CAST(
    (SELECT count(*) FROM subscriptions AS plain WHERE plain.app = @app AND plain.topic = @topic AND plain.event = ''
        AND plain.expires_at > @at AND plain.ended_at = 0 AND plain.once = 0 AND plain.claimed = 0 AND plain.filter IS NULL)
    + (SELECT count(*) FROM subscriptions AS picky WHERE picky.app = @app AND picky.topic = @topic AND +picky.event = ''
        AND picky.expires_at > @at AND picky.ended_at = 0 AND (picky.once <> 0 OR picky.filter IS NOT NULL))
AS INTEGER);

-- name: CountSubscriptionsUpTo :one
SELECT count(*) FROM (SELECT 1 FROM subscriptions WHERE app = @app AND topic = @topic AND ended_at = 0 LIMIT @max);

-- name: CountTakers :one
SELECT count(*) FROM subscriptions
WHERE app = @app AND topic = @topic AND event IN ('', @event) AND expires_at > @at AND (user_id = @recipient OR @recipient = '')
    AND ended_at = 0 AND once = 0 AND claimed = 0 AND filter IS NULL;

-- name: PickySubscriptionsTo :many
SELECT * FROM subscriptions
WHERE app = @app AND topic = @topic AND id > @after AND ended_at = 0 AND (once <> 0 OR filter IS NOT NULL) ORDER BY id LIMIT @max;

-- The plus keeps SQLite from the index of events: all that are to no event are in it.
-- name: SomeSubscriptionsTo :many
SELECT * FROM subscriptions WHERE app = @app AND topic = @topic AND +event = '' AND ended_at = 0 ORDER BY n LIMIT @max;

-- Replays

-- name: Replay :one
SELECT * FROM replays WHERE subscription = ?;

-- name: ReplaysOf :many
SELECT * FROM replays WHERE conversation = ? AND after_seq < until_seq ORDER BY n;

-- name: ReplaysEver :many
SELECT * FROM replays WHERE conversation = ? ORDER BY n;

-- name: PutReplay :execrows
INSERT INTO replays (subscription, conversation, from_seq, after_seq, until_seq) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (subscription) DO NOTHING;

-- name: AdvanceReplay :execrows
UPDATE replays SET after_seq = @after_seq WHERE subscription = @subscription AND after_seq < @after_seq;

-- Webhooks and deliveries

-- name: Webhook :one
SELECT * FROM webhooks WHERE id = ?;

-- name: WebhooksTo :many
SELECT * FROM webhooks WHERE app = ? AND topic = ? AND ended_at = 0 ORDER BY n;

-- name: WebhooksOfUser :many
SELECT * FROM webhooks WHERE app = ? AND user_id = ? AND ended_at = 0 ORDER BY n;

-- name: WebhooksOfEvent :many
SELECT * FROM webhooks WHERE app = ? AND event = ? AND ended_at = 0 ORDER BY n;

-- name: WebhooksOfApp :many
SELECT * FROM webhooks WHERE app = ? AND ended_at = 0 ORDER BY n;

-- name: VerifiedAt :one
SELECT CAST(coalesce(max(verified_at), 0) AS INTEGER) FROM webhooks WHERE app = ? AND principal = ? AND url = ?;

-- name: PutWebhook :exec
INSERT INTO webhooks (id, app, principal, user_id, url, host, event, arguments, topic, filter, dialect, from_seq, created_at, expires_at,
    secret, former, former_until, verified_at, suspended, suspended_at, ended_at, end_reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET app = excluded.app, principal = excluded.principal, user_id = excluded.user_id, url = excluded.url,
    host = excluded.host, event = excluded.event, arguments = excluded.arguments, topic = excluded.topic, filter = excluded.filter,
    dialect = excluded.dialect, from_seq = excluded.from_seq, created_at = excluded.created_at, expires_at = excluded.expires_at,
    secret = excluded.secret, former = excluded.former, former_until = excluded.former_until, verified_at = excluded.verified_at,
    suspended = excluded.suspended, suspended_at = excluded.suspended_at, ended_at = excluded.ended_at, end_reason = excluded.end_reason;

-- name: WebhookEnded :one
SELECT EXISTS (SELECT 1 FROM webhooks WHERE id = ? AND ended_at <> 0);

-- name: EndWebhook :one
UPDATE webhooks SET ended_at = ?, end_reason = ?, suspended = 0, suspended_at = 0 WHERE id = ? AND ended_at = 0 RETURNING app, topic;

-- name: DeleteWebhook :one
DELETE FROM webhooks WHERE id = ? RETURNING app, topic;

-- name: IdleWebhooksExpiredBefore :many
SELECT id FROM webhooks WHERE expires_at <> 0 AND expires_at < @before AND due_at IS NULL ORDER BY expires_at LIMIT @max;

-- name: WebhooksEndedBefore :many
SELECT id FROM webhooks WHERE ended_at <> 0 AND ended_at < @before ORDER BY ended_at LIMIT @max;

-- name: DeliveriesExpiredBefore :many
SELECT * FROM deliveries WHERE webhook IN (SELECT id FROM webhooks WHERE expires_at <> 0 AND expires_at < @before) LIMIT @max;

-- name: Health :one
SELECT * FROM health WHERE webhook = ?;

-- name: PutHealth :execrows
INSERT INTO health (webhook, last_delivery_at, last_error, failed_since, throttled_until, window_at, attempts, failures)
SELECT w.id, @last_delivery_at, @last_error, @failed_since, @throttled_until, @window_at, @attempts, @failures
FROM webhooks AS w WHERE w.id = @webhook
ON CONFLICT (webhook) DO UPDATE SET last_delivery_at = excluded.last_delivery_at, last_error = excluded.last_error,
    failed_since = excluded.failed_since, throttled_until = excluded.throttled_until, window_at = excluded.window_at,
    attempts = excluded.attempts, failures = excluded.failures;

-- name: DeleteHealth :exec
DELETE FROM health WHERE webhook = ?;

-- name: RecordAttempt :one
INSERT INTO attempts (app, webhook, seq, kind, nth, number, at, took, status, reason, outcome, next_at)
SELECT w.app, w.id, @seq, @kind, 1 + coalesce((SELECT a.nth FROM attempts AS a WHERE a.webhook = w.id ORDER BY a.n DESC LIMIT 1), 0),
    @number, @at, @took, @status, @reason, @outcome, @next_at FROM webhooks AS w WHERE w.id = @webhook
RETURNING nth;

-- Two of them, so that a webhook that has too many comes to have fewer.
-- name: DropFirstAttempts :exec
DELETE FROM attempts WHERE attempts.n IN (SELECT a.n FROM attempts AS a WHERE a.webhook = @webhook ORDER BY a.n LIMIT 2) AND attempts.nth <= @through;

-- name: AttemptsOfApp :many
SELECT * FROM attempts WHERE app = @app AND n < @before AND at >= @since AND at < @until ORDER BY n DESC LIMIT @max;

-- name: FailuresOfApp :many
SELECT * FROM attempts WHERE app = @app AND n < @before AND at >= @since AND at < @until AND outcome <> 'delivered' ORDER BY n DESC LIMIT @max;

-- The plus keeps SQLite from the indexes of apps.
-- name: AttemptsOfWebhook :many
SELECT * FROM attempts WHERE webhook = @webhook AND +app = @app AND n < @before AND at >= @since AND at < @until
    AND (+outcome <> 'delivered' OR NOT CAST(@failed AS INTEGER)) ORDER BY n DESC LIMIT @max;

-- The pluses keep SQLite from the other indexes.
-- name: AttemptsAt :many
SELECT * FROM attempts WHERE seq = @seq AND kind = '' AND +app = @app AND (+webhook = @webhook OR @webhook = '') AND n < @before
    AND at >= @since AND at < @until AND (+outcome <> 'delivered' OR NOT CAST(@failed AS INTEGER)) ORDER BY n DESC LIMIT @max;

-- name: OldestAttempts :many
SELECT n, at FROM attempts ORDER BY n LIMIT ?;

-- name: LastAttempt :one
SELECT CAST(coalesce(max(n), 0) AS INTEGER) FROM attempts;

-- name: DeleteAttemptsThrough :exec
DELETE FROM attempts WHERE n <= ?;

-- name: NextDue :one
SELECT due_at FROM webhooks WHERE suspended = 0 AND due_at IS NOT NULL AND host NOT IN (SELECT h.value FROM json_each(@except_hosts) AS h)
ORDER BY due_at LIMIT 1;

-- name: DueWebhooks :many
SELECT id FROM webhooks WHERE suspended = 0 AND due_at IS NOT NULL AND due_at <= @now
    AND host NOT IN (SELECT h.value FROM json_each(@except_hosts) AS h) ORDER BY due_at, n LIMIT @max;

-- name: DueDeliveries :many
SELECT * FROM deliveries WHERE webhook = ? AND next_at <= @now ORDER BY next_at, seq LIMIT @max;

-- name: QueueDelivery :execrows
INSERT INTO deliveries (webhook, seq, kind, attempts, next_at, error, claim, leased) VALUES (?, ?, ?, ?, ?, ?, 0, 0) ON CONFLICT DO NOTHING;

-- name: RestartDelivery :execrows
UPDATE deliveries SET attempts = 0, next_at = @next_at, error = '', leased = 0, watermark = NULL
WHERE webhook = @webhook AND seq = @seq AND kind = @kind AND (leased = 0 OR next_at <= @next_at);

-- name: LeasedDeliveries :one
SELECT count(*) FROM deliveries WHERE webhook = ? AND leased = 1 AND next_at > @now;

-- name: LowestQueued :one
SELECT seq FROM deliveries WHERE webhook = ? AND kind = '' ORDER BY seq LIMIT 1;

-- name: CountQueued :one
SELECT count(*) FROM deliveries WHERE webhook = ? AND kind = '';

-- name: Overfull :many
SELECT webhook FROM deliveries WHERE kind = '' GROUP BY webhook HAVING count(*) > CAST(@most AS INTEGER) LIMIT @max;

-- name: DropLowest :many
DELETE FROM deliveries WHERE deliveries.webhook = @webhook AND deliveries.kind = '' AND deliveries.seq IN
    (SELECT d.seq FROM deliveries AS d WHERE d.webhook = @webhook AND d.kind = '' ORDER BY d.seq LIMIT @max)
RETURNING seq;

-- name: DropDeliveries :exec
DELETE FROM deliveries WHERE webhook = ?;

-- name: DropIdleGaps :exec
DELETE FROM deliveries WHERE webhook = ? AND kind = 'gap' AND leased = 0;

-- The first claim of an occurrence's delivery sets its watermark.
-- name: ClaimDelivery :one
UPDATE deliveries SET next_at = @next_at, leased = 1, claim = claim + 1, watermark = CASE WHEN deliveries.kind = '' THEN coalesce(
    deliveries.watermark,
    (SELECT d.seq - 1 FROM deliveries AS d WHERE d.webhook = @webhook AND d.seq < @seq AND d.kind = '' ORDER BY d.seq LIMIT 1),
    deliveries.seq) END
WHERE deliveries.webhook = @webhook AND deliveries.seq = @seq AND deliveries.kind = @kind RETURNING claim, watermark;

-- name: RetryDelivery :execrows
UPDATE deliveries SET attempts = ?, next_at = ?, error = ?, leased = 0 WHERE webhook = ? AND seq = ? AND kind = ? AND claim = ?;

-- name: FinishDelivery :execrows
DELETE FROM deliveries WHERE webhook = ? AND seq = ? AND kind = ? AND claim = ?;

-- name: DeleteDeliveriesOf :many
DELETE FROM deliveries WHERE seq = ? AND kind = '' RETURNING webhook;

-- name: HastenWebhook :exec
UPDATE webhooks SET due_at = @due_at WHERE id = @id AND (due_at IS NULL OR due_at > @due_at);

-- A webhook that has as many deliveries leased as it may is due when the first of the leases lapses.
-- name: RefreshClaimed :exec
UPDATE webhooks SET due_at = (SELECT min(d.next_at) FROM deliveries AS d WHERE d.webhook = webhooks.id AND
    (CAST(@most AS INTEGER) > (SELECT count(*) FROM deliveries AS l WHERE l.webhook = webhooks.id AND l.leased = 1 AND l.next_at > @now)
    OR d.leased = 1 AND d.next_at > @now))
WHERE id = @id;

-- name: RefreshWebhook :exec
UPDATE webhooks SET due_at = (SELECT min(next_at) FROM deliveries WHERE webhook = webhooks.id) WHERE id = ?;

-- Occurrences

-- name: Occurrence :one
SELECT * FROM occurrences WHERE seq = ?;

-- name: OccurrenceOf :one
SELECT * FROM occurrences WHERE app = ? AND event = ? AND own_key = ?;

-- name: KeyTaken :one
SELECT EXISTS (SELECT 1 FROM occurrences WHERE app = ? AND event = ? AND own_key = ?);

-- name: FirstPlaceFrom :one
SELECT seq, at FROM occurrences WHERE seq >= ? ORDER BY seq LIMIT 1;

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

-- Workspaces and grants

-- name: Workspace :one
SELECT * FROM workspaces WHERE id = ?;

-- name: WorkspaceOf :one
SELECT * FROM workspaces WHERE app = ? AND user_id = ?;

-- name: CountWorkspaces :one
SELECT count(*) FROM workspaces WHERE app = ?;

-- name: CreateWorkspace :execrows
INSERT INTO workspaces (id, app, user_id, name, created_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: DeleteWorkspace :execrows
DELETE FROM workspaces WHERE id = ?;

-- name: Grant :one
SELECT * FROM grants WHERE workspace = ? AND agent = ?;

-- name: CountGrants :one
SELECT count(*) FROM grants WHERE workspace = ?;

-- name: CreateGrant :execrows
INSERT INTO grants (id, workspace, agent, display_name, created_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- Content that is erased once nobody is owed it

-- name: Owe :exec
INSERT INTO owed (seq, holder, conversation) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: OweToo :exec
INSERT INTO owed (seq, holder, conversation) SELECT @seq, @holder, '' WHERE EXISTS (SELECT 1 FROM owed AS o WHERE o.seq = @seq) ON CONFLICT DO NOTHING;

-- name: AnythingOwed :one
SELECT EXISTS (SELECT 1 FROM owed);

-- name: ReleaseConversation :many
DELETE FROM owed WHERE conversation = @conversation AND seq <= @through RETURNING seq;

-- name: ReleaseHolder :many
DELETE FROM owed WHERE holder = ? RETURNING seq;

-- name: ReleaseDelivery :execrows
DELETE FROM owed WHERE seq = ? AND holder = ?;

-- name: ReleasePlace :execrows
DELETE FROM owed WHERE seq = ?;

-- name: ReleasePlaces :exec
DELETE FROM owed WHERE seq IN (SELECT place.value FROM json_each(@places) AS place);

-- name: ReleaseApp :exec
DELETE FROM owed WHERE (SELECT occurrences.app FROM occurrences WHERE occurrences.seq = owed.seq) = @app;

-- name: Owed :one
SELECT EXISTS (SELECT 1 FROM owed WHERE seq = ?);

-- name: EraseOccurrence :exec
UPDATE occurrences SET kind = @kind, arguments = NULL, text = '', data = NULL WHERE seq = @seq;

-- name: CountErasure :exec
UPDATE erasures SET made = made + 1;

-- name: NoteScrubbed :execrows
UPDATE erasures SET scrubbed = @scrubbed WHERE scrubbed < @scrubbed;

-- name: Erasures :one
SELECT made, scrubbed FROM erasures;

-- Users who are forgotten

-- name: Forgetting :many
SELECT app, user_id FROM forgetting;

-- name: BeginForgetting :exec
INSERT INTO forgetting (app, user_id) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: EndForgetting :execrows
DELETE FROM forgetting WHERE app = ? AND user_id = ?;

-- name: ConversationsOfUser :many
SELECT id FROM conversations WHERE app = ? AND user_id = ? LIMIT @max;

-- name: WebhooksFor :many
SELECT id FROM webhooks WHERE app = ? AND user_id = ? LIMIT @max;

-- name: WebhooksOfPrincipal :many
SELECT id FROM webhooks WHERE app = ? AND principal = ?;

-- name: OccurrencesTo :many
SELECT seq, topics FROM occurrences WHERE app = ? AND recipient = ? ORDER BY seq LIMIT @max;

-- name: TopicsAt :many
SELECT occurrences.seq, occurrences.topics FROM json_each(@places) AS place CROSS JOIN occurrences ON occurrences.seq = place.value;

-- name: RunsFrom :many
SELECT topic, last, earlier FROM topic_places WHERE app = @app AND topic >= @from_topic AND topic < @to_topic ORDER BY topic, last LIMIT @max;

-- name: RunAt :one
SELECT last, earlier FROM topic_places WHERE app = ? AND topic = ? AND last >= @seq ORDER BY last LIMIT 1;

-- name: DeleteRun :exec
DELETE FROM topic_places WHERE app = ? AND topic = ? AND last = ?;

-- name: AddRun :exec
INSERT INTO topic_places (app, topic, last, earlier) VALUES (?, ?, ?, ?);

-- name: SetTopics :exec
UPDATE occurrences SET topics = ? WHERE seq = ?;

-- name: DeleteDeliveriesAt :many
DELETE FROM deliveries WHERE kind = '' AND seq IN (SELECT place.value FROM json_each(@places) AS place) RETURNING webhook;

-- name: DeleteOccurrencesAt :exec
DELETE FROM occurrences WHERE seq IN (SELECT place.value FROM json_each(@places) AS place);

-- name: DeletePublishURLsTo :execrows
DELETE FROM publish_urls WHERE n IN (SELECT p.n FROM publish_urls AS p WHERE p.app = ? AND p.recipient = ? LIMIT @max);

-- name: DeletePublishURLsFrom :execrows
DELETE FROM publish_urls WHERE n IN
    (SELECT p.n FROM publish_urls AS p WHERE p.app = @app AND p.topic >= @from_topic AND p.topic < @to_topic LIMIT @max);

-- Limits and retention

-- name: CountSubscriptionsOfUser :one
SELECT count(*) FROM subscriptions WHERE app = ? AND user_id = ? AND ended_at = 0;

-- name: CountSubscriptionsOfApp :one
SELECT count(*) FROM subscriptions WHERE app = ? AND ended_at = 0;

-- name: CountConversations :one
SELECT count(*) FROM conversations WHERE app = ?;

-- name: SubscriptionsBehind :many
SELECT subscriptions.* FROM subscriptions JOIN conversations ON conversations.id = subscriptions.conversation
WHERE subscriptions.n IN
    (SELECT s.n FROM subscriptions AS s WHERE s.app = @app AND s.topic = @topic AND s.ended_at = 0 LIMIT @looked)
    AND subscriptions.from_seq < @seq AND conversations.position < @seq LIMIT @max;

-- name: OccurrencesThrough :many
SELECT * FROM occurrences WHERE seq <= ? ORDER BY seq;
