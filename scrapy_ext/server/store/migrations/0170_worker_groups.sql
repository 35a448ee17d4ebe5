-- Attempts of several workers at a job. Neither engine changes a primary key in the same way, so the table is made anew.
-- worker: its number in the job, 0 for a job of one. reports: number of the last report, by which others detect that it
-- is silent. state: JSON of the last report: queue, wishes for permits, whether it is idle. stats: JSON, values with
-- their kinds. node '': a worker of a group on one machine, which no node runs.
CREATE TABLE attempts_of_workers (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    node TEXT NOT NULL,
    units BIGINT NOT NULL,
    placed BIGINT NOT NULL,
    outcome TEXT,
    worker BIGINT NOT NULL DEFAULT 0,
    reports BIGINT NOT NULL DEFAULT 0,
    state BYTEA,
    stats BYTEA,
    PRIMARY KEY (project, spider, job, attempt)
);
INSERT INTO attempts_of_workers (project, spider, job, attempt, node, units, placed, outcome)
    SELECT project, spider, job, attempt, node, units, placed, outcome FROM attempts;
DROP TABLE attempts;
ALTER TABLE attempts_of_workers RENAME TO attempts;
CREATE INDEX attempts_by_node ON attempts (node);

-- Groups of workers. least, most: bounds of their number; target: the present one, changed (ms) then. last_attempt: the
-- highest number given. closing: JSON {reason, by, attempt}, written once. start_attempt: the worker that runs start();
-- started: 1 once start() is at its end and its requests are committed. stats: JSON, those of workers that have ended.
CREATE TABLE worker_groups (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    least BIGINT NOT NULL,
    most BIGINT NOT NULL,
    target BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    last_attempt BIGINT NOT NULL DEFAULT 0,
    closing BYTEA,
    start_attempt BIGINT,
    started SMALLINT NOT NULL DEFAULT 0,
    losses BIGINT NOT NULL DEFAULT 0,
    stats BYTEA,
    PRIMARY KEY (project, spider, job)
);

-- Where records of streams are in the job: the records from start on of a writer's stream are those from place on.
CREATE TABLE record_streams (
    project BIGINT NOT NULL,
    kind TEXT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    writer BIGINT NOT NULL,
    start BIGINT NOT NULL,
    place BIGINT NOT NULL,
    records BIGINT NOT NULL,
    PRIMARY KEY (project, kind, spider, job, writer, start)
) /*sqlite WITHOUT ROWID*/;

-- Times of a domain in a job, on the clock of the database (ms). next_start: first one that is not reserved.
CREATE TABLE group_domains (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    domain TEXT NOT NULL,
    next_start BIGINT NOT NULL DEFAULT 0,
    paused_until BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, spider, job, domain)
) /*sqlite WITHOUT ROWID*/;

-- Permits and grants by attempt. name: 'domain:…' or 'budget:…'. amount: what it may use. Of a permit: most, want and
-- delay (ms) that it has reported, and expires (ms, on the clock of the database). Of a grant, which does not expire:
-- used, as it has reported. Attempt 0 of a budget: what was used before the job had a group.
CREATE TABLE group_shares (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    name TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    used BIGINT NOT NULL DEFAULT 0,
    most BIGINT NOT NULL DEFAULT 0,
    want BIGINT NOT NULL DEFAULT 0,
    delay BIGINT NOT NULL DEFAULT 0,
    expires BIGINT,
    PRIMARY KEY (project, spider, job, name, attempt)
) /*sqlite WITHOUT ROWID*/;

-- Jobs: number of places of its group without a worker. PostgreSQL changes all indexes of a row when a column in a
-- condition changes (see 0108_hot_totals.sql); this one changes rarely.
ALTER TABLE jobs ADD COLUMN vacant BIGINT NOT NULL DEFAULT 0;
CREATE INDEX jobs_to_fill ON jobs (node_tags, units, priority DESC, since, project, queued)
    WHERE state = 'running' AND vacant > 0;
-- 1: the slot of a request follows from its host and fingerprint; 0: from its host.
ALTER TABLE frontier_feeds ADD COLUMN spread SMALLINT NOT NULL DEFAULT 0;
