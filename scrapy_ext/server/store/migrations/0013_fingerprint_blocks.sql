-- The fingerprints of runs that are not added to any more, some hundreds in a row (fingerprint_runs.py).
-- first: the lowest of them. fps: all, in order. fdata: theirs, if any of them has some.
CREATE TABLE frontier_fingerprint_blocks (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    run BIGINT NOT NULL,
    first BYTEA NOT NULL,
    fps BYTEA NOT NULL,
    fdata BYTEA,
    PRIMARY KEY (project, slot, run, first)
) /*sqlite WITHOUT ROWID*/;
