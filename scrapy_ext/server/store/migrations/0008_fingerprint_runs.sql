-- run: which sorted run of its slot a fingerprint is in (fingerprints.py); those from before are in run 1.
/*sqlite
CREATE TABLE fingerprints_by_run (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    run BIGINT NOT NULL,
    fp BYTEA NOT NULL,
    fdata BYTEA,
    PRIMARY KEY (project, slot, run, fp)
) WITHOUT ROWID;
INSERT INTO fingerprints_by_run SELECT project, slot, 1, fp, fdata FROM frontier_fingerprints;
DROP TABLE frontier_fingerprints;
ALTER TABLE fingerprints_by_run RENAME TO frontier_fingerprints;
*/
/*postgresql
ALTER TABLE frontier_fingerprints ADD COLUMN run BIGINT NOT NULL DEFAULT 1;
ALTER TABLE frontier_fingerprints DROP CONSTRAINT frontier_fingerprints_pkey;
ALTER TABLE frontier_fingerprints ADD PRIMARY KEY (project, slot, run, fp);
*/

-- runs: JSON, NULL for run 1 alone. stamp: drawn anew by whoever adds, so that a process knows what it remembers.
ALTER TABLE frontier_slots ADD COLUMN runs BYTEA;
ALTER TABLE frontier_slots ADD COLUMN stamp BIGINT NOT NULL DEFAULT 0;
