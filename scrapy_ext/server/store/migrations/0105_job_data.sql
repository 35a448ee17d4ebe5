-- Data that jobs keep outside their records (frontiers, staged items), and their places in lists.

-- Places of deleted jobs in the lists of jobs: changed is the time of the last change before the deletion. A client that
-- reads lists up to such a job continues after its place.
CREATE TABLE job_places (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    deleted BIGINT NOT NULL,
    PRIMARY KEY (project, spider, job)
);
CREATE INDEX job_places_by_age ON job_places (project, deleted);

-- The frontiers in which a job has a journal.
CREATE INDEX frontier_slots_by_slot ON frontier_slots (project, slot);

-- Jobs that were deleted before their frontiers and staged items were removed.
INSERT INTO removals (project, kind, number)
    SELECT s.project, 'slot', s.number FROM frontier_slots s
    JOIN jobs j ON j.project = s.project AND s.frontier = 'job-' || j.spider || '-' || j.job
    WHERE j.state = 'deleted'
    ON CONFLICT DO NOTHING;
DELETE FROM frontier_slots WHERE EXISTS (
    SELECT 1 FROM jobs j WHERE j.project = frontier_slots.project AND j.state = 'deleted'
    AND frontier_slots.frontier = 'job-' || j.spider || '-' || j.job
);
INSERT INTO removals (project, kind, number, part)
    SELECT project, 'staged', spider, job FROM jobs WHERE state = 'deleted'
    ON CONFLICT DO NOTHING;
