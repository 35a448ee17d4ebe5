-- Indexes by which old rows are found.
CREATE INDEX jobs_deleted ON jobs (changed, project, spider, job) WHERE state = 'deleted';
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (created, project, webhook, number) WHERE due IS NULL;
CREATE INDEX collections_expiring ON collections (project, collection) WHERE type IN ('cs', 'vcs');
