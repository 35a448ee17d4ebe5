-- Deployed versions of projects. deploy: counts up; a name may be deployed again. touched: when a check was last at it.
CREATE TABLE versions (
    project BIGINT NOT NULL,
    deploy BIGINT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    message TEXT NOT NULL,
    created BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    touched BIGINT NOT NULL,
    format TEXT NOT NULL,
    settings TEXT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    requirements TEXT NOT NULL,
    PRIMARY KEY (project, deploy)
);
CREATE INDEX versions_by_name ON versions (project, name, deploy);

CREATE TABLE current_versions (
    project BIGINT NOT NULL PRIMARY KEY,
    deploy BIGINT NOT NULL
);

-- What was uploaded, in pieces.
CREATE TABLE version_pieces (
    project BIGINT NOT NULL,
    deploy BIGINT NOT NULL,
    piece BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (project, deploy, piece)
);
/*postgresql
ALTER TABLE version_pieces ALTER COLUMN body SET STORAGE EXTERNAL; -- it is compressed already
*/

CREATE TABLE version_spiders (
    project BIGINT NOT NULL,
    deploy BIGINT NOT NULL,
    name TEXT NOT NULL,
    info BYTEA NOT NULL,
    PRIMARY KEY (project, deploy, name)
);

-- The version that a job was scheduled with; 0: none.
ALTER TABLE jobs ADD COLUMN deploy BIGINT NOT NULL DEFAULT 0;
