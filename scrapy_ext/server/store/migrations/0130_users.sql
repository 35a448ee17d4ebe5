-- People who log in by OpenID Connect, known by issuer and subject. name, email: as of the last login; email is empty
-- unless the provider has verified it. member_of: the groups of the last login, a JSON array. disabled: 1 for a user
-- without access. epoch: sessions that began with another number are over. seen: the last login.
CREATE TABLE users (
    number BIGINT NOT NULL PRIMARY KEY,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    member_of TEXT NOT NULL,
    disabled BIGINT NOT NULL DEFAULT 0,
    epoch BIGINT NOT NULL DEFAULT 0,
    created BIGINT NOT NULL,
    seen BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_by_subject ON users (issuer, subject);
-- Roles that were given to users. project: -1 for all projects.
CREATE TABLE user_roles (
    number BIGINT NOT NULL,
    project BIGINT NOT NULL,
    role TEXT NOT NULL,
    given_by TEXT NOT NULL,
    given BIGINT NOT NULL,
    PRIMARY KEY (number, project)
);
-- Keys: 1 for a key that may run and stop jobs, and write nothing else.
ALTER TABLE api_keys ADD COLUMN may_run BIGINT NOT NULL DEFAULT 0;
