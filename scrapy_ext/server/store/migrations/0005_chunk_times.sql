-- times: how many records of the chunk are of which time, where they are of several; ts is then that of the first.
ALTER TABLE record_chunks ADD COLUMN times BYTEA;
