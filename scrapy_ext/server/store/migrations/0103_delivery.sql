-- Work that one process does at a time, however long it takes. token: number of the holder; it increases with each new
-- holder. expires: time (ms) when others may take over.
CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    token BIGINT NOT NULL,
    expires BIGINT NOT NULL
);

-- Deliveries that are complete, by job and kind of records. folder: URL with all objects of the delivery. object: name
-- in it. revision: that of record_totals when the records were read. manifest: SHA-256 of job.json. A job without records
-- has the kind job, and the time of its end as the revision. of_server: 1 for a rule of the server. reported: 1 when an
-- activity message has the delivery.
CREATE TABLE deliveries (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    kind TEXT NOT NULL,
    delivery TEXT NOT NULL,
    rule BIGINT NOT NULL,
    of_server BIGINT NOT NULL DEFAULT 0,
    folder TEXT NOT NULL,
    object TEXT NOT NULL,
    revision BIGINT NOT NULL,
    records BIGINT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    manifest TEXT NOT NULL,
    finished BIGINT NOT NULL,
    reported BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, spider, job, kind, delivery)
);
CREATE INDEX deliveries_to_report ON deliveries (project, rule, of_server) WHERE reported = 0;

-- Deliveries under way, and those whose process died: their objects are removed some time after the lease has expired.
CREATE TABLE delivery_attempts (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    delivery TEXT NOT NULL,
    folder TEXT NOT NULL,
    token BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    PRIMARY KEY (project, spider, job, delivery)
);

-- When the records were brought back from an archive. Retention rules leave them for some time.
ALTER TABLE record_totals ADD COLUMN restored BIGINT;

-- Archived jobs whose records are being brought back. records: number so far. failure: why it ended without success.
CREATE TABLE restores (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    token BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    records BIGINT NOT NULL DEFAULT 0,
    failure TEXT,
    PRIMARY KEY (project, spider, job)
);
