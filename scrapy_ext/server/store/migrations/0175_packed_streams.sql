-- Segments of request records that are no longer the newest of their stream, many in a row: records counts those of all,
-- and packed (MessagePack) has the number of each segment and its distance from the one before in the job, in turn.
-- number: of the segment in its stream, from 0.
ALTER TABLE record_streams ADD COLUMN number BIGINT NOT NULL DEFAULT 0;
ALTER TABLE record_streams ADD COLUMN packed BYTEA;
