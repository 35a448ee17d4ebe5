-- Rules about finished jobs. purpose: retention or delivery. project: -1 for the rules of the server. definition: a JSON
-- object with conditions and data. changed: when it was added, enabled or disabled last. failure: why the rule is not applied now; NULL: it is.
CREATE TABLE rules (
    project BIGINT NOT NULL,
    purpose TEXT NOT NULL,
    number BIGINT NOT NULL,
    definition BYTEA NOT NULL,
    enabled BIGINT NOT NULL DEFAULT 0,
    created BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    failure TEXT,
    PRIMARY KEY (project, purpose, number)
);
