-- When a periodic job runs next (ms); NULL when it is disabled or never does. planned: when that was computed (ms), 0
-- when it was not yet. last_run: the minute (ms) that it ran for last; last_jobs: what became of its tasks then, JSON.
ALTER TABLE periodic_jobs ADD COLUMN next_run BIGINT;
ALTER TABLE periodic_jobs ADD COLUMN planned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE periodic_jobs ADD COLUMN last_run BIGINT;
ALTER TABLE periodic_jobs ADD COLUMN last_jobs TEXT NOT NULL DEFAULT '[]';
CREATE INDEX periodic_jobs_due ON periodic_jobs (next_run, project, number) WHERE next_run IS NOT NULL;
