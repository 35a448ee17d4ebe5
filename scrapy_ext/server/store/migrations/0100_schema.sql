-- The project is first in every key, so that tables can be distributed by project. Numbers come from counters, not from
-- sequences. Keys that are ordered by their bytes are byte strings. On PostgreSQL the large tables are partitioned by the
-- first columns of their keys.

CREATE TABLE counters (
    project BIGINT NOT NULL,
    name TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (project, name)
) /*sqlite WITHOUT ROWID*/;

-- Hashes of API keys by their purpose, the secrets that tokens are signed with, and ended sessions.
CREATE TABLE access_keys (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    created BIGINT NOT NULL
);

-- API keys with names. projects: numbers joined by commas, * for all of them, '' for none. may_write, extraction,
-- suspended: 0 or 1; extraction: access to the extraction service, for an organisation ('': none).
CREATE TABLE api_keys (
    name TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL,
    projects TEXT NOT NULL,
    may_write BIGINT NOT NULL,
    created BIGINT NOT NULL,
    extraction BIGINT NOT NULL DEFAULT 0,
    organisation TEXT NOT NULL DEFAULT '',
    suspended BIGINT NOT NULL DEFAULT 0
);

-- value: JSON.
CREATE TABLE project_settings (
    project BIGINT NOT NULL,
    name TEXT NOT NULL,
    value BYTEA NOT NULL,
    PRIMARY KEY (project, name)
);

-- tags: a JSON array of strings.
CREATE TABLE spiders (
    project BIGINT NOT NULL,
    name TEXT NOT NULL,
    spider BIGINT NOT NULL,
    tags TEXT NOT NULL DEFAULT '[]',
    created BIGINT NOT NULL DEFAULT 0,
    modified BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, name)
);
CREATE UNIQUE INDEX spiders_by_id ON spiders (project, spider);

-- changed: time of the last change of state. unique_key: set while the job is active, if it must be the only one.
-- metadata: a JSON object with all other fields, and with those that the columns repeat for queries. The next job to
-- start is the first by priority and queued, which numbers the jobs of a project. units, node_tags: needs of the job;
-- node_tags is a JSON array of sorted names. since: when the job was scheduled (ms), unchanged when its node is lost.
-- deploy: the version that it was scheduled with; 0: none.
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
    priority BIGINT NOT NULL DEFAULT 2,
    queued BIGINT NOT NULL DEFAULT 0,
    units BIGINT NOT NULL DEFAULT 1,
    node_tags TEXT NOT NULL DEFAULT '[]',
    since BIGINT NOT NULL DEFAULT 0,
    deploy BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, spider, job)
);
CREATE INDEX jobs_by_time ON jobs (project, changed);
CREATE INDEX jobs_by_state ON jobs (project, state, changed);
CREATE UNIQUE INDEX jobs_by_unique_key ON jobs (project, unique_key);
CREATE INDEX jobs_by_spider ON jobs (project, spider, state, changed);
CREATE INDEX jobs_to_start ON jobs (project, priority DESC, queued) WHERE state = 'pending';
CREATE INDEX jobs_to_place ON jobs (node_tags, units, priority DESC, since, project, queued) WHERE state = 'pending';

CREATE TABLE job_tags (
    project BIGINT NOT NULL,
    tag TEXT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    PRIMARY KEY (project, tag, spider, job)
) /*sqlite WITHOUT ROWID*/;
CREATE INDEX job_tags_by_job ON job_tags (project, spider, job, tag);

-- Processes that run jobs. heartbeat: number of the last heartbeat. tags: a JSON array of names. project: the one whose
-- code the process has without a deployed version. draining: 1 when no more jobs are placed on it.
CREATE TABLE nodes (
    node TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    units BIGINT NOT NULL,
    tags TEXT NOT NULL,
    project BIGINT,
    heartbeat BIGINT NOT NULL,
    started BIGINT NOT NULL,
    draining BIGINT NOT NULL DEFAULT 0
);

-- Jobs that are assigned to a node. attempt: number of the attempt at the job; writes of earlier ones are refused.
-- outcome: the close_reason that the job's process has sent, which applies once the process has ended.
CREATE TABLE attempts (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    node TEXT NOT NULL,
    units BIGINT NOT NULL,
    placed BIGINT NOT NULL,
    outcome TEXT,
    PRIMARY KEY (project, spider, job)
);
CREATE INDEX attempts_by_node ON attempts (node);

-- Rows that are locked by processes for an operation that one process does at a time: the placing of jobs.
CREATE TABLE locks (
    name TEXT NOT NULL PRIMARY KEY,
    created BIGINT NOT NULL
);

-- Items, request records, logs and samples: totals by job, and the records in compressed chunks. skipped: number of
-- indexes below the last record that have none. The next record has the index records + skipped.
CREATE TABLE record_totals (
    project BIGINT NOT NULL,
    kind TEXT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    records BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    skipped BIGINT NOT NULL DEFAULT 0,
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

-- times: the numbers of records with the same time, if there are several times; ts is the first time.
CREATE TABLE record_chunks (
    project BIGINT NOT NULL,
    kind TEXT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    start BIGINT NOT NULL,
    records BIGINT NOT NULL,
    ts BIGINT NOT NULL,
    body BYTEA NOT NULL,
    times BYTEA,
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

-- Records refer to the number of their collection, so that renaming and deleting do not change them.
CREATE TABLE collections (
    project BIGINT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    collection BIGINT NOT NULL,
    PRIMARY KEY (project, name, type)
);

-- ts_1, value_1, ts_2, value_2: the two copies before the current one, newest first, if the type keeps copies.
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

-- runs: the sorted runs of the slot's fingerprints, JSON; NULL before the first. stamp: a new random number for each
-- addition, by which a process detects additions of others.
CREATE TABLE frontier_slots (
    project BIGINT NOT NULL,
    frontier TEXT NOT NULL,
    slot TEXT NOT NULL,
    number BIGINT NOT NULL,
    last_batch BIGINT NOT NULL,
    runs BYTEA,
    stamp BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, frontier, slot)
);

-- run: the sorted run of a fingerprint (fingerprints.py).
CREATE TABLE frontier_fingerprints (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    run BIGINT NOT NULL,
    fp BYTEA NOT NULL,
    fdata BYTEA,
    PRIMARY KEY (project, slot, run, fp)
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

-- The fingerprints of packed runs, some hundreds per row (fingerprint_runs.py). first: the lowest of a row. fps: all of
-- them, in order. fdata: their data, if any has some.
CREATE TABLE frontier_fingerprint_blocks (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    run BIGINT NOT NULL,
    first BYTEA NOT NULL,
    fps BYTEA NOT NULL,
    fdata BYTEA,
    PRIMARY KEY (project, slot, run, first)
) /*sqlite WITHOUT ROWID*/;

-- requests: JSON pairs [fp, qdata], joined by commas. fixed: 1 once the batch is full or was read.
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

-- Collections and slots that were deleted by name, and whose rows are removed in steps.
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

-- events: a JSON array of names, which may end in *. failing_since: time (ms) of the first failure since the last
-- success. dropped, given_up: events that were not queued and deliveries that were given up since then.
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

-- number: the number of the activity message. due: when to send it (ms); NULL once it was delivered or given up.
-- outcome: the result of the last attempt.
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

-- definition: a JSON object with the schedule as the API shows it. cron, disabled (0 or 1) and tasks (their number)
-- repeat fields of it for the load per hour. next_run: time of the next run (ms); NULL for none. planned: when that was
-- computed (ms). last_run: the minute (ms) of the last run; last_jobs: the results of its tasks, JSON.
CREATE TABLE periodic_jobs (
    project BIGINT NOT NULL,
    number BIGINT NOT NULL,
    cron TEXT NOT NULL,
    disabled BIGINT NOT NULL,
    tasks BIGINT NOT NULL,
    definition BYTEA NOT NULL,
    next_run BIGINT,
    planned BIGINT NOT NULL DEFAULT 0,
    last_run BIGINT,
    last_jobs TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (project, number)
);
CREATE INDEX periodic_jobs_due ON periodic_jobs (next_run, project, number) WHERE next_run IS NOT NULL;

-- field: empty for a comment on the whole item.
CREATE TABLE comments (
    project BIGINT NOT NULL,
    number BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    item BIGINT NOT NULL,
    field TEXT NOT NULL,
    created BIGINT NOT NULL,
    author TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (project, number)
);
CREATE INDEX comments_by_item ON comments (project, spider, job, item, field, number);

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

-- A row here: a copy into this database has begun and has not ended, so that the rest of it is not whole.
CREATE TABLE copies (
    started BIGINT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL
);
