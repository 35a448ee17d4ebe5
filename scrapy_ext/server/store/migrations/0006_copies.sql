-- A row here: a copy into this database has begun and has not ended, so that the rest of it is not whole.
CREATE TABLE copies (
    started BIGINT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL
);
