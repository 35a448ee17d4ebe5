-- priority repeats what the metadata says; queued numbers the jobs of a project as they come. The next job to start
-- is the first by both.
ALTER TABLE jobs ADD COLUMN priority BIGINT NOT NULL DEFAULT 2;
ALTER TABLE jobs ADD COLUMN queued BIGINT NOT NULL DEFAULT 0;
CREATE INDEX jobs_to_start ON jobs (project, priority DESC, queued) WHERE state = 'pending';
CREATE INDEX jobs_by_spider ON jobs (project, spider, state, changed);
CREATE INDEX job_tags_by_job ON job_tags (project, spider, job, tag);

-- tags: a JSON array of strings.
ALTER TABLE spiders ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE spiders ADD COLUMN created BIGINT NOT NULL DEFAULT 0;
ALTER TABLE spiders ADD COLUMN modified BIGINT NOT NULL DEFAULT 0;

-- value: JSON.
CREATE TABLE project_settings (
    project BIGINT NOT NULL,
    name TEXT NOT NULL,
    value BYTEA NOT NULL,
    PRIMARY KEY (project, name)
);
