-- definition: a JSON object with the schedule as the API shows it. cron, disabled (0 or 1) and tasks (how many it has)
-- repeat what the load of the hours is computed from.
CREATE TABLE periodic_jobs (
    project BIGINT NOT NULL,
    number BIGINT NOT NULL,
    cron TEXT NOT NULL,
    disabled BIGINT NOT NULL,
    tasks BIGINT NOT NULL,
    definition BYTEA NOT NULL,
    PRIMARY KEY (project, number)
);
