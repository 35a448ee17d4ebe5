-- Fingerprints are written in blocks from the first on, on both engines (fingerprints.py); frontier_fingerprints has those of
-- earlier versions, which merges move into blocks. SQLite keeps a block in one page now, and PostgreSQL does not compress it.
-- first: the beginning of the lowest fingerprint of a row; in an open run, the number of the row.
ALTER TABLE frontier_fingerprint_blocks RENAME TO frontier_earlier_blocks;
CREATE TABLE frontier_fingerprint_blocks (
    project BIGINT NOT NULL,
    slot BIGINT NOT NULL,
    run BIGINT NOT NULL,
    first BYTEA NOT NULL,
    fps BYTEA NOT NULL,
    fdata BYTEA,
    PRIMARY KEY (project, slot, run, first)
) /*postgresql PARTITION BY HASH (project, slot)*/;
/*postgresql
CREATE TABLE frontier_fingerprint_blocks_0 PARTITION OF frontier_fingerprint_blocks FOR VALUES WITH (MODULUS 8, REMAINDER 0)
    WITH (toast_tuple_target = 8160,
          autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_fingerprint_blocks_1 PARTITION OF frontier_fingerprint_blocks FOR VALUES WITH (MODULUS 8, REMAINDER 1)
    WITH (toast_tuple_target = 8160,
          autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_fingerprint_blocks_2 PARTITION OF frontier_fingerprint_blocks FOR VALUES WITH (MODULUS 8, REMAINDER 2)
    WITH (toast_tuple_target = 8160,
          autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_fingerprint_blocks_3 PARTITION OF frontier_fingerprint_blocks FOR VALUES WITH (MODULUS 8, REMAINDER 3)
    WITH (toast_tuple_target = 8160,
          autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_fingerprint_blocks_4 PARTITION OF frontier_fingerprint_blocks FOR VALUES WITH (MODULUS 8, REMAINDER 4)
    WITH (toast_tuple_target = 8160,
          autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_fingerprint_blocks_5 PARTITION OF frontier_fingerprint_blocks FOR VALUES WITH (MODULUS 8, REMAINDER 5)
    WITH (toast_tuple_target = 8160,
          autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_fingerprint_blocks_6 PARTITION OF frontier_fingerprint_blocks FOR VALUES WITH (MODULUS 8, REMAINDER 6)
    WITH (toast_tuple_target = 8160,
          autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE frontier_fingerprint_blocks_7 PARTITION OF frontier_fingerprint_blocks FOR VALUES WITH (MODULUS 8, REMAINDER 7)
    WITH (toast_tuple_target = 8160,
          autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE frontier_fingerprint_blocks_0 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_fingerprint_blocks_1 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_fingerprint_blocks_2 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_fingerprint_blocks_3 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_fingerprint_blocks_4 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_fingerprint_blocks_5 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_fingerprint_blocks_6 ALTER COLUMN fps SET STORAGE EXTERNAL;
ALTER TABLE frontier_fingerprint_blocks_7 ALTER COLUMN fps SET STORAGE EXTERNAL;
*/
INSERT INTO frontier_fingerprint_blocks SELECT * FROM frontier_earlier_blocks;
DROP TABLE frontier_earlier_blocks;
