-- API keys that were given names. projects: numbers joined by commas, or * for all of them. may_write: 0 or 1.
CREATE TABLE api_keys (
    name TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL,
    projects TEXT NOT NULL,
    may_write BIGINT NOT NULL,
    created BIGINT NOT NULL
);
