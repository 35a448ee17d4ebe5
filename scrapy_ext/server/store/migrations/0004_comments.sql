-- field: empty for a comment on the whole item.
CREATE TABLE comments (
    project BIGINT NOT NULL,
    number BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    item BIGINT NOT NULL,
    field TEXT NOT NULL,
    created BIGINT NOT NULL,
    author TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (project, number)
);
CREATE INDEX comments_by_item ON comments (project, spider, job, item, field, number);
