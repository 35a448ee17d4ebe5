-- Finished jobs, and runs of periodic jobs, that monitors have not checked yet. kind: job or run. subject, part: spider
-- and job, or the number of the periodic job and the minute (ms). ts: the end of the job, or the minute. due: when to
-- check it (ms). detail: a JSON object about a run.
CREATE TABLE monitor_queue (
    project BIGINT NOT NULL,
    kind TEXT NOT NULL,
    subject BIGINT NOT NULL,
    part BIGINT NOT NULL,
    ts BIGINT NOT NULL,
    due BIGINT NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0,
    detail BYTEA,
    PRIMARY KEY (project, kind, subject, part)
);
CREATE INDEX monitor_queue_due ON monitor_queue (due, project, kind, subject, part);

-- Results of monitors for finished jobs. of_server: 1 for a monitor of the server. finished: the end of the job. result:
-- a JSON object as the API shows it.
CREATE TABLE monitor_results (
    project BIGINT NOT NULL,
    spider BIGINT NOT NULL,
    job BIGINT NOT NULL,
    of_server BIGINT NOT NULL,
    rule BIGINT NOT NULL,
    finished BIGINT NOT NULL,
    checked BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    result BYTEA NOT NULL,
    PRIMARY KEY (project, spider, job, of_server, rule)
);
CREATE INDEX monitor_results_by_time ON monitor_results (project, checked, spider, job);
CREATE INDEX monitor_results_by_rule ON monitor_results (project, of_server, rule, checked);

-- Successful runs that are expected: every: the longest time (ms) from one end to the next. since: the end of the last
-- one, or when the monitor was enabled. failing: 1 when the next one is overdue, which was reported.
CREATE TABLE monitor_expected (
    project BIGINT NOT NULL,
    rule BIGINT NOT NULL,
    every BIGINT NOT NULL,
    since BIGINT NOT NULL,
    job TEXT,
    failing BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, rule)
);

-- Monitors that fail for a spider and its arguments (a hash). jobs: number of failures. job: the last one. over: when it
-- passed again; NULL while it fails. announced: 1 once a message has it.
CREATE TABLE monitor_incidents (
    project BIGINT NOT NULL,
    spider TEXT NOT NULL,
    of_server BIGINT NOT NULL,
    rule BIGINT NOT NULL,
    arguments TEXT NOT NULL,
    name TEXT NOT NULL,
    since BIGINT NOT NULL,
    last BIGINT NOT NULL,
    jobs BIGINT NOT NULL,
    job TEXT,
    sentence TEXT NOT NULL,
    over BIGINT,
    announced BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project, spider, of_server, rule, arguments)
);
CREATE INDEX monitor_incidents_old ON monitor_incidents (last);

-- Spiders about which a message is due, at a time (ms).
CREATE TABLE alert_groups (
    project BIGINT NOT NULL,
    spider TEXT NOT NULL,
    due BIGINT NOT NULL,
    PRIMARY KEY (project, spider)
);
CREATE INDEX alert_groups_due ON alert_groups (due, project, spider);

-- Receivers of messages. url: an address of Apprise, with its credentials. failing_since: time (ms) of the first failure
-- since the last success. outcome: the result of the last attempt.
CREATE TABLE alert_targets (
    project BIGINT NOT NULL,
    number BIGINT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    created BIGINT NOT NULL,
    disabled BIGINT NOT NULL DEFAULT 0,
    failing_since BIGINT,
    outcome TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (project, number)
);

-- Messages to them. kind: alert, reminder, recovery or test. due: when to send it (ms); NULL once it was sent or given up.
CREATE TABLE alert_messages (
    project BIGINT NOT NULL,
    target BIGINT NOT NULL,
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    created BIGINT NOT NULL,
    due BIGINT,
    attempts BIGINT NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'pending',
    outcome TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (project, target, number)
);
CREATE INDEX alert_messages_due ON alert_messages (due, project, target, number) WHERE due IS NOT NULL;
CREATE INDEX alert_messages_by_age ON alert_messages (created, project, target, number) WHERE due IS NULL;
