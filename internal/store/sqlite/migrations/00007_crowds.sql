-- +goose Up

-- Topics with very many subscriptions: those that take everything are counted, in the index alone, the others are looked at page
-- by page.
CREATE INDEX subscriptions_plain ON subscriptions (app, topic, event, expires_at, user_id, once, claimed, filter, ended_at)
    WHERE ended_at = 0 AND once = 0 AND claimed = 0 AND filter IS NULL;
CREATE INDEX subscriptions_picky ON subscriptions (app, topic, id) WHERE ended_at = 0 AND (once <> 0 OR filter IS NOT NULL);
