-- Frontiers into which requests are pushed. slots: number of slots. accepting: 1 while a job's own frontier accepts requests;
-- a frontier that a user has named always does. own_fingerprints: 1 if the crawl has a fingerprinter of its own.
CREATE TABLE frontier_feeds (
    project BIGINT NOT NULL,
    frontier TEXT NOT NULL,
    slots BIGINT NOT NULL,
    accepting SMALLINT NOT NULL,
    own_fingerprints SMALLINT NOT NULL,
    PRIMARY KEY (project, frontier)
);
