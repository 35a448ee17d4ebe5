-- An index of PostgreSQL whose condition names a column makes every update of that column one of all indexes of its row.
-- "stored" changes with each chunk. So what is not counted yet has a column of its own, which never changes meanwhile.
DROP INDEX record_totals_uncounted;
ALTER TABLE record_totals ADD COLUMN uncounted SMALLINT;
UPDATE record_totals SET uncounted = 1 WHERE stored IS NULL AND removed IS NULL;
CREATE INDEX record_totals_uncounted ON record_totals (project, kind, spider, job) WHERE uncounted = 1;
