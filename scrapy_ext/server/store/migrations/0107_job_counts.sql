-- Large numbers of jobs. The numbers of jobs by spider and state are kept, so that none of a million is read to count
-- them. The indexes of lists have the whole order of a list, so that no part of it is sorted; each state is read by
-- itself, so that the one by time alone has no use.

CREATE TABLE job_counts (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    state TEXT NOT NULL,
    jobs BIGINT NOT NULL,
    PRIMARY KEY (project, spider, state)
) /*sqlite WITHOUT ROWID*/;
INSERT INTO job_counts (project, spider, state, jobs)
    SELECT project, spider, state, count(*) FROM jobs GROUP BY project, spider, state;

DROP INDEX jobs_by_time;
DROP INDEX jobs_by_state;
DROP INDEX jobs_by_spider;
CREATE INDEX jobs_by_state ON jobs (project, state, changed, spider, job);
CREATE INDEX jobs_by_spider ON jobs (project, spider, state, changed, job);
