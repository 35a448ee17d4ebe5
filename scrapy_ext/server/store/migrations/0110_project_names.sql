-- Names of projects. A project without a row has its number alone.
CREATE TABLE project_names (
    project BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
);
CREATE UNIQUE INDEX project_names_by_name ON project_names (name);
