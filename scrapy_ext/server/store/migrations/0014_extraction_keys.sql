-- Keys with names open the extraction service too. extraction, suspended: 0 or 1. organisation: '' for none. Keys that
-- open nothing of the platform have '' as projects.
ALTER TABLE api_keys ADD COLUMN extraction BIGINT NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN organisation TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN suspended BIGINT NOT NULL DEFAULT 0;
