-- Fingerprints are packed from the first write on, on both engines (fingerprints.py). frontier_fingerprints and
-- frontier_fingerprint_blocks have those of earlier versions, and stay as they are.

-- fps: up to some hundreds, joined; SQLite keeps a row in one page, and PostgreSQL does not compress it. first: the lowest
-- of them; in the open run of a slot, the number of the row.
CREATE TABLE frontier_packed_fingerprints (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    run BIGINT NOT NULL,
    first BYTEA NOT NULL,
    fps BYTEA NOT NULL,
    PRIMARY KEY (project, slot, run, first)
) /*postgresql PARTITION BY HASH (project, slot)*/;
/*postgresql
CREATE TABLE frontier_packed_fingerprints_0 PARTITION OF frontier_packed_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 0)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_packed_fingerprints_1 PARTITION OF frontier_packed_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 1)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_packed_fingerprints_2 PARTITION OF frontier_packed_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 2)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_packed_fingerprints_3 PARTITION OF frontier_packed_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 3)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_packed_fingerprints_4 PARTITION OF frontier_packed_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 4)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_packed_fingerprints_5 PARTITION OF frontier_packed_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 5)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_packed_fingerprints_6 PARTITION OF frontier_packed_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 6)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_packed_fingerprints_7 PARTITION OF frontier_packed_fingerprints FOR VALUES WITH (MODULUS 8, REMAINDER 7)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE frontier_packed_fingerprints_0 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_packed_fingerprints_1 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_packed_fingerprints_2 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_packed_fingerprints_3 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_packed_fingerprints_4 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_packed_fingerprints_5 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_packed_fingerprints_6 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_packed_fingerprints_7 ALTER COLUMN fps SET STORAGE EXTERNAL;
*/

-- Fingerprints of more than 512 bytes: beginning has the first of them, and hash is that of all (BLAKE2b, 32 bytes).
CREATE TABLE frontier_long_fingerprints (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    beginning BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    fp BYTEA NOT NULL,
    PRIMARY KEY (project, slot, beginning, hash)
);

-- fdata of fingerprints, by a random number of their addition and their place in it.
CREATE TABLE frontier_fingerprint_data (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    addition BIGINT NOT NULL,
    place BIGINT NOT NULL,
    fp BYTEA NOT NULL,
    fdata BYTEA NOT NULL,
    PRIMARY KEY (project, slot, addition, place)
);
