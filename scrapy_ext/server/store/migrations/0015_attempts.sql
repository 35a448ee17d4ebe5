-- units, node_tags: what a job needs of the node that runs it; node_tags is a JSON array of sorted names. since: when it
-- was scheduled (ms), which stays as it is when it has to wait once more. Jobs that need the same stand in one queue.
ALTER TABLE jobs ADD COLUMN units BIGINT NOT NULL DEFAULT 1;
ALTER TABLE jobs ADD COLUMN node_tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE jobs ADD COLUMN since BIGINT NOT NULL DEFAULT 0;
UPDATE jobs SET since = changed;
CREATE INDEX jobs_to_place ON jobs (node_tags, units, priority DESC, since, project, queued) WHERE state = 'pending';

-- Processes that run jobs. beat counts up while the process lives. tags: a JSON array of names. project: the one whose
-- code the process has without a deployed version. draining: 1 when it takes no more jobs.
CREATE TABLE nodes (
    node TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    units BIGINT NOT NULL,
    tags TEXT NOT NULL,
    project BIGINT,
    beat BIGINT NOT NULL,
    started BIGINT NOT NULL,
    draining BIGINT NOT NULL DEFAULT 0
);

-- Jobs that a node has now. attempt counts how often the job was given to one: what an earlier attempt writes is
-- refused. outcome: the close_reason that the job's process has written; it counts once the process has ended.
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

-- A row that whoever places a job holds for so long.
CREATE TABLE turns (
    name TEXT NOT NULL PRIMARY KEY,
    taken BIGINT NOT NULL
);
