-- The project comes first in every key, so that the tables can be spread by project; numbers come from
-- counters, not from sequences. Byte strings where the order of keys is the order of their bytes. On PostgreSQL the
-- large tables are spread over partitions; that of a row is found by the beginning of its key.

CREATE TABLE counters (
    project BIGINT NOT NULL,
    name TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (project, name)
) /*sqlite WITHOUT ROWID*/;

-- Hashes of API keys by what they open, and the secret that job tokens are made with.
CREATE TABLE access_keys (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    created BIGINT NOT NULL
);

CREATE TABLE spiders (
    project BIGINT NOT NULL,
    name TEXT NOT NULL,
    spider BIGINT NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE UNIQUE INDEX spiders_by_id ON spiders (project, spider);

-- changed: when the job entered its state. unique_key: set while the job is active and must have no double.
-- metadata: a JSON object with everything else, and with what the columns repeat for searching.
CREATE TABLE jobs (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    spider_name TEXT NOT NULL,
    state TEXT NOT NULL,
    changed BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    unique_key TEXT,
    metadata BYTEA NOT NULL,
    PRIMARY KEY (project, spider, job)
);
CREATE INDEX jobs_by_time ON jobs (project, changed);
CREATE INDEX jobs_by_state ON jobs (project, state, changed);
CREATE UNIQUE INDEX jobs_by_unique_key ON jobs (project, unique_key);

CREATE TABLE job_tags (
    project BIGINT NOT NULL,
    tag TEXT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    PRIMARY KEY (project, tag, spider, job)
) /*sqlite WITHOUT ROWID*/;

-- Items, request records and logs: what a job has of each, and the records in compressed chunks.
CREATE TABLE record_totals (
    project BIGINT NOT NULL,
    kind TEXT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    records BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (project, kind, spider, job)
) /*sqlite WITHOUT ROWID*/;

CREATE TABLE record_counts (
    project BIGINT NOT NULL,
    kind TEXT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    field TEXT NOT NULL,
    occurrences BIGINT NOT NULL,
    PRIMARY KEY (project, kind, spider, job, field)
) /*sqlite WITHOUT ROWID*/;

CREATE TABLE record_chunks (
    project BIGINT NOT NULL,
    kind TEXT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    start BIGINT NOT NULL,
    records BIGINT NOT NULL,
    ts BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (project, kind, spider, job, start)
) /*postgresql PARTITION BY HASH (project, spider, job)*/;
/*postgresql
CREATE TABLE record_chunks_0 PARTITION OF record_chunks FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE record_chunks_1 PARTITION OF record_chunks FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE record_chunks_2 PARTITION OF record_chunks FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE record_chunks_3 PARTITION OF record_chunks FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE record_chunks_4 PARTITION OF record_chunks FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE record_chunks_5 PARTITION OF record_chunks FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE record_chunks_6 PARTITION OF record_chunks FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE record_chunks_7 PARTITION OF record_chunks FOR VALUES WITH (MODULUS 8, REMAINDER 7);
ALTER TABLE record_chunks ALTER COLUMN body SET STORAGE EXTERNAL; -- it is compressed already
*/

-- A collection's records hang on its number, so that renaming and deleting do not touch them.
CREATE TABLE collections (
    project BIGINT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    collection BIGINT NOT NULL,
    PRIMARY KEY (project, name, type)
);

-- ts_1, value_1, ts_2, value_2: the two copies before the present one, newest first, where the type keeps copies.
CREATE TABLE collection_records (
    project BIGINT NOT NULL,
    collection BIGINT NOT NULL,
    key BYTEA NOT NULL,
    ts BIGINT NOT NULL,
    expires BIGINT,
    value BYTEA NOT NULL,
    ts_1 BIGINT,
    value_1 BYTEA,
    ts_2 BIGINT,
    value_2 BYTEA,
    PRIMARY KEY (project, collection, key)
) /*postgresql PARTITION BY HASH (project, collection)*/;
/*postgresql
CREATE TABLE collection_records_0 PARTITION OF collection_records FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE collection_records_1 PARTITION OF collection_records FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE collection_records_2 PARTITION OF collection_records FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE collection_records_3 PARTITION OF collection_records FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE collection_records_4 PARTITION OF collection_records FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE collection_records_5 PARTITION OF collection_records FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE collection_records_6 PARTITION OF collection_records FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE collection_records_7 PARTITION OF collection_records FOR VALUES WITH (MODULUS 8, REMAINDER 7);
*/
CREATE INDEX collection_records_by_expiry ON collection_records (project, collection, expires)
    WHERE expires IS NOT NULL;

CREATE TABLE frontier_slots (
    project BIGINT NOT NULL,
    frontier TEXT NOT NULL,
    slot TEXT NOT NULL,
    number BIGINT NOT NULL,
    last_batch BIGINT NOT NULL,
    PRIMARY KEY (project, frontier, slot)
);

CREATE TABLE frontier_fingerprints (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    fp BYTEA NOT NULL,
    fdata BYTEA,
    PRIMARY KEY (project, slot, fp)
) /*sqlite WITHOUT ROWID*/ /*postgresql PARTITION BY HASH (project, slot)*/;
/*postgresql
CREATE TABLE frontier_fingerprints_0 PARTITION OF frontier_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE frontier_fingerprints_1 PARTITION OF frontier_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE frontier_fingerprints_2 PARTITION OF frontier_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE frontier_fingerprints_3 PARTITION OF frontier_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE frontier_fingerprints_4 PARTITION OF frontier_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE frontier_fingerprints_5 PARTITION OF frontier_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE frontier_fingerprints_6 PARTITION OF frontier_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE frontier_fingerprints_7 PARTITION OF frontier_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 7);
*/

-- requests: JSON pairs [fp, qdata], joined by commas. fixed: 1 once a client has seen the batch.
CREATE TABLE frontier_batches (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    batch BIGINT NOT NULL,
    size BIGINT NOT NULL,
    fixed BIGINT NOT NULL,
    requests BYTEA NOT NULL,
    PRIMARY KEY (project, slot, priority, batch)
) /*postgresql PARTITION BY HASH (project, slot)*/;
/*postgresql
CREATE TABLE frontier_batches_0 PARTITION OF frontier_batches FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE frontier_batches_1 PARTITION OF frontier_batches FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE frontier_batches_2 PARTITION OF frontier_batches FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE frontier_batches_3 PARTITION OF frontier_batches FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE frontier_batches_4 PARTITION OF frontier_batches FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE frontier_batches_5 PARTITION OF frontier_batches FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE frontier_batches_6 PARTITION OF frontier_batches FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE frontier_batches_7 PARTITION OF frontier_batches FOR VALUES WITH (MODULUS 8, REMAINDER 7);
*/

-- Collections and slots that were deleted by name and whose rows are being removed.
CREATE TABLE discarded (
    project BIGINT NOT NULL,
    kind TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (project, kind, number)
);

CREATE TABLE activity (
    project BIGINT NOT NULL,
    number BIGINT NOT NULL,
    ts BIGINT NOT NULL,
    event BYTEA NOT NULL,
    PRIMARY KEY (project, number)
);
