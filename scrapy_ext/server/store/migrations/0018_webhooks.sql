-- events: a JSON array of names, which may end in *. failing_since: when the first attempt of those failed that no
-- success has followed (ms). dropped, given_up: events that were not kept and deliveries that were given up since then.
CREATE TABLE webhooks (
    project BIGINT NOT NULL,
    number BIGINT NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    secret TEXT NOT NULL,
    created BIGINT NOT NULL,
    disabled BIGINT NOT NULL DEFAULT 0,
    failing_since BIGINT,
    dropped BIGINT NOT NULL DEFAULT 0,
    given_up BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, number)
);
-- number: that of the activity message. due: when to send it (ms); NULL once it was delivered or given up. outcome: what
-- came of the last attempt.
CREATE TABLE webhook_deliveries (
    project BIGINT NOT NULL,
    webhook BIGINT NOT NULL,
    number BIGINT NOT NULL,
    event TEXT NOT NULL,
    body BYTEA NOT NULL,
    created BIGINT NOT NULL,
    due BIGINT,
    attempts BIGINT NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'pending',
    outcome TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (project, webhook, number)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due, project, webhook, number) WHERE due IS NOT NULL;
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (project, webhook, due, number) WHERE due IS NOT NULL;
CREATE INDEX webhook_deliveries_past ON webhook_deliveries (project, webhook, state, number) WHERE due IS NULL;
