-- The queue of monitors has all finished jobs; detail: "unwatched" for one that is judged and not checked.
-- verdict: of a finished job, 0 to 3 (api/platform/verdicts.py); 0: none, or not judged yet.
ALTER TABLE jobs ADD COLUMN verdict SMALLINT NOT NULL DEFAULT 0;
CREATE INDEX jobs_in_need ON jobs (project, state, changed, spider, job) WHERE verdict >= 2;

-- What the verdicts on finished jobs are about. finished: the end of the job (ms). arguments: a hash; empty without any.
-- took: in ms, NULL if it never ran. reasons, errors: JSON arrays. error_lines: number of errors in the log. error: the
-- most frequent one, in a line. errors and error are removed with the log.
CREATE TABLE job_verdicts (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    finished BIGINT NOT NULL,
    verdict SMALLINT NOT NULL,
    arguments TEXT NOT NULL,
    close_reason TEXT NOT NULL,
    items BIGINT NOT NULL,
    error_lines BIGINT NOT NULL,
    took BIGINT,
    reasons BYTEA NOT NULL,
    errors BYTEA NOT NULL,
    error TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (project, spider, job)
);
CREATE INDEX job_verdicts_by_time ON job_verdicts (project, spider, finished, job);
CREATE INDEX job_verdicts_alike ON job_verdicts (project, spider, arguments, finished, job);

-- The last runs of each spider, and its verdict that follows from them and from its lasting incidents. health: a
-- JSON object.
CREATE TABLE spider_health (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    verdict SMALLINT NOT NULL,
    finished BIGINT NOT NULL,
    health BYTEA NOT NULL,
    PRIMARY KEY (project, spider)
);
CREATE INDEX spider_health_worst ON spider_health (project, verdict, finished, spider);
