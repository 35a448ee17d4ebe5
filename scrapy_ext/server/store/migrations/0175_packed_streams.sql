-- Segments of request records that are no longer the newest of their stream, many in a row: records counts those of all,
-- and packed (MessagePack) has the number of each segment and its distance from the one before in the job, in turn.
ALTER TABLE record_streams ADD COLUMN packed BYTEA;
