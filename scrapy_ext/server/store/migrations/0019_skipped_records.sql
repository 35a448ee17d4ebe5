-- skipped: how many indexes below that of the last record have no record. The next record goes to records + skipped.
ALTER TABLE record_totals ADD COLUMN skipped BIGINT NOT NULL DEFAULT 0;
