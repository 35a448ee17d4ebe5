-- Removal of records. removed: when the records became unreadable (ms); NULL: they are readable. archive: URL of the
-- delivery that has them. stored: bytes of the chunks; NULL: not counted yet. revision: number of changes.
ALTER TABLE record_totals ADD COLUMN stored BIGINT;
ALTER TABLE record_totals ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE record_totals ADD COLUMN removed BIGINT;
ALTER TABLE record_totals ADD COLUMN archive TEXT;
CREATE INDEX record_totals_removed ON record_totals (project, kind, spider, job) WHERE removed IS NOT NULL;

-- Owners whose rows are removed in steps: collections and slots (number), jobs and kinds of their records (number: the
-- spider, part: the job). bytes: those of the chunks to remove, if known.
CREATE TABLE removals (
    project BIGINT NOT NULL,
    kind TEXT NOT NULL,
    number BIGINT NOT NULL,
    part BIGINT NOT NULL DEFAULT 0,
    bytes BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, kind, number, part)
);
INSERT INTO removals (project, kind, number) SELECT project, kind, number FROM discarded;
DROP TABLE discarded;

-- Jobs that were deleted before their records were removed.
INSERT INTO removals (project, kind, number, part)
    SELECT project, 'job', spider, job FROM jobs WHERE state = 'deleted';
INSERT INTO removals (project, kind, number, part)
    SELECT t.project, t.kind, t.spider, t.job FROM record_totals t
    JOIN jobs j ON j.project = t.project AND j.spider = t.spider AND j.job = t.job WHERE j.state = 'deleted';
INSERT INTO record_totals (project, kind, spider, job, records, bytes)
    SELECT j.project, k.kind, j.spider, j.job, 0, 0 FROM jobs j
    CROSS JOIN (SELECT 'items' AS kind UNION ALL SELECT 'requests' UNION ALL SELECT 'logs' UNION ALL SELECT 'samples') k
    WHERE j.state = 'deleted'
    ON CONFLICT (project, kind, spider, job) DO NOTHING;
UPDATE record_totals SET records = 0, bytes = 0, skipped = 0, stored = 0, removed = (
    SELECT changed FROM jobs
    WHERE jobs.project = record_totals.project AND jobs.spider = record_totals.spider AND jobs.job = record_totals.job
) WHERE EXISTS (
    SELECT 1 FROM jobs WHERE jobs.project = record_totals.project AND jobs.spider = record_totals.spider
    AND jobs.job = record_totals.job AND jobs.state = 'deleted'
);
