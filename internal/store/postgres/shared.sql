-- What the nodes tell each other

-- name: LockConnections :exec
SELECT pg_advisory_xact_lock(@class::integer, 'connections'::regclass::oid::integer);

-- name: CountAttending :one
SELECT count(*) FILTER (WHERE node = @node) AS known, count(*) FILTER (WHERE node <> @node AND until < clock_timestamp()) AS lapsed
FROM attending;

-- name: Attend :exec
INSERT INTO attending (node, until) VALUES (@node, clock_timestamp() + make_interval(secs => @seconds::float8))
ON CONFLICT (node) DO UPDATE SET until = excluded.until;

-- Lapsed is by the time at which the transaction began, here and in RemoveLapsed.
-- name: RemoveConnectionsOfLapsed :many
DELETE FROM connections AS c USING attending AS a WHERE a.node = c.node AND a.until < now() RETURNING c.conversation;

-- name: RemoveLapsed :exec
DELETE FROM attending WHERE until < now();

-- name: RemoveConnectionsOf :many
DELETE FROM connections WHERE node = @node RETURNING conversation;

-- name: RemoveNode :exec
DELETE FROM attending WHERE node = @node;

-- name: Passed :many
SELECT id, place, newer FROM connections WHERE node = @node AND newer > 0;

-- name: RemoveConnections :many
DELETE FROM connections WHERE id = ANY(@ids::text[]) RETURNING conversation;

-- name: AddConnections :exec
INSERT INTO connections (id, node, app, conversation, path, place, newer)
SELECT o.id, @node, o.app, o.conversation, o.path, coalesce(nullif(o.place, 0), nextval('connection_places')), -1
FROM (SELECT unnest(@ids::text[]) AS id, unnest(@apps::text[]) AS app, unnest(@conversations::text[]) AS conversation,
    unnest(@paths::text[]) AS path, unnest(@places::bigint[]) AS place) AS o
ON CONFLICT (id) DO NOTHING;

-- Counts anew in these conversations, and returns what is otherwise than before.
-- name: RankConnections :many
UPDATE connections AS c SET newer = r.newer
FROM (SELECT x.id, (SELECT count(*) FROM connections AS y WHERE y.conversation = x.conversation AND y.place > x.place)::integer AS newer
    FROM connections AS x WHERE x.conversation = ANY(@conversations::text[])) AS r
WHERE c.id = r.id AND c.newer <> r.newer RETURNING c.id, c.node, c.place, c.newer;

-- name: Paths :many
SELECT conversation, path FROM connections WHERE conversation = ANY(@conversations::text[]) AND newer = 0;

-- name: CountConnected :many
SELECT c.path, count(*) FROM connections AS c WHERE c.app = @app AND c.newer = 0 AND EXISTS (
    SELECT 1 FROM subscriptions AS s WHERE s.conversation = c.conversation AND s.topic = @topic AND s.event = '' AND s.ended_at = 0
        AND s.expires_at > @at
) GROUP BY c.path;

-- name: Turn :execrows
INSERT INTO turns (what, node, until) VALUES (@what, @node, clock_timestamp() + make_interval(secs => @seconds::float8))
ON CONFLICT (what) DO UPDATE SET node = excluded.node, until = excluded.until
WHERE turns.node = excluded.node OR turns.until < clock_timestamp();
