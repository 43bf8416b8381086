-- Whoever changes something has the lock, see doc.go, so what a statement has found is still so in the next one. No statement
-- here may fail for a reference to what is not there: a failure would end the transaction.

-- Transactions

-- name: Lock :exec
SELECT pg_advisory_xact_lock(@class::integer, ('log'::regclass::oid)::integer);

-- name: LockSchema :exec
SELECT pg_advisory_xact_lock(@class::integer, hashtext(current_schemas(false)::text));

-- name: SetLocal :exec
SELECT set_config(setting.name, setting.value, true)
FROM (SELECT unnest(@names::text[]) AS name, unnest(@settings::text[]) AS value) AS setting;

-- name: Durability :one
SELECT current_setting('fsync') = 'on' AS synced, current_setting('synchronous_commit') <> 'off' AS awaited;

-- Log

-- name: CreateLog :exec
INSERT INTO log (id, epoch, head, horizon, manifests, changes, bytes, erased, scrubbed, master)
VALUES (1, @epoch, 0, 0, 0, 0, 0, 0, 0, '') ON CONFLICT DO NOTHING;

-- name: ClaimMaster :one
UPDATE log SET master = CASE master WHEN '' THEN @master ELSE master END RETURNING master;

-- name: Log :one
SELECT * FROM log;

-- name: SetLog :exec
UPDATE log SET head = @head, horizon = @horizon, manifests = @manifests, changes = @changes, bytes = @bytes, erased = @erased,
    scrubbed = @scrubbed;

-- name: Done :one
SELECT done FROM nodes WHERE id = @id;

-- name: SetDone :exec
INSERT INTO nodes (id, done, seen_at) VALUES (@id, @done, @seen_at)
ON CONFLICT (id) DO UPDATE SET done = excluded.done, seen_at = excluded.seen_at;

-- name: DeleteNode :exec
DELETE FROM nodes WHERE id = @id;

-- name: DeleteNodesSeenBefore :exec
DELETE FROM nodes WHERE seen_at < @before;

-- name: Mark :one
SELECT head, coalesce((SELECT n FROM subscriptions ORDER BY n DESC LIMIT 1), 0)::bigint AS subscribed FROM log;

-- name: TopicsBetween :many
SELECT app, topics FROM occurrences WHERE seq > @after AND seq <= @through ORDER BY seq LIMIT @max;

-- name: SubscribedBetween :many
SELECT app, conversation FROM subscriptions WHERE n > @after AND n <= @through ORDER BY n LIMIT @max;

-- Apps, keys, manifests

-- name: App :one
SELECT * FROM apps WHERE id = @id;

-- name: Apps :many
SELECT * FROM apps ORDER BY n;

-- name: CreateApp :execrows
INSERT INTO apps (id, name, created_at) VALUES (@id, @name, @created_at) ON CONFLICT (id) DO NOTHING;

-- name: DeleteApp :execrows
DELETE FROM apps WHERE id = @id;

-- name: Key :one
SELECT * FROM keys WHERE id = @id;

-- name: Keys :many
SELECT * FROM keys WHERE app = @app ORDER BY n;

-- name: CreateKey :execrows
INSERT INTO keys (id, app, name, public, created_at, revoked_at) VALUES (@id, @app, @name, @public, @created_at, @revoked_at)
ON CONFLICT (id) DO NOTHING;

-- name: RevokeKey :execrows
UPDATE keys SET revoked_at = CASE revoked_at WHEN 0 THEN @at ELSE revoked_at END WHERE app = @app AND id = @id;

-- name: Manifest :one
SELECT version, body FROM manifests WHERE app = @app;

-- name: ManifestVersion :one
SELECT version FROM manifests WHERE app = @app;

-- name: AppState :one
SELECT coalesce(manifests.version, 0)::bigint AS version FROM apps LEFT JOIN manifests ON manifests.app = apps.id WHERE apps.id = @app;

-- name: PutManifest :exec
INSERT INTO manifests (app, version, body) VALUES (@app, @version, @body)
ON CONFLICT (app) DO UPDATE SET version = excluded.version, body = excluded.body;

-- Conversations

-- name: Conversation :one
SELECT * FROM conversations WHERE id = @id;

-- name: ConversationOf :one
SELECT * FROM conversations WHERE app = @app AND kind = @kind AND user_id = @user_id AND thread = @thread ORDER BY n LIMIT 1;

-- name: PutConversation :exec
INSERT INTO conversations (id, app, harness, client, version, kind, user_id, thread, position, created_at, seen_at)
VALUES (@id, @app, @harness, @client, @version, @kind, @user_id, @thread, @position, @created_at, @seen_at)
ON CONFLICT (id) DO UPDATE SET app = excluded.app, harness = excluded.harness, client = excluded.client, version = excluded.version,
    kind = excluded.kind, user_id = excluded.user_id, thread = excluded.thread, created_at = excluded.created_at, seen_at = excluded.seen_at;

-- name: Advance :many
WITH moved AS (UPDATE conversations SET position = @position WHERE conversations.id = @id AND position < @position RETURNING id)
DELETE FROM owed USING moved WHERE owed.conversation = moved.id AND owed.seq <= @position RETURNING owed.seq;

-- name: Hand :execrows
UPDATE conversations SET handing_until = @lease WHERE id = @id AND handing_until <= @now;

-- name: Handed :execrows
UPDATE conversations SET handing_until = 0 WHERE id = @id AND handing_until = @lease;

-- name: ConversationsSeenBefore :many
SELECT n, id, seen_at, EXISTS (SELECT 1 FROM subscriptions WHERE subscriptions.conversation = conversations.id) AS subscribed
FROM conversations WHERE seen_at < @before AND (seen_at, n) > (@after_seen_at::bigint, @after_n::bigint) ORDER BY seen_at, n LIMIT @max;

-- name: DeleteConversations :exec
DELETE FROM conversations WHERE id = ANY(@ids::text[]);

-- Subscriptions

-- name: Subscription :one
SELECT * FROM subscriptions WHERE id = @id;

-- name: SubscriptionOf :one
SELECT * FROM subscriptions
WHERE conversation = @conversation AND until_seq = 0 AND ended_at = 0 AND topic = @topic AND event = @event
    AND arguments IS NOT DISTINCT FROM sqlc.narg(arguments)::bytea
ORDER BY n LIMIT 1;

-- name: SubscriptionsOf :many
SELECT * FROM subscriptions WHERE subscriptions.n IN (
    SELECT s.n FROM subscriptions AS s WHERE s.conversation = @conversation AND s.until_seq = 0 AND s.ended_at = 0
    UNION ALL
    SELECT s.n FROM conversations AS c JOIN subscriptions AS s ON s.conversation = c.id
    WHERE c.id = @conversation AND s.until_seq > c.position
) ORDER BY subscriptions.n;

-- name: SubscriptionsEver :many
SELECT * FROM subscriptions WHERE conversation = @conversation ORDER BY n;

-- name: CountSubscriptions :one
SELECT count(*) FROM subscriptions WHERE conversation = @conversation AND until_seq = 0 AND ended_at = 0;

-- name: SubscriptionsTo :many
SELECT * FROM subscriptions WHERE app = @app AND topic = ANY(@topics::bytea[]) AND ended_at = 0 ORDER BY n;

-- name: ForeseenSubscriptions :many
SELECT * FROM subscriptions WHERE app = @app AND topic = ANY(@topics::bytea[]) AND ended_at = 0 LIMIT @max;

-- name: CountSubscriptionsUpTo :one
SELECT count(*) FROM (SELECT 1 FROM subscriptions WHERE app = @app AND topic = @topic AND ended_at = 0 LIMIT @max) AS first;

-- name: SubscriptionsOfUser :many
SELECT * FROM subscriptions WHERE app = @app AND user_id = @user_id AND ended_at = 0 ORDER BY n;

-- name: SubscriptionsOfEvent :many
SELECT * FROM subscriptions WHERE app = @app AND event = @event AND ended_at = 0 ORDER BY n;

-- name: SubscriptionsOfApp :many
SELECT * FROM subscriptions WHERE app = @app AND ended_at = 0 ORDER BY n;

-- name: ExpiredSubscriptions :many
SELECT * FROM subscriptions WHERE expires_at <= @at AND ended_at = 0 ORDER BY expires_at, n LIMIT @max;

-- name: PutSubscription :one
INSERT INTO subscriptions (id, app, conversation, user_id, topic, event, arguments, filter, once, claimed,
    from_seq, until_seq, created_at, expires_at, ended_at)
SELECT @id, @app, conversations.id, @user_id, @topic, @event, sqlc.narg(arguments), sqlc.narg(filter), @once, @claimed,
    @from_seq, @until_seq, @created_at, @expires_at, @ended_at
FROM conversations WHERE conversations.id = @conversation
ON CONFLICT (id) DO UPDATE SET app = excluded.app, conversation = excluded.conversation, user_id = excluded.user_id,
    topic = excluded.topic, event = excluded.event, arguments = excluded.arguments, filter = excluded.filter, once = excluded.once,
    claimed = excluded.claimed, from_seq = excluded.from_seq, until_seq = excluded.until_seq, created_at = excluded.created_at,
    expires_at = excluded.expires_at, ended_at = excluded.ended_at
RETURNING n;

-- name: EndSubscription :one
WITH ended AS (
    UPDATE subscriptions SET until_seq = @until_seq, ended_at = @ended_at
    WHERE subscriptions.id = @id AND subscriptions.ended_at = 0 RETURNING id, app, topic
),
released AS (DELETE FROM owed USING ended WHERE owed.holder = ended.id RETURNING owed.seq)
SELECT ended.app, ended.topic, coalesce((SELECT array_agg(released.seq) FROM released), '{}')::bigint[] AS released FROM ended;

-- name: DeleteSubscriptionsEndedBefore :many
DELETE FROM subscriptions WHERE n IN
    (SELECT s.n FROM subscriptions AS s WHERE s.ended_at <> 0 AND s.ended_at < @before ORDER BY s.ended_at LIMIT @max)
RETURNING id;

-- name: CountSubscriptionsTo :one
SELECT count(*) FROM subscriptions WHERE app = @app AND topic = @topic AND event = '' AND ended_at = 0 AND expires_at > @at;

-- name: CountTakers :one
SELECT count(*) FROM subscriptions
WHERE app = @app AND topic = ANY(@topics::bytea[]) AND event IN ('', @event) AND expires_at > @at
    AND (user_id = @recipient OR @recipient = '') AND ended_at = 0 AND NOT once AND NOT claimed AND filter IS NULL;

-- name: PickySubscriptionsTo :many
SELECT * FROM subscriptions
WHERE app = @app AND topic = @topic AND id > @after AND ended_at = 0 AND (once OR filter IS NOT NULL) ORDER BY id LIMIT @max;

-- name: SomeSubscriptionsTo :many
SELECT * FROM subscriptions WHERE app = @app AND topic = @topic AND event = '' AND ended_at = 0 ORDER BY n LIMIT @max;

-- name: SubscriptionsBehind :many
SELECT subscriptions.* FROM subscriptions JOIN conversations ON conversations.id = subscriptions.conversation
WHERE subscriptions.n IN
    (SELECT s.n FROM subscriptions AS s WHERE s.app = @app AND s.topic = @topic AND s.ended_at = 0 LIMIT @looked)
    AND subscriptions.from_seq < @seq AND conversations.position < @seq LIMIT @max;

-- name: CountSubscriptionsOfUser :one
SELECT count(*) FROM subscriptions WHERE app = @app AND user_id = @user_id AND ended_at = 0;

-- name: CountSubscriptionsOfApp :one
SELECT count(*) FROM subscriptions WHERE app = @app AND ended_at = 0;

-- name: CountConversations :one
SELECT count(*) FROM conversations WHERE app = @app;

-- Replays

-- name: Replay :one
SELECT * FROM replays WHERE subscription = @subscription;

-- name: ReplaysOf :many
SELECT * FROM replays WHERE conversation = @conversation AND after_seq < until_seq ORDER BY n;

-- name: ReplaysEver :many
SELECT * FROM replays WHERE conversation = @conversation ORDER BY n;

-- name: PutReplay :execrows
INSERT INTO replays (subscription, conversation, from_seq, after_seq, until_seq)
VALUES (@subscription, @conversation, @from_seq, @after_seq, @until_seq) ON CONFLICT (subscription) DO NOTHING;

-- name: AdvanceReplay :execrows
UPDATE replays SET after_seq = @after_seq WHERE subscription = @subscription AND after_seq < @after_seq;

-- Workspaces and grants

-- name: Workspace :one
SELECT * FROM workspaces WHERE id = @id;

-- name: WorkspaceOf :one
SELECT * FROM workspaces WHERE app = @app AND user_id = @user_id;

-- name: CountWorkspaces :one
SELECT count(*) FROM workspaces WHERE app = @app;

-- name: CreateWorkspace :execrows
INSERT INTO workspaces (id, app, user_id, name, created_at) VALUES (@id, @app, @user_id, @name, @created_at) ON CONFLICT DO NOTHING;

-- name: DeleteWorkspace :execrows
DELETE FROM workspaces WHERE id = @id;

-- name: Grant :one
SELECT * FROM grants WHERE workspace = @workspace AND agent = @agent;

-- name: CountGrants :one
SELECT count(*) FROM grants WHERE workspace = @workspace;

-- name: CreateGrant :execrows
INSERT INTO grants (id, workspace, agent, display_name, created_at) VALUES (@id, @workspace, @agent, @display_name, @created_at)
ON CONFLICT DO NOTHING;

-- Content that is erased once nobody is owed it

-- name: Owe :exec
INSERT INTO owed (seq, holder, conversation) SELECT @seq, unnest(@holders::text[]), unnest(@conversations::text[]) ON CONFLICT DO NOTHING;

-- name: ReleaseConversations :many
DELETE FROM owed WHERE conversation = ANY(@ids::text[]) RETURNING seq;

-- name: ReleaseHolders :many
DELETE FROM owed WHERE holder = ANY(@ids::text[]) RETURNING seq;

-- name: ReleasePlaces :exec
DELETE FROM owed WHERE seq = ANY(@seqs::bigint[]);

-- name: EraseUnowed :one
WITH unowed AS (
    SELECT o.seq, coalesce(octet_length(o.arguments), 0) + octet_length(o.text) + coalesce(octet_length(o.data), 0) AS bytes
    FROM occurrences AS o WHERE o.seq = ANY(@seqs::bigint[]) AND NOT EXISTS (SELECT 1 FROM owed WHERE owed.seq = o.seq)
),
erased AS (
    UPDATE occurrences SET kind = @kind, arguments = NULL, text = '', data = NULL FROM unowed WHERE occurrences.seq = unowed.seq
)
SELECT count(*) AS erased, coalesce(sum(unowed.bytes), 0)::bigint AS bytes FROM unowed;

-- Users who are forgotten

-- name: Forgetting :many
SELECT app, user_id FROM forgetting;

-- name: BeginForgetting :exec
INSERT INTO forgetting (app, user_id) VALUES (@app, @user_id) ON CONFLICT DO NOTHING;

-- name: EndForgetting :execrows
DELETE FROM forgetting WHERE app = @app AND user_id = @user_id;

-- name: ConversationsOfUser :many
SELECT id FROM conversations WHERE app = @app AND user_id = @user_id LIMIT @max;

-- name: WebhooksFor :many
SELECT id FROM webhooks WHERE app = @app AND user_id = @user_id LIMIT @max;

-- name: WebhooksOfPrincipals :many
SELECT id FROM webhooks WHERE app = @app AND principal = ANY(@principals::text[]);

-- name: OccurrencesTo :many
SELECT seq, topics FROM occurrences WHERE app = @app AND recipient = @recipient ORDER BY seq LIMIT @max;

-- name: PlacesFrom :many
SELECT p.topic, p.seq, o.topics FROM topic_places AS p LEFT JOIN occurrences AS o ON o.seq = p.seq
WHERE p.app = @app AND p.topic >= @from_topic AND p.topic < @to_topic ORDER BY p.topic, p.seq LIMIT @max;

-- name: SetTopics :exec
UPDATE occurrences SET topics = @topics WHERE seq = @seq;

-- name: DeletePublishURLsTo :execrows
DELETE FROM publish_urls WHERE n IN (SELECT p.n FROM publish_urls AS p WHERE p.app = @app AND p.recipient = @recipient LIMIT @max);

-- name: DeletePublishURLsFrom :execrows
DELETE FROM publish_urls WHERE n IN
    (SELECT p.n FROM publish_urls AS p WHERE p.app = @app AND p.topic >= @from_topic AND p.topic < @to_topic LIMIT @max);

-- Webhooks and deliveries

-- name: Webhook :one
SELECT * FROM webhooks WHERE id = @id;

-- name: WebhooksTo :many
SELECT * FROM webhooks WHERE app = @app AND topic = ANY(@topics::bytea[]) AND ended_at = 0 ORDER BY n;

-- name: WebhooksOfUser :many
SELECT * FROM webhooks WHERE app = @app AND user_id = @user_id AND ended_at = 0 ORDER BY n;

-- name: WebhooksOfEvent :many
SELECT * FROM webhooks WHERE app = @app AND event = @event AND ended_at = 0 ORDER BY n;

-- name: WebhooksOfApp :many
SELECT * FROM webhooks WHERE app = @app AND ended_at = 0 ORDER BY n;

-- name: VerifiedAt :one
SELECT coalesce(max(verified_at), 0)::bigint FROM webhooks WHERE app = @app AND principal = @principal AND url = @url;

-- name: PutWebhook :exec
INSERT INTO webhooks (id, app, principal, user_id, url, host, event, arguments, topic, filter, dialect, from_seq, created_at, expires_at,
    secret, former, former_until, verified_at, suspended, suspended_at, ended_at, end_reason)
VALUES (@id, @app, @principal, @user_id, @url, @host, @event, @arguments, @topic, @filter, @dialect, @from_seq, @created_at, @expires_at,
    @secret, @former, @former_until, @verified_at, @suspended, @suspended_at, @ended_at, @end_reason)
ON CONFLICT (id) DO UPDATE SET app = excluded.app, principal = excluded.principal, user_id = excluded.user_id, url = excluded.url,
    host = excluded.host, event = excluded.event, arguments = excluded.arguments, topic = excluded.topic, filter = excluded.filter,
    dialect = excluded.dialect, from_seq = excluded.from_seq, created_at = excluded.created_at, expires_at = excluded.expires_at,
    secret = excluded.secret, former = excluded.former, former_until = excluded.former_until, verified_at = excluded.verified_at,
    suspended = excluded.suspended, suspended_at = excluded.suspended_at, ended_at = excluded.ended_at, end_reason = excluded.end_reason;

-- name: WebhookEnded :one
SELECT EXISTS (SELECT 1 FROM webhooks WHERE id = @id AND ended_at <> 0);

-- name: EndWebhook :one
UPDATE webhooks SET ended_at = @ended_at, end_reason = @end_reason, suspended = false, suspended_at = 0
WHERE id = @id AND ended_at = 0 RETURNING app, topic;

-- name: DeleteWebhook :one
DELETE FROM webhooks WHERE id = @id RETURNING app, topic;

-- name: IdleWebhooksExpiredBefore :many
SELECT id FROM webhooks WHERE expires_at <> 0 AND expires_at < @before AND due_at IS NULL ORDER BY expires_at LIMIT @max;

-- name: WebhooksEndedBefore :many
SELECT id FROM webhooks WHERE ended_at <> 0 AND ended_at < @before ORDER BY ended_at LIMIT @max;

-- name: DeleteDeliveriesExpiredBefore :many
DELETE FROM deliveries WHERE (webhook, seq, kind) IN (
    SELECT d.webhook, d.seq, d.kind FROM webhooks AS w JOIN deliveries AS d ON d.webhook = w.id
    WHERE w.expires_at <> 0 AND w.expires_at < @before LIMIT @max
) RETURNING webhook;

-- name: Health :one
SELECT * FROM health WHERE webhook = @webhook;

-- name: PutHealth :execrows
INSERT INTO health (webhook, last_delivery_at, last_error, failed_since, throttled_until, window_at, attempts, failures)
SELECT w.id, @last_delivery_at, @last_error, @failed_since, @throttled_until, @window_at, @attempts, @failures
FROM webhooks AS w WHERE w.id = @webhook
ON CONFLICT (webhook) DO UPDATE SET last_delivery_at = excluded.last_delivery_at, last_error = excluded.last_error,
    failed_since = excluded.failed_since, throttled_until = excluded.throttled_until, window_at = excluded.window_at,
    attempts = excluded.attempts, failures = excluded.failures;

-- name: DeleteHealth :exec
DELETE FROM health WHERE webhook = @webhook;

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

-- name: AttemptsOfWebhook :many
SELECT * FROM attempts WHERE webhook = @webhook AND app = @app AND n < @before AND at >= @since AND at < @until
    AND (outcome <> 'delivered' OR NOT @failed::boolean) ORDER BY n DESC LIMIT @max;

-- name: AttemptsAt :many
SELECT * FROM attempts WHERE seq = @seq AND kind = '' AND app = @app AND (webhook = @webhook OR @webhook = '') AND n < @before
    AND at >= @since AND at < @until AND (outcome <> 'delivered' OR NOT @failed::boolean) ORDER BY n DESC LIMIT @max;

-- name: OldestAttempts :many
SELECT n, at FROM attempts ORDER BY n LIMIT @max;

-- name: LastAttempt :one
SELECT coalesce(max(n), 0)::bigint FROM attempts;

-- name: DeleteAttemptsThrough :exec
DELETE FROM attempts WHERE n <= @n;

-- name: NextDue :one
SELECT due_at FROM webhooks WHERE NOT suspended AND due_at IS NOT NULL AND host <> ALL(@except_hosts::text[]) ORDER BY due_at LIMIT 1;

-- The webhooks that are due first, as many as deliveries are wanted: a delivery among the earliest is one of theirs. So it
-- costs no more when a webhook has a long queue, or many are waiting for a retry.
-- name: DueWebhooks :many
SELECT id FROM webhooks WHERE NOT suspended AND due_at IS NOT NULL AND due_at <= @now AND host <> ALL(@except_hosts::text[])
ORDER BY due_at, n LIMIT @max;

-- name: LeasedDeliveries :many
SELECT webhook, count(*) AS leased FROM deliveries WHERE webhook = ANY(@webhooks::text[]) AND leased AND next_at > @now GROUP BY webhook;

-- Of these webhooks what is due, as many of each as there is room for.
-- name: DueDeliveries :many
SELECT due.webhook, due.seq, due.kind FROM (SELECT unnest(@webhooks::text[]) AS id, unnest(@rooms::bigint[]) AS room) AS hook
CROSS JOIN LATERAL (
    SELECT d.webhook, d.seq, d.kind, d.next_at FROM deliveries AS d WHERE d.webhook = hook.id AND d.next_at <= @now
    ORDER BY d.next_at, d.seq LIMIT hook.room
) AS due ORDER BY due.next_at, due.seq LIMIT @max;

-- The first claim of an occurrence's delivery sets its watermark.
-- name: ClaimDeliveries :many
UPDATE deliveries SET next_at = @lease, leased = true, claim = claim + 1, watermark = CASE WHEN deliveries.kind = '' THEN coalesce(
    deliveries.watermark,
    (SELECT d.seq - 1 FROM deliveries AS d WHERE d.webhook = deliveries.webhook AND d.seq < deliveries.seq AND d.kind = ''
        ORDER BY d.seq LIMIT 1),
    deliveries.seq) END
FROM (SELECT unnest(@webhooks::text[]) AS webhook, unnest(@seqs::bigint[]) AS seq, unnest(@kinds::text[]) AS kind) AS due
WHERE deliveries.webhook = due.webhook AND deliveries.seq = due.seq AND deliveries.kind = due.kind
RETURNING deliveries.*;

-- name: QueueDelivery :one
WITH hook AS (SELECT webhooks.id FROM webhooks WHERE webhooks.id = @webhook),
queued AS (
    INSERT INTO deliveries (webhook, seq, kind, attempts, next_at, error)
    SELECT hook.id, @seq, @kind, @attempts, @next_at, @error FROM hook ON CONFLICT DO NOTHING RETURNING webhook, kind
),
owed_too AS (
    INSERT INTO owed (seq, holder, conversation)
    SELECT @seq, queued.webhook, '' FROM queued
    WHERE queued.kind = '' AND EXISTS (SELECT 1 FROM owed AS o WHERE o.seq = @seq) ON CONFLICT DO NOTHING
),
hastened AS (
    UPDATE webhooks SET due_at = @next_at FROM queued
    WHERE webhooks.id = queued.webhook AND (webhooks.due_at IS NULL OR webhooks.due_at > @next_at)
)
SELECT EXISTS (SELECT 1 FROM hook) AS there, EXISTS (SELECT 1 FROM queued) AS queued;

-- name: RestartDelivery :execrows
UPDATE deliveries SET attempts = 0, next_at = @next_at, error = '', leased = false, watermark = NULL
WHERE webhook = @webhook AND seq = @seq AND kind = @kind AND (NOT leased OR next_at <= @next_at);

-- name: LowestQueued :one
SELECT seq FROM deliveries WHERE webhook = @webhook AND kind = '' ORDER BY seq LIMIT 1;

-- name: CountQueued :one
SELECT count(*) FROM deliveries WHERE webhook = @webhook AND kind = '';

-- name: Overfull :many
SELECT webhook FROM deliveries WHERE kind = '' GROUP BY webhook HAVING count(*) > @most::bigint LIMIT @max;

-- What is fleeting there the webhook is owed no more; these places are returned as released.
-- name: DropLowest :one
WITH dropped AS (
    DELETE FROM deliveries WHERE deliveries.webhook = @webhook AND deliveries.kind = '' AND deliveries.seq IN
        (SELECT d.seq FROM deliveries AS d WHERE d.webhook = @webhook AND d.kind = '' ORDER BY d.seq LIMIT @max::bigint)
    RETURNING deliveries.webhook, deliveries.seq
),
released AS (DELETE FROM owed USING dropped WHERE owed.seq = dropped.seq AND owed.holder = dropped.webhook RETURNING owed.seq)
SELECT (SELECT count(*) FROM dropped) AS dropped, coalesce((SELECT array_agg(released.seq) FROM released), '{}')::bigint[] AS released;

-- name: DropDeliveries :exec
DELETE FROM deliveries WHERE webhook = @webhook;

-- name: DropIdleGaps :exec
DELETE FROM deliveries WHERE webhook = @webhook AND kind = 'gap' AND NOT leased;

-- name: RetryDelivery :execrows
WITH retried AS (
    UPDATE deliveries SET attempts = @attempts, next_at = @next_at, error = @error, leased = false
    WHERE deliveries.webhook = @webhook AND deliveries.seq = @seq AND deliveries.kind = @kind AND deliveries.claim = @claim
    RETURNING webhook
)
UPDATE webhooks SET due_at = least(@next_at,
    (SELECT min(d.next_at) FROM deliveries AS d WHERE d.webhook = webhooks.id AND (d.seq <> @seq OR d.kind <> @kind)))
FROM retried WHERE webhooks.id = retried.webhook;

-- name: FinishDelivery :one
WITH finished AS (
    DELETE FROM deliveries
    WHERE deliveries.webhook = @webhook AND deliveries.seq = @seq AND deliveries.kind = @kind AND deliveries.claim = @claim
    RETURNING webhook, kind
),
refreshed AS (
    UPDATE webhooks SET due_at =
        (SELECT min(d.next_at) FROM deliveries AS d WHERE d.webhook = webhooks.id AND (d.seq <> @seq OR d.kind <> @kind))
    FROM finished WHERE webhooks.id = finished.webhook
),
released AS (
    DELETE FROM owed USING finished WHERE owed.seq = @seq AND owed.holder = finished.webhook AND finished.kind = '' RETURNING owed.seq
)
SELECT EXISTS (SELECT 1 FROM finished) AS finished, EXISTS (SELECT 1 FROM released) AS released;

-- name: DeleteDeliveriesOf :many
DELETE FROM deliveries WHERE seq = ANY(@seqs::bigint[]) AND kind = '' RETURNING webhook;

-- A webhook that has as many deliveries leased as it may is due when the first of the leases lapses.
-- name: RefreshClaimed :exec
UPDATE webhooks SET due_at = (SELECT min(d.next_at) FROM deliveries AS d WHERE d.webhook = webhooks.id AND
    (@most::bigint > (SELECT count(*) FROM deliveries AS l WHERE l.webhook = webhooks.id AND l.leased AND l.next_at > @now)
    OR d.leased AND d.next_at > @now))
WHERE id = ANY(@ids::text[]);

-- name: RefreshWebhooks :exec
UPDATE webhooks SET due_at = (SELECT min(d.next_at) FROM deliveries AS d WHERE d.webhook = webhooks.id) WHERE id = ANY(@ids::text[]);

-- Occurrences

-- name: Occurrence :one
SELECT * FROM occurrences WHERE seq = @seq;

-- name: OccurrenceOf :one
SELECT * FROM occurrences WHERE app = @app AND event = @event AND own_key = @own_key;

-- name: KeyTaken :one
SELECT EXISTS (SELECT 1 FROM occurrences WHERE app = @app AND event = @event AND own_key = @own_key);

-- name: KeysTaken :many
SELECT o.app, o.event, o.own_key
FROM (SELECT unnest(@apps::text[]) AS app, unnest(@events::text[]) AS event, unnest(@own_keys::text[]) AS own_key) AS wanted
JOIN occurrences AS o ON o.app = wanted.app AND o.event = wanted.event AND o.own_key = wanted.own_key AND o.own_key IS NOT NULL;

-- name: InsertOccurrences :exec
INSERT INTO occurrences (seq, app, kind, event, topics, arguments, text, data, recipient, own_key, matched, at)
SELECT unnest(@seqs::bigint[]), unnest(@apps::text[]), unnest(@kinds::text[]), unnest(@events::text[]), unnest(@topics::bytea[]),
    unnest(@arguments::bytea[]), unnest(@texts::bytea[]), unnest(@data::bytea[]), nullif(unnest(@recipients::text[]), ''),
    nullif(unnest(@own_keys::text[]), ''), unnest(@matched::bigint[]), unnest(@at::bigint[]);

-- name: InsertPlaces :exec
INSERT INTO topic_places (app, topic, seq) 
SELECT unnest(@apps::text[]), unnest(@topics::bytea[]), unnest(@seqs::bigint[]) ON CONFLICT DO NOTHING;

-- name: Occurrences :many
SELECT occurrences.* FROM (
    SELECT DISTINCT place.seq FROM unnest(@topics::bytea[]) AS wanted (topic) CROSS JOIN LATERAL (
        SELECT p.seq FROM topic_places AS p WHERE p.app = @app AND p.topic = wanted.topic AND p.seq > @after ORDER BY p.seq LIMIT @max
    ) AS place ORDER BY place.seq LIMIT @max
) AS found JOIN occurrences ON occurrences.seq = found.seq ORDER BY occurrences.seq;

-- name: OldestOccurrences :many
SELECT seq, app, topics, at FROM occurrences ORDER BY seq LIMIT @max;

-- name: FirstOccurrences :many
SELECT * FROM occurrences ORDER BY seq LIMIT @max;

-- name: FirstPlaceFrom :one
SELECT seq, at FROM occurrences WHERE seq >= @seq ORDER BY seq LIMIT 1;

-- name: DeleteOccurrences :one
WITH gone AS (
    DELETE FROM occurrences WHERE seq = ANY(@seqs::bigint[])
    RETURNING 2 * octet_length(topics) + coalesce(octet_length(arguments), 0) + octet_length(text) + coalesce(octet_length(data), 0) AS bytes
)
SELECT count(*) AS gone, coalesce(sum(gone.bytes), 0)::bigint AS bytes FROM gone;

-- name: DeletePlaces :exec
DELETE FROM topic_places 
USING (SELECT unnest(@apps::text[]) AS app, unnest(@topics::bytea[]) AS topic, unnest(@seqs::bigint[]) AS seq) AS gone
WHERE topic_places.app = gone.app AND topic_places.topic = gone.topic AND topic_places.seq = gone.seq;

-- name: PlacesOfApp :many
SELECT topic, seq FROM topic_places WHERE app = @app LIMIT @max;

-- name: UnlistedPlaces :many
SELECT seq FROM occurrences WHERE app = @app AND topics = '' LIMIT @max;

-- name: Size :one
SELECT (log.bytes
    + pg_total_relation_size('conversations'::regclass)
    + pg_total_relation_size('subscriptions'::regclass)
    + pg_total_relation_size('webhooks'::regclass)
    + pg_total_relation_size('deliveries'::regclass)
    + pg_total_relation_size('health'::regclass)
    + pg_total_relation_size('attempts'::regclass)
    + pg_total_relation_size('spent'::regclass)
    + pg_total_relation_size('owed'::regclass)
    + pg_total_relation_size('publish_urls'::regclass)
    + pg_total_relation_size('manifests'::regclass))::bigint AS bytes FROM log;

-- Used-up ids

-- name: Spend :one
WITH fresh AS (
    INSERT INTO spent (id, until) SELECT unnest(@ids::uuid[]), unnest(@untils::bigint[]) ON CONFLICT DO NOTHING RETURNING id
)
SELECT coalesce(array_agg(fresh.id), '{}')::uuid[] AS fresh FROM fresh;

-- name: ForgetSpent :execrows
DELETE FROM spent WHERE id IN (SELECT s.id FROM spent AS s WHERE s.until <= @now ORDER BY s.until LIMIT @max FOR UPDATE SKIP LOCKED);

-- Publish URLs

-- name: PublishURL :one
SELECT * FROM publish_urls WHERE id = @id;

-- name: CountPublishURLs :one
SELECT count(*) FROM publish_urls WHERE app = @app AND revoked_at = 0;

-- name: PutPublishURL :exec
INSERT INTO publish_urls (id, app, event, arguments, recipient, topic, created_at, revoked_at)
VALUES (@id, @app, @event, @arguments, @recipient, @topic, @created_at, @revoked_at)
ON CONFLICT (id) DO UPDATE SET app = excluded.app, event = excluded.event, arguments = excluded.arguments,
    recipient = excluded.recipient, topic = excluded.topic, created_at = excluded.created_at, revoked_at = excluded.revoked_at;
