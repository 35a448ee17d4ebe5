CREATE TABLE public.access_keys (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL
);

CREATE TABLE public.activity (
    project bigint NOT NULL,
    number bigint NOT NULL,
    ts bigint NOT NULL,
    event bytea NOT NULL
);

CREATE TABLE public.alert_groups (
    project bigint NOT NULL,
    spider text NOT NULL COLLATE pg_catalog."C",
    due bigint NOT NULL
);

CREATE TABLE public.alert_messages (
    project bigint NOT NULL,
    target bigint NOT NULL,
    number bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL,
    due bigint,
    attempts bigint DEFAULT 0 NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL COLLATE pg_catalog."C",
    outcome text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.alert_targets (
    project bigint NOT NULL,
    number bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL,
    disabled bigint DEFAULT 0 NOT NULL,
    failing_since bigint,
    outcome text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.api_keys (
    name text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    projects text NOT NULL COLLATE pg_catalog."C",
    may_write bigint NOT NULL,
    created bigint NOT NULL,
    extraction bigint DEFAULT 0 NOT NULL,
    organisation text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    suspended bigint DEFAULT 0 NOT NULL,
    may_run bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.attempts (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    attempt bigint NOT NULL,
    node text NOT NULL COLLATE pg_catalog."C",
    units bigint NOT NULL,
    placed bigint NOT NULL,
    outcome text COLLATE pg_catalog."C",
    worker bigint DEFAULT 0 NOT NULL,
    reports bigint DEFAULT 0 NOT NULL,
    state bytea,
    stats bytea
);

CREATE TABLE public.collection_records (
    project bigint NOT NULL,
    collection bigint NOT NULL,
    key bytea NOT NULL,
    ts bigint NOT NULL,
    expires bigint,
    value bytea NOT NULL,
    ts_1 bigint,
    value_1 bytea,
    ts_2 bigint,
    value_2 bytea
)
PARTITION BY HASH (project, collection);

CREATE TABLE public.collection_records_0 (
    project bigint NOT NULL,
    collection bigint NOT NULL,
    key bytea NOT NULL,
    ts bigint NOT NULL,
    expires bigint,
    value bytea NOT NULL,
    ts_1 bigint,
    value_1 bytea,
    ts_2 bigint,
    value_2 bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.collection_records_1 (
    project bigint NOT NULL,
    collection bigint NOT NULL,
    key bytea NOT NULL,
    ts bigint NOT NULL,
    expires bigint,
    value bytea NOT NULL,
    ts_1 bigint,
    value_1 bytea,
    ts_2 bigint,
    value_2 bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.collection_records_2 (
    project bigint NOT NULL,
    collection bigint NOT NULL,
    key bytea NOT NULL,
    ts bigint NOT NULL,
    expires bigint,
    value bytea NOT NULL,
    ts_1 bigint,
    value_1 bytea,
    ts_2 bigint,
    value_2 bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.collection_records_3 (
    project bigint NOT NULL,
    collection bigint NOT NULL,
    key bytea NOT NULL,
    ts bigint NOT NULL,
    expires bigint,
    value bytea NOT NULL,
    ts_1 bigint,
    value_1 bytea,
    ts_2 bigint,
    value_2 bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.collection_records_4 (
    project bigint NOT NULL,
    collection bigint NOT NULL,
    key bytea NOT NULL,
    ts bigint NOT NULL,
    expires bigint,
    value bytea NOT NULL,
    ts_1 bigint,
    value_1 bytea,
    ts_2 bigint,
    value_2 bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.collection_records_5 (
    project bigint NOT NULL,
    collection bigint NOT NULL,
    key bytea NOT NULL,
    ts bigint NOT NULL,
    expires bigint,
    value bytea NOT NULL,
    ts_1 bigint,
    value_1 bytea,
    ts_2 bigint,
    value_2 bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.collection_records_6 (
    project bigint NOT NULL,
    collection bigint NOT NULL,
    key bytea NOT NULL,
    ts bigint NOT NULL,
    expires bigint,
    value bytea NOT NULL,
    ts_1 bigint,
    value_1 bytea,
    ts_2 bigint,
    value_2 bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.collection_records_7 (
    project bigint NOT NULL,
    collection bigint NOT NULL,
    key bytea NOT NULL,
    ts bigint NOT NULL,
    expires bigint,
    value bytea NOT NULL,
    ts_1 bigint,
    value_1 bytea,
    ts_2 bigint,
    value_2 bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.collections (
    project bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    collection bigint NOT NULL
);

CREATE TABLE public.comments (
    project bigint NOT NULL,
    number bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    item bigint NOT NULL,
    field text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL,
    author text NOT NULL COLLATE pg_catalog."C",
    content text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.copies (
    started bigint NOT NULL,
    source text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.counters (
    project bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    value bigint NOT NULL
);

CREATE TABLE public.current_versions (
    project bigint NOT NULL,
    deploy bigint NOT NULL
);

CREATE TABLE public.deliveries (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    delivery text NOT NULL COLLATE pg_catalog."C",
    rule bigint NOT NULL,
    of_server bigint DEFAULT 0 NOT NULL,
    folder text NOT NULL COLLATE pg_catalog."C",
    object text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL,
    records bigint NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL COLLATE pg_catalog."C",
    manifest text NOT NULL COLLATE pg_catalog."C",
    finished bigint NOT NULL,
    reported bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.delivery_attempts (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    delivery text NOT NULL COLLATE pg_catalog."C",
    folder text NOT NULL COLLATE pg_catalog."C",
    token bigint NOT NULL,
    expires bigint NOT NULL
);

CREATE TABLE public.freed (
    project bigint NOT NULL,
    rows_deleted bigint NOT NULL,
    bytes bigint NOT NULL
);

CREATE TABLE public.frontier_batches (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
)
PARTITION BY HASH (project, slot);

CREATE TABLE public.frontier_batches_0 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_batches_1 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_batches_2 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_batches_3 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_batches_4 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_batches_5 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_batches_6 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_batches_7 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_feeds (
    project bigint NOT NULL,
    frontier text NOT NULL COLLATE pg_catalog."C",
    slots bigint NOT NULL,
    accepting smallint NOT NULL,
    own_fingerprints smallint NOT NULL,
    spread smallint DEFAULT 0 NOT NULL
);

CREATE TABLE public.frontier_fingerprint_blocks (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL,
    fdata bytea
);

CREATE TABLE public.frontier_fingerprint_data (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    addition bigint NOT NULL,
    place bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea NOT NULL
);

CREATE TABLE public.frontier_fingerprints (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
)
PARTITION BY HASH (project, slot);

CREATE TABLE public.frontier_fingerprints_0 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_fingerprints_1 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_fingerprints_2 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_fingerprints_3 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_fingerprints_4 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_fingerprints_5 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_fingerprints_6 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_fingerprints_7 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');

CREATE TABLE public.frontier_long_fingerprints (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    beginning bytea NOT NULL,
    hash bytea NOT NULL,
    fp bytea NOT NULL
);

CREATE TABLE public.frontier_packed_fingerprints (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL
)
PARTITION BY HASH (project, slot);

CREATE TABLE public.frontier_packed_fingerprints_0 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL
)
WITH (toast_tuple_target='8160', autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.frontier_packed_fingerprints_0 ALTER COLUMN fps SET STORAGE EXTERNAL;

CREATE TABLE public.frontier_packed_fingerprints_1 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL
)
WITH (toast_tuple_target='8160', autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.frontier_packed_fingerprints_1 ALTER COLUMN fps SET STORAGE EXTERNAL;

CREATE TABLE public.frontier_packed_fingerprints_2 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL
)
WITH (toast_tuple_target='8160', autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.frontier_packed_fingerprints_2 ALTER COLUMN fps SET STORAGE EXTERNAL;

CREATE TABLE public.frontier_packed_fingerprints_3 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL
)
WITH (toast_tuple_target='8160', autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.frontier_packed_fingerprints_3 ALTER COLUMN fps SET STORAGE EXTERNAL;

CREATE TABLE public.frontier_packed_fingerprints_4 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL
)
WITH (toast_tuple_target='8160', autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.frontier_packed_fingerprints_4 ALTER COLUMN fps SET STORAGE EXTERNAL;

CREATE TABLE public.frontier_packed_fingerprints_5 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL
)
WITH (toast_tuple_target='8160', autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.frontier_packed_fingerprints_5 ALTER COLUMN fps SET STORAGE EXTERNAL;

CREATE TABLE public.frontier_packed_fingerprints_6 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL
)
WITH (toast_tuple_target='8160', autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.frontier_packed_fingerprints_6 ALTER COLUMN fps SET STORAGE EXTERNAL;

CREATE TABLE public.frontier_packed_fingerprints_7 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL
)
WITH (toast_tuple_target='8160', autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.frontier_packed_fingerprints_7 ALTER COLUMN fps SET STORAGE EXTERNAL;

CREATE TABLE public.frontier_slots (
    project bigint NOT NULL,
    frontier text NOT NULL COLLATE pg_catalog."C",
    slot text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    last_batch bigint NOT NULL,
    runs bytea,
    stamp bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.group_domains (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    domain text NOT NULL COLLATE pg_catalog."C",
    next_start bigint DEFAULT 0 NOT NULL,
    paused_until bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.group_shares (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    attempt bigint NOT NULL,
    amount bigint NOT NULL,
    used bigint DEFAULT 0 NOT NULL,
    most bigint DEFAULT 0 NOT NULL,
    want bigint DEFAULT 0 NOT NULL,
    delay bigint DEFAULT 0 NOT NULL,
    expires bigint
);

CREATE TABLE public.job_counts (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    jobs bigint NOT NULL
);

CREATE TABLE public.job_places (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    changed bigint NOT NULL,
    deleted bigint NOT NULL
);

CREATE TABLE public.job_tags (
    project bigint NOT NULL,
    tag text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL
);

CREATE TABLE public.job_verdicts (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    finished bigint NOT NULL,
    verdict smallint NOT NULL,
    arguments text NOT NULL COLLATE pg_catalog."C",
    close_reason text NOT NULL COLLATE pg_catalog."C",
    items bigint NOT NULL,
    error_lines bigint NOT NULL,
    took bigint,
    reasons bytea NOT NULL,
    errors bytea NOT NULL,
    error text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.jobs (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    spider_name text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    changed bigint NOT NULL,
    updated bigint NOT NULL,
    unique_key text COLLATE pg_catalog."C",
    metadata bytea NOT NULL,
    priority bigint DEFAULT 2 NOT NULL,
    queued bigint DEFAULT 0 NOT NULL,
    units bigint DEFAULT 1 NOT NULL,
    node_tags text DEFAULT '[]'::text NOT NULL COLLATE pg_catalog."C",
    since bigint DEFAULT 0 NOT NULL,
    deploy bigint DEFAULT 0 NOT NULL,
    verdict smallint DEFAULT 0 NOT NULL,
    vacant bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.last_commits (
    writer bigint NOT NULL,
    mark bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='20');

CREATE TABLE public.leases (
    name text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    token bigint NOT NULL,
    expires bigint NOT NULL
);

CREATE TABLE public.locks (
    name text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL
);

CREATE TABLE public.monitor_expected (
    project bigint NOT NULL,
    rule bigint NOT NULL,
    every bigint NOT NULL,
    since bigint NOT NULL,
    job text COLLATE pg_catalog."C",
    failing bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.monitor_incidents (
    project bigint NOT NULL,
    spider text NOT NULL COLLATE pg_catalog."C",
    of_server bigint NOT NULL,
    rule bigint NOT NULL,
    arguments text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    since bigint NOT NULL,
    last bigint NOT NULL,
    jobs bigint NOT NULL,
    job text COLLATE pg_catalog."C",
    sentence text NOT NULL COLLATE pg_catalog."C",
    over bigint,
    announced bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.monitor_queue (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    subject bigint NOT NULL,
    part bigint NOT NULL,
    ts bigint NOT NULL,
    due bigint NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    detail bytea
);

CREATE TABLE public.monitor_results (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    of_server bigint NOT NULL,
    rule bigint NOT NULL,
    finished bigint NOT NULL,
    checked bigint NOT NULL,
    outcome text NOT NULL COLLATE pg_catalog."C",
    result bytea NOT NULL
);

CREATE TABLE public.nodes (
    node text NOT NULL COLLATE pg_catalog."C",
    host text NOT NULL COLLATE pg_catalog."C",
    units bigint NOT NULL,
    tags text NOT NULL COLLATE pg_catalog."C",
    project bigint,
    heartbeat bigint NOT NULL,
    started bigint NOT NULL,
    draining bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.periodic_jobs (
    project bigint NOT NULL,
    number bigint NOT NULL,
    cron text NOT NULL COLLATE pg_catalog."C",
    disabled bigint NOT NULL,
    tasks bigint NOT NULL,
    definition bytea NOT NULL,
    next_run bigint,
    planned bigint DEFAULT 0 NOT NULL,
    last_run bigint,
    last_jobs text DEFAULT '[]'::text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.project_names (
    project bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.project_settings (
    project bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    value bytea NOT NULL
);

CREATE TABLE public.record_chunks (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    start bigint NOT NULL,
    records bigint NOT NULL,
    ts bigint NOT NULL,
    body bytea NOT NULL,
    times bytea
)
PARTITION BY HASH (project, spider, job);
ALTER TABLE ONLY public.record_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_chunks_0 (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    start bigint NOT NULL,
    records bigint NOT NULL,
    ts bigint NOT NULL,
    body bytea NOT NULL,
    times bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.record_chunks_0 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_chunks_1 (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    start bigint NOT NULL,
    records bigint NOT NULL,
    ts bigint NOT NULL,
    body bytea NOT NULL,
    times bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.record_chunks_1 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_chunks_2 (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    start bigint NOT NULL,
    records bigint NOT NULL,
    ts bigint NOT NULL,
    body bytea NOT NULL,
    times bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.record_chunks_2 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_chunks_3 (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    start bigint NOT NULL,
    records bigint NOT NULL,
    ts bigint NOT NULL,
    body bytea NOT NULL,
    times bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.record_chunks_3 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_chunks_4 (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    start bigint NOT NULL,
    records bigint NOT NULL,
    ts bigint NOT NULL,
    body bytea NOT NULL,
    times bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.record_chunks_4 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_chunks_5 (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    start bigint NOT NULL,
    records bigint NOT NULL,
    ts bigint NOT NULL,
    body bytea NOT NULL,
    times bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.record_chunks_5 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_chunks_6 (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    start bigint NOT NULL,
    records bigint NOT NULL,
    ts bigint NOT NULL,
    body bytea NOT NULL,
    times bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.record_chunks_6 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_chunks_7 (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    start bigint NOT NULL,
    records bigint NOT NULL,
    ts bigint NOT NULL,
    body bytea NOT NULL,
    times bytea
)
WITH (autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY public.record_chunks_7 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_counts (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    field text NOT NULL COLLATE pg_catalog."C",
    occurrences bigint NOT NULL
);

CREATE TABLE public.record_streams (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    writer bigint NOT NULL,
    start bigint NOT NULL,
    place bigint NOT NULL,
    records bigint NOT NULL,
    number bigint DEFAULT 0 NOT NULL,
    packed bytea
);

CREATE TABLE public.record_totals (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    records bigint NOT NULL,
    bytes bigint NOT NULL,
    skipped bigint DEFAULT 0 NOT NULL,
    stored bigint,
    revision bigint DEFAULT 0 NOT NULL,
    removed bigint,
    archive text COLLATE pg_catalog."C",
    restored bigint,
    uncounted smallint
);

CREATE TABLE public.removals (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    part bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    since bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.restores (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    token bigint NOT NULL,
    expires bigint NOT NULL,
    records bigint DEFAULT 0 NOT NULL,
    failure text COLLATE pg_catalog."C"
);

CREATE TABLE public.rules (
    project bigint NOT NULL,
    purpose text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    definition bytea NOT NULL,
    enabled bigint DEFAULT 0 NOT NULL,
    created bigint NOT NULL,
    changed bigint NOT NULL,
    failure text COLLATE pg_catalog."C"
);

CREATE TABLE public.schema_version (
    version bigint NOT NULL,
    opened bigint
);

CREATE TABLE public.spider_health (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    verdict smallint NOT NULL,
    finished bigint NOT NULL,
    health bytea NOT NULL
);

CREATE TABLE public.spiders (
    project bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    tags text DEFAULT '[]'::text NOT NULL COLLATE pg_catalog."C",
    created bigint DEFAULT 0 NOT NULL,
    modified bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.user_roles (
    number bigint NOT NULL,
    project bigint NOT NULL,
    role text NOT NULL COLLATE pg_catalog."C",
    given_by text NOT NULL COLLATE pg_catalog."C",
    given bigint NOT NULL
);

CREATE TABLE public.users (
    number bigint NOT NULL,
    issuer text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL COLLATE pg_catalog."C",
    member_of text NOT NULL COLLATE pg_catalog."C",
    disabled bigint DEFAULT 0 NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    created bigint NOT NULL,
    seen bigint NOT NULL
);

CREATE TABLE public.version_pieces (
    project bigint NOT NULL,
    deploy bigint NOT NULL,
    piece bigint NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE ONLY public.version_pieces ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.version_spiders (
    project bigint NOT NULL,
    deploy bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    info bytea NOT NULL
);

CREATE TABLE public.versions (
    project bigint NOT NULL,
    deploy bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    message text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL,
    created_by text NOT NULL COLLATE pg_catalog."C",
    touched bigint NOT NULL,
    format text NOT NULL COLLATE pg_catalog."C",
    settings text NOT NULL COLLATE pg_catalog."C",
    size bigint NOT NULL,
    sha256 text NOT NULL COLLATE pg_catalog."C",
    requirements text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.webhook_deliveries (
    project bigint NOT NULL,
    webhook bigint NOT NULL,
    number bigint NOT NULL,
    event text NOT NULL COLLATE pg_catalog."C",
    body bytea NOT NULL,
    created bigint NOT NULL,
    due bigint,
    attempts bigint DEFAULT 0 NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL COLLATE pg_catalog."C",
    outcome text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.webhooks (
    project bigint NOT NULL,
    number bigint NOT NULL,
    url text NOT NULL COLLATE pg_catalog."C",
    events text NOT NULL COLLATE pg_catalog."C",
    secret text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL,
    disabled bigint DEFAULT 0 NOT NULL,
    failing_since bigint,
    dropped bigint DEFAULT 0 NOT NULL,
    given_up bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.worker_groups (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    "least" bigint NOT NULL,
    most bigint NOT NULL,
    target bigint NOT NULL,
    changed bigint NOT NULL,
    last_attempt bigint DEFAULT 0 NOT NULL,
    closing bytea,
    start_attempt bigint,
    started smallint DEFAULT 0 NOT NULL,
    losses bigint DEFAULT 0 NOT NULL,
    stats bytea
);

ALTER TABLE ONLY public.collection_records ATTACH PARTITION public.collection_records_0 FOR VALUES WITH (modulus 8, remainder 0);

ALTER TABLE ONLY public.collection_records ATTACH PARTITION public.collection_records_1 FOR VALUES WITH (modulus 8, remainder 1);

ALTER TABLE ONLY public.collection_records ATTACH PARTITION public.collection_records_2 FOR VALUES WITH (modulus 8, remainder 2);

ALTER TABLE ONLY public.collection_records ATTACH PARTITION public.collection_records_3 FOR VALUES WITH (modulus 8, remainder 3);

ALTER TABLE ONLY public.collection_records ATTACH PARTITION public.collection_records_4 FOR VALUES WITH (modulus 8, remainder 4);

ALTER TABLE ONLY public.collection_records ATTACH PARTITION public.collection_records_5 FOR VALUES WITH (modulus 8, remainder 5);

ALTER TABLE ONLY public.collection_records ATTACH PARTITION public.collection_records_6 FOR VALUES WITH (modulus 8, remainder 6);

ALTER TABLE ONLY public.collection_records ATTACH PARTITION public.collection_records_7 FOR VALUES WITH (modulus 8, remainder 7);

ALTER TABLE ONLY public.frontier_batches ATTACH PARTITION public.frontier_batches_0 FOR VALUES WITH (modulus 8, remainder 0);

ALTER TABLE ONLY public.frontier_batches ATTACH PARTITION public.frontier_batches_1 FOR VALUES WITH (modulus 8, remainder 1);

ALTER TABLE ONLY public.frontier_batches ATTACH PARTITION public.frontier_batches_2 FOR VALUES WITH (modulus 8, remainder 2);

ALTER TABLE ONLY public.frontier_batches ATTACH PARTITION public.frontier_batches_3 FOR VALUES WITH (modulus 8, remainder 3);

ALTER TABLE ONLY public.frontier_batches ATTACH PARTITION public.frontier_batches_4 FOR VALUES WITH (modulus 8, remainder 4);

ALTER TABLE ONLY public.frontier_batches ATTACH PARTITION public.frontier_batches_5 FOR VALUES WITH (modulus 8, remainder 5);

ALTER TABLE ONLY public.frontier_batches ATTACH PARTITION public.frontier_batches_6 FOR VALUES WITH (modulus 8, remainder 6);

ALTER TABLE ONLY public.frontier_batches ATTACH PARTITION public.frontier_batches_7 FOR VALUES WITH (modulus 8, remainder 7);

ALTER TABLE ONLY public.frontier_fingerprints ATTACH PARTITION public.frontier_fingerprints_0 FOR VALUES WITH (modulus 8, remainder 0);

ALTER TABLE ONLY public.frontier_fingerprints ATTACH PARTITION public.frontier_fingerprints_1 FOR VALUES WITH (modulus 8, remainder 1);

ALTER TABLE ONLY public.frontier_fingerprints ATTACH PARTITION public.frontier_fingerprints_2 FOR VALUES WITH (modulus 8, remainder 2);

ALTER TABLE ONLY public.frontier_fingerprints ATTACH PARTITION public.frontier_fingerprints_3 FOR VALUES WITH (modulus 8, remainder 3);

ALTER TABLE ONLY public.frontier_fingerprints ATTACH PARTITION public.frontier_fingerprints_4 FOR VALUES WITH (modulus 8, remainder 4);

ALTER TABLE ONLY public.frontier_fingerprints ATTACH PARTITION public.frontier_fingerprints_5 FOR VALUES WITH (modulus 8, remainder 5);

ALTER TABLE ONLY public.frontier_fingerprints ATTACH PARTITION public.frontier_fingerprints_6 FOR VALUES WITH (modulus 8, remainder 6);

ALTER TABLE ONLY public.frontier_fingerprints ATTACH PARTITION public.frontier_fingerprints_7 FOR VALUES WITH (modulus 8, remainder 7);

ALTER TABLE ONLY public.frontier_packed_fingerprints ATTACH PARTITION public.frontier_packed_fingerprints_0 FOR VALUES WITH (modulus 8, remainder 0);

ALTER TABLE ONLY public.frontier_packed_fingerprints ATTACH PARTITION public.frontier_packed_fingerprints_1 FOR VALUES WITH (modulus 8, remainder 1);

ALTER TABLE ONLY public.frontier_packed_fingerprints ATTACH PARTITION public.frontier_packed_fingerprints_2 FOR VALUES WITH (modulus 8, remainder 2);

ALTER TABLE ONLY public.frontier_packed_fingerprints ATTACH PARTITION public.frontier_packed_fingerprints_3 FOR VALUES WITH (modulus 8, remainder 3);

ALTER TABLE ONLY public.frontier_packed_fingerprints ATTACH PARTITION public.frontier_packed_fingerprints_4 FOR VALUES WITH (modulus 8, remainder 4);

ALTER TABLE ONLY public.frontier_packed_fingerprints ATTACH PARTITION public.frontier_packed_fingerprints_5 FOR VALUES WITH (modulus 8, remainder 5);

ALTER TABLE ONLY public.frontier_packed_fingerprints ATTACH PARTITION public.frontier_packed_fingerprints_6 FOR VALUES WITH (modulus 8, remainder 6);

ALTER TABLE ONLY public.frontier_packed_fingerprints ATTACH PARTITION public.frontier_packed_fingerprints_7 FOR VALUES WITH (modulus 8, remainder 7);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_0 FOR VALUES WITH (modulus 8, remainder 0);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_1 FOR VALUES WITH (modulus 8, remainder 1);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_2 FOR VALUES WITH (modulus 8, remainder 2);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_3 FOR VALUES WITH (modulus 8, remainder 3);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_4 FOR VALUES WITH (modulus 8, remainder 4);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_5 FOR VALUES WITH (modulus 8, remainder 5);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_6 FOR VALUES WITH (modulus 8, remainder 6);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_7 FOR VALUES WITH (modulus 8, remainder 7);

INSERT INTO public.access_keys VALUES ('environments', 'fc0ea428eb91c22d64faee86ab9df461acf24216998f00c2fde0fc329501ed8d', 1795994024894);
INSERT INTO public.access_keys VALUES ('job-tokens', '758718929ecb16499840476d5d19ba6799a1037baf4063259ae1fee29b00a537', 1795994025047);

INSERT INTO public.activity VALUES (7, 1, 1795994024898, '\x7b226576656e74223a226a6f623a73746172746564222c226a6f62223a22372f312f31222c2275736572223a22617069227d');
INSERT INTO public.activity VALUES (7, 2, 1795994025081, '\x7b226576656e74223a226a6f623a73746172746564222c226a6f62223a22372f312f32222c2275736572223a22617069227d');
INSERT INTO public.activity VALUES (7, 3, 1795994025119, '\x7b226576656e74223a226a6f623a7363686564756c6564222c226a6f62223a22372f312f33222c2275736572223a22617069227d');
INSERT INTO public.activity VALUES (7, 4, 1795994025153, '\x7b226576656e74223a226a6f623a7363686564756c6564222c226a6f62223a22372f322f31222c2275736572223a22617069227d');
INSERT INTO public.activity VALUES (7, 5, 1795994025502, '\x7b226576656e74223a226a6f623a636f6d706c65746564222c226a6f62223a22372f312f31222c2275736572223a22617069222c22636c6f73655f726561736f6e223a2266696e6973686564227d');
INSERT INTO public.activity VALUES (7, 6, 1795994025580, '\x7b226576656e74223a22636f6d6d656e743a6368616e676564222c2275736572223a22617069222c22737069646572223a312c226a6f62223a312c226974656d223a302c226964223a22372d31227d');
INSERT INTO public.activity VALUES (7, 7, 1795994025597, '\x7b226576656e74223a226a6f623a64656c65746564222c226a6f62223a22372f322f31222c2275736572223a22617069227d');

INSERT INTO public.collection_records_3 VALUES (7, 2, '\x61', 1795994025898, NULL, '\x7b227072696365223a20347d', 1795994025874, '\x7b227072696365223a20337d', 1795994025851, '\x7b227072696365223a20327d');

INSERT INTO public.collection_records_4 VALUES (7, 3, '\x70', 1795994025927, 1798586025927, '\x7b22626f6479223a20227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878227d', NULL, NULL, NULL, NULL);

INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3030', 1795994025690, NULL, '\x7b226e223a20307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3031', 1795994025690, NULL, '\x7b226e223a20317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3032', 1795994025690, NULL, '\x7b226e223a20327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3033', 1795994025690, NULL, '\x7b226e223a20337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3034', 1795994025690, NULL, '\x7b226e223a20347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3035', 1795994025690, NULL, '\x7b226e223a20357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3036', 1795994025690, NULL, '\x7b226e223a20367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3039', 1795994025690, NULL, '\x7b226e223a20397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3130', 1795994025690, NULL, '\x7b226e223a2031307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3131', 1795994025690, NULL, '\x7b226e223a2031317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3132', 1795994025690, NULL, '\x7b226e223a2031327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3133', 1795994025690, NULL, '\x7b226e223a2031337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3134', 1795994025690, NULL, '\x7b226e223a2031347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3135', 1795994025690, NULL, '\x7b226e223a2031357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3136', 1795994025690, NULL, '\x7b226e223a2031367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3137', 1795994025690, NULL, '\x7b226e223a2031377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3138', 1795994025690, NULL, '\x7b226e223a2031387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3139', 1795994025690, NULL, '\x7b226e223a2031397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3230', 1795994025690, NULL, '\x7b226e223a2032307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3231', 1795994025690, NULL, '\x7b226e223a2032317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3232', 1795994025690, NULL, '\x7b226e223a2032327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3233', 1795994025690, NULL, '\x7b226e223a2032337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3234', 1795994025690, NULL, '\x7b226e223a2032347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3235', 1795994025690, NULL, '\x7b226e223a2032357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3236', 1795994025690, NULL, '\x7b226e223a2032367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3237', 1795994025690, NULL, '\x7b226e223a2032377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3238', 1795994025690, NULL, '\x7b226e223a2032387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3239', 1795994025690, NULL, '\x7b226e223a2032397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3330', 1795994025690, NULL, '\x7b226e223a2033307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3331', 1795994025690, NULL, '\x7b226e223a2033317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3332', 1795994025690, NULL, '\x7b226e223a2033327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3333', 1795994025690, NULL, '\x7b226e223a2033337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3334', 1795994025690, NULL, '\x7b226e223a2033347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3335', 1795994025690, NULL, '\x7b226e223a2033357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3336', 1795994025690, NULL, '\x7b226e223a2033367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3337', 1795994025690, NULL, '\x7b226e223a2033377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3338', 1795994025690, NULL, '\x7b226e223a2033387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3339', 1795994025690, NULL, '\x7b226e223a2033397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3430', 1795994025690, NULL, '\x7b226e223a2034307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3431', 1795994025690, NULL, '\x7b226e223a2034317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3432', 1795994025690, NULL, '\x7b226e223a2034327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3433', 1795994025690, NULL, '\x7b226e223a2034337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3434', 1795994025690, NULL, '\x7b226e223a2034347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3435', 1795994025690, NULL, '\x7b226e223a2034357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3436', 1795994025690, NULL, '\x7b226e223a2034367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3437', 1795994025690, NULL, '\x7b226e223a2034377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3438', 1795994025690, NULL, '\x7b226e223a2034387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3439', 1795994025690, NULL, '\x7b226e223a2034397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3530', 1795994025690, NULL, '\x7b226e223a2035307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3531', 1795994025690, NULL, '\x7b226e223a2035317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3532', 1795994025690, NULL, '\x7b226e223a2035327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3533', 1795994025690, NULL, '\x7b226e223a2035337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3534', 1795994025690, NULL, '\x7b226e223a2035347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3535', 1795994025690, NULL, '\x7b226e223a2035357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3536', 1795994025690, NULL, '\x7b226e223a2035367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3537', 1795994025690, NULL, '\x7b226e223a2035377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3538', 1795994025690, NULL, '\x7b226e223a2035387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3539', 1795994025690, NULL, '\x7b226e223a2035397d', NULL, NULL, NULL, NULL);

INSERT INTO public.collections VALUES (7, 'books', 's', 1);
INSERT INTO public.collections VALUES (7, 'prices', 'vs', 2);
INSERT INTO public.collections VALUES (7, 'pages', 'cs', 3);

INSERT INTO public.comments VALUES (7, 1, 1, 1, 0, '', 1795994025550, 'api', 'A comment');

INSERT INTO public.counters VALUES (7, 'job 1', 3);
INSERT INTO public.counters VALUES (7, 'queue', 4);
INSERT INTO public.counters VALUES (7, 'spider', 2);
INSERT INTO public.counters VALUES (7, 'job 2', 1);
INSERT INTO public.counters VALUES (7, 'comment', 1);
INSERT INTO public.counters VALUES (7, 'activity', 7);
INSERT INTO public.counters VALUES (7, 'collection', 3);
INSERT INTO public.counters VALUES (7, 'frontier slot', 2);

INSERT INTO public.freed VALUES (7, 0, 0);

INSERT INTO public.frontier_batches_3 VALUES (7, 2, -5, 2, 1, 1, '\x5b226c61746572222c6e756c6c5d');
INSERT INTO public.frontier_batches_3 VALUES (7, 2, 0, 1, 1, 1, '\x5b22776974682064617461222c7b2261223a205b312c20225c7530306539225d7d5d');

INSERT INTO public.frontier_batches_5 VALUES (7, 1, 2, 3, 100, 1, '\x5b222f333338222c6e756c6c5d2c5b222f303935222c6e756c6c5d2c5b222f333532222c6e756c6c5d2c5b222f313039222c6e756c6c5d2c5b222f333636222c6e756c6c5d2c5b222f313233222c6e756c6c5d2c5b222f333830222c6e756c6c5d2c5b222f313337222c6e756c6c5d2c5b222f333934222c6e756c6c5d2c5b222f313531222c6e756c6c5d2c5b222f343038222c6e756c6c5d2c5b222f313635222c6e756c6c5d2c5b222f343232222c6e756c6c5d2c5b222f313739222c6e756c6c5d2c5b222f343336222c6e756c6c5d2c5b222f313933222c6e756c6c5d2c5b222f343530222c6e756c6c5d2c5b222f323037222c6e756c6c5d2c5b222f343634222c6e756c6c5d2c5b222f323231222c6e756c6c5d2c5b222f343738222c6e756c6c5d2c5b222f323335222c6e756c6c5d2c5b222f343932222c6e756c6c5d2c5b222f323439222c6e756c6c5d2c5b222f303036222c6e756c6c5d2c5b222f323633222c6e756c6c5d2c5b222f303230222c6e756c6c5d2c5b222f323737222c6e756c6c5d2c5b222f303334222c6e756c6c5d2c5b222f323931222c6e756c6c5d2c5b222f303438222c6e756c6c5d2c5b222f333035222c6e756c6c5d2c5b222f303632222c6e756c6c5d2c5b222f333139222c6e756c6c5d2c5b222f303736222c6e756c6c5d2c5b222f333333222c6e756c6c5d2c5b222f303930222c6e756c6c5d2c5b222f333437222c6e756c6c5d2c5b222f313034222c6e756c6c5d2c5b222f333631222c6e756c6c5d2c5b222f313138222c6e756c6c5d2c5b222f333735222c6e756c6c5d2c5b222f313332222c6e756c6c5d2c5b222f333839222c6e756c6c5d2c5b222f313436222c6e756c6c5d2c5b222f343033222c6e756c6c5d2c5b222f313630222c6e756c6c5d2c5b222f343137222c6e756c6c5d2c5b222f313734222c6e756c6c5d2c5b222f343331222c6e756c6c5d2c5b222f313838222c6e756c6c5d2c5b222f343435222c6e756c6c5d2c5b222f323032222c6e756c6c5d2c5b222f343539222c6e756c6c5d2c5b222f323136222c6e756c6c5d2c5b222f343733222c6e756c6c5d2c5b222f323330222c6e756c6c5d2c5b222f343837222c6e756c6c5d2c5b222f323434222c6e756c6c5d2c5b222f303031222c6e756c6c5d2c5b222f323538222c6e756c6c5d2c5b222f303135222c6e756c6c5d2c5b222f323732222c6e756c6c5d2c5b222f303239222c6e756c6c5d2c5b222f323836222c6e756c6c5d2c5b222f303433222c6e756c6c5d2c5b222f333030222c6e756c6c5d2c5b222f303537222c6e756c6c5d2c5b222f333134222c6e756c6c5d2c5b222f303731222c6e756c6c5d2c5b222f333238222c6e756c6c5d2c5b222f303835222c6e756c6c5d2c5b222f333432222c6e756c6c5d2c5b222f303939222c6e756c6c5d2c5b222f333536222c6e756c6c5d2c5b222f313133222c6e756c6c5d2c5b222f333730222c6e756c6c5d2c5b222f313237222c6e756c6c5d2c5b222f333834222c6e756c6c5d2c5b222f313431222c6e756c6c5d2c5b222f333938222c6e756c6c5d2c5b222f313535222c6e756c6c5d2c5b222f343132222c6e756c6c5d2c5b222f313639222c6e756c6c5d2c5b222f343236222c6e756c6c5d2c5b222f313833222c6e756c6c5d2c5b222f343430222c6e756c6c5d2c5b222f313937222c6e756c6c5d2c5b222f343534222c6e756c6c5d2c5b222f323131222c6e756c6c5d2c5b222f343638222c6e756c6c5d2c5b222f323235222c6e756c6c5d2c5b222f343832222c6e756c6c5d2c5b222f323339222c6e756c6c5d2c5b222f343936222c6e756c6c5d2c5b222f323533222c6e756c6c5d2c5b222f303130222c6e756c6c5d2c5b222f323637222c6e756c6c5d2c5b222f303234222c6e756c6c5d2c5b222f323831222c6e756c6c5d');
INSERT INTO public.frontier_batches_5 VALUES (7, 1, 1, 2, 100, 1, '\x5b222f343139222c6e756c6c5d2c5b222f313736222c6e756c6c5d2c5b222f343333222c6e756c6c5d2c5b222f313930222c6e756c6c5d2c5b222f343437222c6e756c6c5d2c5b222f323034222c6e756c6c5d2c5b222f343631222c6e756c6c5d2c5b222f323138222c6e756c6c5d2c5b222f343735222c6e756c6c5d2c5b222f323332222c6e756c6c5d2c5b222f343839222c6e756c6c5d2c5b222f323436222c6e756c6c5d2c5b222f303033222c6e756c6c5d2c5b222f323630222c6e756c6c5d2c5b222f303137222c6e756c6c5d2c5b222f323734222c6e756c6c5d2c5b222f303331222c6e756c6c5d2c5b222f323838222c6e756c6c5d2c5b222f303435222c6e756c6c5d2c5b222f333032222c6e756c6c5d2c5b222f303539222c6e756c6c5d2c5b222f333136222c6e756c6c5d2c5b222f303733222c6e756c6c5d2c5b222f333330222c6e756c6c5d2c5b222f303837222c6e756c6c5d2c5b222f333434222c6e756c6c5d2c5b222f313031222c6e756c6c5d2c5b222f333538222c6e756c6c5d2c5b222f313135222c6e756c6c5d2c5b222f333732222c6e756c6c5d2c5b222f313239222c6e756c6c5d2c5b222f333836222c6e756c6c5d2c5b222f313433222c6e756c6c5d2c5b222f343030222c6e756c6c5d2c5b222f313537222c6e756c6c5d2c5b222f343134222c6e756c6c5d2c5b222f313731222c6e756c6c5d2c5b222f343238222c6e756c6c5d2c5b222f313835222c6e756c6c5d2c5b222f343432222c6e756c6c5d2c5b222f313939222c6e756c6c5d2c5b222f343536222c6e756c6c5d2c5b222f323133222c6e756c6c5d2c5b222f343730222c6e756c6c5d2c5b222f323237222c6e756c6c5d2c5b222f343834222c6e756c6c5d2c5b222f323431222c6e756c6c5d2c5b222f343938222c6e756c6c5d2c5b222f323535222c6e756c6c5d2c5b222f303132222c6e756c6c5d2c5b222f323639222c6e756c6c5d2c5b222f303236222c6e756c6c5d2c5b222f323833222c6e756c6c5d2c5b222f303430222c6e756c6c5d2c5b222f323937222c6e756c6c5d2c5b222f303534222c6e756c6c5d2c5b222f333131222c6e756c6c5d2c5b222f303638222c6e756c6c5d2c5b222f333235222c6e756c6c5d2c5b222f303832222c6e756c6c5d2c5b222f333339222c6e756c6c5d2c5b222f303936222c6e756c6c5d2c5b222f333533222c6e756c6c5d2c5b222f313130222c6e756c6c5d2c5b222f333637222c6e756c6c5d2c5b222f313234222c6e756c6c5d2c5b222f333831222c6e756c6c5d2c5b222f313338222c6e756c6c5d2c5b222f333935222c6e756c6c5d2c5b222f313532222c6e756c6c5d2c5b222f343039222c6e756c6c5d2c5b222f313636222c6e756c6c5d2c5b222f343233222c6e756c6c5d2c5b222f313830222c6e756c6c5d2c5b222f343337222c6e756c6c5d2c5b222f313934222c6e756c6c5d2c5b222f343531222c6e756c6c5d2c5b222f323038222c6e756c6c5d2c5b222f343635222c6e756c6c5d2c5b222f323232222c6e756c6c5d2c5b222f343739222c6e756c6c5d2c5b222f323336222c6e756c6c5d2c5b222f343933222c6e756c6c5d2c5b222f323530222c6e756c6c5d2c5b222f303037222c6e756c6c5d2c5b222f323634222c6e756c6c5d2c5b222f303231222c6e756c6c5d2c5b222f323738222c6e756c6c5d2c5b222f303335222c6e756c6c5d2c5b222f323932222c6e756c6c5d2c5b222f303439222c6e756c6c5d2c5b222f333036222c6e756c6c5d2c5b222f303633222c6e756c6c5d2c5b222f333230222c6e756c6c5d2c5b222f303737222c6e756c6c5d2c5b222f333334222c6e756c6c5d2c5b222f303931222c6e756c6c5d2c5b222f333438222c6e756c6c5d2c5b222f313035222c6e756c6c5d2c5b222f333632222c6e756c6c5d');
INSERT INTO public.frontier_batches_5 VALUES (7, 1, 1, 5, 67, 1, '\x5b222f313139222c6e756c6c5d2c5b222f333736222c6e756c6c5d2c5b222f313333222c6e756c6c5d2c5b222f333930222c6e756c6c5d2c5b222f313437222c6e756c6c5d2c5b222f343034222c6e756c6c5d2c5b222f313631222c6e756c6c5d2c5b222f343138222c6e756c6c5d2c5b222f313735222c6e756c6c5d2c5b222f343332222c6e756c6c5d2c5b222f313839222c6e756c6c5d2c5b222f343436222c6e756c6c5d2c5b222f323033222c6e756c6c5d2c5b222f343630222c6e756c6c5d2c5b222f323137222c6e756c6c5d2c5b222f343734222c6e756c6c5d2c5b222f323331222c6e756c6c5d2c5b222f343838222c6e756c6c5d2c5b222f323435222c6e756c6c5d2c5b222f303032222c6e756c6c5d2c5b222f323539222c6e756c6c5d2c5b222f303136222c6e756c6c5d2c5b222f323733222c6e756c6c5d2c5b222f303330222c6e756c6c5d2c5b222f323837222c6e756c6c5d2c5b222f303434222c6e756c6c5d2c5b222f333031222c6e756c6c5d2c5b222f303538222c6e756c6c5d2c5b222f333135222c6e756c6c5d2c5b222f303732222c6e756c6c5d2c5b222f333239222c6e756c6c5d2c5b222f303836222c6e756c6c5d2c5b222f333433222c6e756c6c5d2c5b222f313030222c6e756c6c5d2c5b222f333537222c6e756c6c5d2c5b222f313134222c6e756c6c5d2c5b222f333731222c6e756c6c5d2c5b222f313238222c6e756c6c5d2c5b222f333835222c6e756c6c5d2c5b222f313432222c6e756c6c5d2c5b222f333939222c6e756c6c5d2c5b222f313536222c6e756c6c5d2c5b222f343133222c6e756c6c5d2c5b222f313730222c6e756c6c5d2c5b222f343237222c6e756c6c5d2c5b222f313834222c6e756c6c5d2c5b222f343431222c6e756c6c5d2c5b222f313938222c6e756c6c5d2c5b222f343535222c6e756c6c5d2c5b222f323132222c6e756c6c5d2c5b222f343639222c6e756c6c5d2c5b222f323236222c6e756c6c5d2c5b222f343833222c6e756c6c5d2c5b222f323430222c6e756c6c5d2c5b222f343937222c6e756c6c5d2c5b222f323534222c6e756c6c5d2c5b222f303131222c6e756c6c5d2c5b222f323638222c6e756c6c5d2c5b222f303235222c6e756c6c5d2c5b222f323832222c6e756c6c5d2c5b222f303339222c6e756c6c5d2c5b222f323936222c6e756c6c5d2c5b222f303533222c6e756c6c5d2c5b222f333130222c6e756c6c5d2c5b222f303637222c6e756c6c5d2c5b222f333234222c6e756c6c5d2c5b222f303831222c6e756c6c5d');
INSERT INTO public.frontier_batches_5 VALUES (7, 1, 2, 6, 66, 1, '\x5b222f303338222c6e756c6c5d2c5b222f323935222c6e756c6c5d2c5b222f303532222c6e756c6c5d2c5b222f333039222c6e756c6c5d2c5b222f303636222c6e756c6c5d2c5b222f333233222c6e756c6c5d2c5b222f303830222c6e756c6c5d2c5b222f333337222c6e756c6c5d2c5b222f303934222c6e756c6c5d2c5b222f333531222c6e756c6c5d2c5b222f313038222c6e756c6c5d2c5b222f333635222c6e756c6c5d2c5b222f313232222c6e756c6c5d2c5b222f333739222c6e756c6c5d2c5b222f313336222c6e756c6c5d2c5b222f333933222c6e756c6c5d2c5b222f313530222c6e756c6c5d2c5b222f343037222c6e756c6c5d2c5b222f313634222c6e756c6c5d2c5b222f343231222c6e756c6c5d2c5b222f313738222c6e756c6c5d2c5b222f343335222c6e756c6c5d2c5b222f313932222c6e756c6c5d2c5b222f343439222c6e756c6c5d2c5b222f323036222c6e756c6c5d2c5b222f343633222c6e756c6c5d2c5b222f323230222c6e756c6c5d2c5b222f343737222c6e756c6c5d2c5b222f323334222c6e756c6c5d2c5b222f343931222c6e756c6c5d2c5b222f323438222c6e756c6c5d2c5b222f303035222c6e756c6c5d2c5b222f323632222c6e756c6c5d2c5b222f303139222c6e756c6c5d2c5b222f323736222c6e756c6c5d2c5b222f303333222c6e756c6c5d2c5b222f323930222c6e756c6c5d2c5b222f303437222c6e756c6c5d2c5b222f333034222c6e756c6c5d2c5b222f303631222c6e756c6c5d2c5b222f333138222c6e756c6c5d2c5b222f303735222c6e756c6c5d2c5b222f333332222c6e756c6c5d2c5b222f303839222c6e756c6c5d2c5b222f333436222c6e756c6c5d2c5b222f313033222c6e756c6c5d2c5b222f333630222c6e756c6c5d2c5b222f313137222c6e756c6c5d2c5b222f333734222c6e756c6c5d2c5b222f313331222c6e756c6c5d2c5b222f333838222c6e756c6c5d2c5b222f313435222c6e756c6c5d2c5b222f343032222c6e756c6c5d2c5b222f313539222c6e756c6c5d2c5b222f343136222c6e756c6c5d2c5b222f313733222c6e756c6c5d2c5b222f343330222c6e756c6c5d2c5b222f313837222c6e756c6c5d2c5b222f343434222c6e756c6c5d2c5b222f323031222c6e756c6c5d2c5b222f343538222c6e756c6c5d2c5b222f323135222c6e756c6c5d2c5b222f343732222c6e756c6c5d2c5b222f323239222c6e756c6c5d2c5b222f343836222c6e756c6c5d2c5b222f323433222c6e756c6c5d');

INSERT INTO public.frontier_fingerprint_data VALUES (7, 2, 238685044532571105, 0, '\x776974682064617461', '\x7b2262223a206e756c6c7d');

INSERT INTO public.frontier_packed_fingerprints_3 VALUES (7, 2, 4440819569262257351, '\x0000000000000000', '\xff776974682064617461ff');
INSERT INTO public.frontier_packed_fingerprints_3 VALUES (7, 2, 4440819569262257351, '\x0000000000000001', '\xff6c61746572ff');

INSERT INTO public.frontier_packed_fingerprints_5 VALUES (7, 1, 2165331356686472695, '\x2f303131', '\xff2f303131ff2f303235ff2f303339ff2f303530ff2f303533ff2f303634ff2f303637ff2f303738ff2f303831ff2f303932ff2f313036ff2f313230ff2f313334ff2f313435ff2f313438ff2f313539ff2f313632ff2f313733ff2f313837ff2f323031ff2f323135ff2f323236ff2f323239ff2f323430ff2f323433ff2f323534ff2f323638ff2f323832ff2f323936ff2f333037ff2f333130ff2f333231ff2f333234ff2f333335ff2f333439ff2f333633ff2f333737ff2f333838ff2f333931ff2f343032ff2f343035ff2f343136ff2f343330ff2f343434ff2f343538ff2f343639ff2f343732ff2f343833ff2f343836ff2f343937ff');
INSERT INTO public.frontier_packed_fingerprints_5 VALUES (7, 1, 3064449069656588989, '\x2f303030', '\xff2f303030ff2f303031ff2f303032ff2f303033ff2f303034ff2f303035ff2f303036ff2f303037ff2f303038ff2f303039ff2f303130ff2f303132ff2f303133ff2f303134ff2f303135ff2f303136ff2f303137ff2f303138ff2f303139ff2f303230ff2f303231ff2f303232ff2f303233ff2f303234ff2f303236ff2f303237ff2f303238ff2f303239ff2f303330ff2f303331ff2f303332ff2f303333ff2f303334ff2f303335ff2f303336ff2f303337ff2f303338ff2f303430ff2f303431ff2f303432ff2f303433ff2f303434ff2f303435ff2f303436ff2f303437ff2f303438ff2f303439ff2f303531ff2f303532ff2f303534ff2f303535ff2f303536ff2f303537ff2f303538ff2f303539ff2f303630ff2f303631ff2f303632ff2f303633ff2f303635ff2f303636ff2f303638ff2f303639ff2f303730ff2f303731ff2f303732ff2f303733ff2f303734ff2f303735ff2f303736ff2f303737ff2f303739ff2f303830ff2f303832ff2f303833ff2f303834ff2f303835ff2f303836ff2f303837ff2f303838ff2f303839ff2f303930ff2f303931ff2f303933ff2f303934ff2f303935ff2f303936ff2f303937ff2f303938ff2f303939ff2f313030ff2f313031ff2f313032ff2f313033ff2f313034ff2f313035ff2f313037ff2f313038ff2f313039ff2f313130ff2f313131ff2f313132ff2f313133ff2f313134ff2f313135ff2f313136ff2f313137ff2f313138ff2f313139ff2f313231ff2f313232ff2f313233ff2f313234ff2f313235ff2f313236ff2f313237ff2f313238ff2f313239ff2f313330ff2f313331ff2f313332ff2f313333ff2f313335ff2f313336ff2f313337ff2f313338ff2f313339ff2f313430ff2f313431ff2f313432ff2f313433ff2f313434ff2f313436ff2f313437ff2f313439ff2f313530ff2f313531ff2f313532ff2f313533ff2f313534ff2f313535ff2f313536ff2f313537ff2f313538ff2f313630ff2f313631ff2f313633ff2f313634ff2f313635ff2f313636ff2f313637ff2f313638ff2f313639ff2f313730ff2f313731ff2f313732ff2f313734ff2f313735ff2f313736ff2f313737ff2f313738ff2f313739ff2f313830ff2f313831ff2f313832ff2f313833ff2f313834ff2f313835ff2f313836ff2f313838ff2f313839ff2f313930ff2f313931ff2f313932ff2f313933ff2f313934ff2f313935ff2f313936ff2f313937ff2f313938ff2f313939ff2f323030ff2f323032ff2f323033ff2f323034ff2f323035ff2f323036ff2f323037ff2f323038ff2f323039ff2f323130ff2f323131ff2f323132ff2f323133ff2f323134ff2f323136ff2f323137ff2f323138ff2f323139ff2f323230ff2f323231ff2f323232ff2f323233ff2f323234ff2f323235ff2f323237ff2f323238ff2f323330ff2f323331ff2f323332ff2f323333ff2f323334ff2f323335ff2f323336ff2f323337ff2f323338ff2f323339ff2f323431ff2f323432ff2f323434ff2f323435ff2f323436ff2f323437ff2f323438ff2f323439ff2f323530ff2f323531ff2f323532ff2f323533ff2f323535ff2f323536ff2f323537ff2f323538ff2f323539ff2f323630ff2f323631ff2f323632ff2f323633ff2f323634ff2f323635ff2f323636ff2f323637ff2f323639ff2f323730ff2f323731ff2f323732ff2f323733ff2f323734ff2f323735ff2f323736ff2f323737ff2f323738ff2f323739ff2f323830ff2f323831ff2f323833ff2f323834ff2f323835ff2f323836ff2f323837ff2f323838ff2f323839ff2f323930ff2f323931ff2f323932ff2f323933ff2f323934ff2f323935ff2f323937ff2f323938ff2f323939ff2f333030ff2f333031ff2f333032ff2f333033ff2f333034ff2f333035ff2f333036ff2f333038ff2f333039ff2f333131ff2f333132ff2f333133ff2f333134ff2f333135ff2f333136ff2f333137ff2f333138ff2f333139ff2f333230ff2f333232ff2f333233ff2f333235ff2f333236ff2f333237ff2f333238ff2f333239ff2f333330ff2f333331ff2f333332ff2f333333ff2f333334ff2f333336ff2f333337ff2f333338ff2f333339ff2f333430ff2f333431ff2f333432ff2f333433ff2f333434ff2f333435ff2f333436ff2f333437ff2f333438ff2f333530ff2f333531ff2f333532ff2f333533ff2f333534ff2f333535ff2f333536ff2f333537ff2f333538ff2f333539ff2f333630ff2f333631ff2f333632ff2f333634ff2f333635ff2f333636ff2f333637ff2f333638ff2f333639ff2f333730ff2f333731ff2f333732ff2f333733ff2f333734ff2f333735ff2f333736ff2f333738ff2f333739ff2f333830ff2f333831ff2f333832ff2f333833ff2f333834ff2f333835ff2f333836ff2f333837ff2f333839ff2f333930ff2f333932ff2f333933ff2f333934ff2f333935ff2f333936ff2f333937ff2f333938ff2f333939ff2f343030ff2f343031ff2f343033ff2f343034ff2f343036ff2f343037ff2f343038ff2f343039ff2f343130ff2f343131ff2f343132ff2f343133ff2f343134ff2f343135ff2f343137ff2f343138ff2f343139ff2f343230ff2f343231ff2f343232ff2f343233ff2f343234ff2f343235ff2f343236ff2f343237ff2f343238ff2f343239ff2f343331ff2f343332ff2f343333ff2f343334ff2f343335ff2f343336ff2f343337ff2f343338ff2f343339ff2f343430ff2f343431ff2f343432ff2f343433ff2f343435ff2f343436ff2f343437ff2f343438ff2f343439ff2f343530ff2f343531ff2f343532ff2f343533ff2f343534ff2f343535ff2f343536ff2f343537ff2f343539ff2f343630ff2f343631ff2f343632ff2f343633ff2f343634ff2f343635ff2f343636ff2f343637ff2f343638ff2f343730ff2f343731ff2f343733ff2f343734ff2f343735ff2f343736ff2f343737ff2f343738ff2f343739ff2f343830ff2f343831ff2f343832ff2f343834ff2f343835ff2f343837ff2f343838ff2f343839ff2f343930ff2f343931ff2f343932ff2f343933ff2f343934ff2f343935ff2f343936ff2f343938ff2f343939ff');

INSERT INTO public.frontier_slots VALUES (7, 'shop', '0', 1, 6, '\x5b5b333433313632333139373532303339333035302c302c302c6e756c6c2c66616c73652c302c302c226f70656e225d2c5b323136353333313335363638363437323639352c302c35302c6e756c6c2c66616c73652c302c302c22736f72746564225d2c5b333036343434393036393635363538383938392c322c3435302c6e756c6c2c66616c73652c302c302c22736f72746564225d5d', 943160057653718846);
INSERT INTO public.frontier_slots VALUES (7, 'shop', '1', 2, 2, '\x5b5b343434303831393536393236323235373335312c302c322c6e756c6c2c66616c73652c302c322c226f70656e225d5d', 2735101296003782079);

INSERT INTO public.job_counts VALUES (7, 1, 'pending', 1);
INSERT INTO public.job_counts VALUES (7, 1, 'finished', 1);
INSERT INTO public.job_counts VALUES (7, 1, 'running', 1);
INSERT INTO public.job_counts VALUES (7, 2, 'deleted', 1);
INSERT INTO public.job_counts VALUES (7, 2, 'pending', 0);

INSERT INTO public.job_places VALUES (7, 2, 1, 1795994025153, 1795994025597);

INSERT INTO public.job_verdicts VALUES (7, 1, 1, 1795994025502, 1, '802c3cc882fda7f1', 'finished', 150, 0, 604, '\x5b5d', '\x5b5d', '');

INSERT INTO public.jobs VALUES (7, 1, 2, 'books', 'running', 1795994025081, 1795994025081, NULL, '\x7b227072696f72697479223a322c22756e697473223a312c227370696465725f61726773223a7b2270616765223a2231227d2c2270726f6a656374223a372c22737069646572223a22626f6f6b73222c227374617465223a2272756e6e696e67222c2272756e6e696e675f74696d65223a313739353939343032353038312c22737461727465645f6279223a22617069227d', 2, 2, 1, '[]', 1795994025081, 0, 0, 0);
INSERT INTO public.jobs VALUES (7, 1, 3, 'books', 'pending', 1795994025119, 1795994025119, NULL, '\x7b227072696f72697479223a322c22756e697473223a312c227370696465725f61726773223a7b2270616765223a2231227d2c2270726f6a656374223a372c22737069646572223a22626f6f6b73222c227374617465223a2270656e64696e67222c2270656e64696e675f74696d65223a313739353939343032353131392c227363686564756c65645f6279223a22617069227d', 2, 3, 1, '[]', 1795994025119, 0, 0, 0);
INSERT INTO public.jobs VALUES (7, 2, 1, 'other', 'deleted', 1795994025597, 1795994025597, NULL, '\x7b227072696f72697479223a322c22756e697473223a312c2270726f6a656374223a372c22737069646572223a226f74686572222c227374617465223a2264656c65746564222c2270656e64696e675f74696d65223a313739353939343032353135332c227363686564756c65645f6279223a22617069222c2264656c657465645f74696d65223a313739353939343032353539372c2264656c657465645f6279223a22617069227d', 2, 4, 1, '[]', 1795994025153, 0, 0, 0);
INSERT INTO public.jobs VALUES (7, 1, 1, 'books', 'finished', 1795994025502, 1795994025502, NULL, '\x7b227072696f72697479223a322c22756e697473223a312c227370696465725f61726773223a7b2270616765223a2231227d2c2270726f6a656374223a372c22737069646572223a22626f6f6b73222c227374617465223a2266696e6973686564222c2272756e6e696e675f74696d65223a313739353939343032343839382c22737461727465645f6279223a22617069222c22636c6f73655f726561736f6e223a2266696e6973686564222c2266696e69736865645f74696d65223a313739353939343032353530322c22636f6d706c657465645f6279223a22617069227d', 2, 1, 1, '[]', 1795994024898, 0, 1, 0);

INSERT INTO public.last_commits VALUES (1615544525676355754, 2142247639508254407, '2026-11-29 23:13:47.858201+00');
INSERT INTO public.last_commits VALUES (1433417505458395764, 2674603545552987499, '2026-11-29 23:13:44.926577+00');
INSERT INTO public.last_commits VALUES (4144182100743025016, 4244580185301045781, '2026-11-29 23:13:44.914053+00');
INSERT INTO public.last_commits VALUES (4256840359622303579, 487407415419517242, '2026-11-29 23:13:44.948313+00');
INSERT INTO public.last_commits VALUES (1573924133467358452, 1063616035035364568, '2026-11-29 23:13:47.367918+00');

INSERT INTO public.leases VALUES ('monitors', 'vm 6307', 1, 0);

INSERT INTO public.locks VALUES ('purge', 1795994028289);

INSERT INTO public.record_chunks_1 VALUES (7, 'items', 1, 1, 0, 120, 1795994025176, '\x1f8b08006a6c00015a7f74d82d7215501005619f55bc7a3a62e6fe4f24ebc0465050c40445b1778a42f66d7354bbcf9ddfcf9fcfb747bc3e9e9fdf3e7fbc3fdf1ecf2f1f1fdf1ff1f8fa2be2bdfe6dc4f3cfcbff3011e63d6c08db3dec08fb3d1c08c73d9c08e73d5c08d73ddc08f73d3c08cf3d2c84750f93346936171cd149f2a4f8248152849244294649a414a524538a53122a452a49956295c44ad16ad46aa2d5a8d544ab51ab8956a35613ad46ad265a8d5a4db41ab59a68356a35d16ad46aa2d5a8d544ab53ab8b56a75617ad4ead2e5a9d5a5db43ab5ba68756a75d1ead4eaa2d5a9d545ab53ab8b56a75617ad41ad215a835a43b406b586680d6a0dd11ad41aa235a835446b506b88d6a0d610ad41ad215a835a43b426b5a6684d6a4dd19ad49aa235a935456b526b8ad6a4d614ad49ad295a935a53b426b5a6684d6a4dd15ad45aa2b5a8b5446b516b89d6a2d612ad45ad255a8b5a4bb416b596682d6a2dd15ad45aa2b5a8b5446b536b8bd6a6d616ad4dad2d5a9b5a5bb436b5b6686d6a6dd1dad4daa2b5a9b5456b536b8bd6a6d616ad43ad235a875a47b40eb58e681d6a1dd13ad43aa275a87544eb50eb88d6a1d611ad43ad235a875a47b48a5a255a45ad12ada256895651ab44aba855a255d42ad12a6a956815b54ab48a5a255a45ad12ad0c7265885706c132442c836419629641b40c51cb205b86b865102e43e4324897217619c4cb10bd0cf265885f0601334cf07670f8c371114c13bc9d1cfa72dc6e0efd396e47873e1db7ab43bf8edbd9a16fc7edeed0bfe37678e8e371bb3cf879fc050000ffff0300794f099c3c140000', NULL);
INSERT INTO public.record_chunks_1 VALUES (7, 'items', 1, 1, 120, 30, 1795994025225, '\x1f8b08006a6c00015a7f44cdbb1180200005c19c2a1c2a10def9c1a26cc0a17723bd6cb37dea5dafa5f575968f4d761989dce42e0f79caf1336e718b5bdce216b7b8c52d6e71c30d37dc70c30d37dc70c38d31cb0b0000ffff0300381ec6e44a010000', NULL);
INSERT INTO public.record_chunks_1 VALUES (7, 'requests', 1, 1, 0, 2, 1795994025263, '\x1f8b08006a6c00015a7fa48d3d0a032114067b4ff1f86a597521cdeb432e900b181414b23fb89f55d8bb0761cb74e90606663e5832cb96a082c7fd092b3818d90fa8ccde5b41ea2db26e2b546e56d0860943b02e192a037b7b8f402177752e4e2fe7719a3fda7b6c79e555bf46e1e728e0345f000000ffff030083301fd7c5000000', '\x9292010092011d');
INSERT INTO public.record_chunks_1 VALUES (7, 'requests', 1, 1, 2, 1, 1795994025392, '\x1f8b08006a6c00015a7f148c4b0ac2401005f79ee2f1d68d13036e662f5ec00bb4642001f3a1f36625de5d7a5914555fae4df33eb182cfc78b069e72f59315e3301838f5702dfbc68abb8191e696e2f0689b920cd4b2b64c0cecf1c9db2c1db514bfbecbc8dfe50f0000ffff030054c8582c69000000', NULL);
INSERT INTO public.record_chunks_1 VALUES (7, 'logs', 1, 1, 0, 5, 1795994025407, '\x1f8b08006a6c00015a7faa562ac9cc4d55b25230d05150ca492d4bcd51b25230027172538b8b13d341524a3e9979a90a064ab55c70d58684541b22ab3622a4da0859b53121d5c6c8aa4d08a93651aae502000000ffff0300be02eacae6000000', NULL);
INSERT INTO public.record_chunks_1 VALUES (7, 'samples', 1, 1, 0, 1, 1795994025440, '\x1f8b08006a6c00015a7f8a36d45130d25130d65130d151308de502000000ffff030080b113e410000000', NULL);

INSERT INTO public.record_chunks_3 VALUES (7, 'items', 1, 2, 0, 4, 1795994025479, '\x1f8b08006a6c00015a7faa56ca53b25230a8e582300c610c2318c3b8960b000000ffff030060974d0324000000', NULL);

INSERT INTO public.record_counts VALUES (7, 'items', 1, 1, 'title', 120);
INSERT INTO public.record_counts VALUES (7, 'items', 1, 1, 'n', 150);
INSERT INTO public.record_counts VALUES (7, 'requests', 1, 1, 'duration', 3);
INSERT INTO public.record_counts VALUES (7, 'requests', 1, 1, 'method', 3);
INSERT INTO public.record_counts VALUES (7, 'requests', 1, 1, 'parent', 2);
INSERT INTO public.record_counts VALUES (7, 'requests', 1, 1, 'rs', 3);
INSERT INTO public.record_counts VALUES (7, 'requests', 1, 1, 'status', 3);
INSERT INTO public.record_counts VALUES (7, 'requests', 1, 1, 'url', 3);
INSERT INTO public.record_counts VALUES (7, 'logs', 1, 1, '20', 5);
INSERT INTO public.record_counts VALUES (7, 'items', 1, 2, 'n', 4);

INSERT INTO public.record_totals VALUES (7, 'items', 1, 1, 150, 2792, 0, 697, 2, NULL, NULL, NULL, NULL);
INSERT INTO public.record_totals VALUES (7, 'requests', 1, 1, 3, 190, 0, 248, 3, NULL, NULL, NULL, NULL);
INSERT INTO public.record_totals VALUES (7, 'logs', 1, 1, 5, 35, 0, 96, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.record_totals VALUES (7, 'samples', 1, 1, 1, 6, 0, 42, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.record_totals VALUES (7, 'items', 1, 2, 4, 16, 0, 45, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.record_totals VALUES (7, 'items', 2, 1, 0, 0, 0, 0, 0, 1795994025597, NULL, NULL, NULL);
INSERT INTO public.record_totals VALUES (7, 'logs', 2, 1, 0, 0, 0, 0, 0, 1795994025597, NULL, NULL, NULL);
INSERT INTO public.record_totals VALUES (7, 'requests', 2, 1, 0, 0, 0, 0, 0, 1795994025597, NULL, NULL, NULL);
INSERT INTO public.record_totals VALUES (7, 'samples', 2, 1, 0, 0, 0, 0, 0, 1795994025597, NULL, NULL, NULL);

INSERT INTO public.schema_version VALUES (0, NULL);
INSERT INTO public.schema_version VALUES (100, NULL);
INSERT INTO public.schema_version VALUES (101, NULL);
INSERT INTO public.schema_version VALUES (102, NULL);
INSERT INTO public.schema_version VALUES (103, NULL);
INSERT INTO public.schema_version VALUES (104, NULL);
INSERT INTO public.schema_version VALUES (105, NULL);
INSERT INTO public.schema_version VALUES (106, NULL);
INSERT INTO public.schema_version VALUES (107, NULL);
INSERT INTO public.schema_version VALUES (108, NULL);
INSERT INTO public.schema_version VALUES (110, NULL);
INSERT INTO public.schema_version VALUES (120, NULL);
INSERT INTO public.schema_version VALUES (130, NULL);
INSERT INTO public.schema_version VALUES (150, NULL);
INSERT INTO public.schema_version VALUES (160, NULL);
INSERT INTO public.schema_version VALUES (170, NULL);
INSERT INTO public.schema_version VALUES (175, NULL);
INSERT INTO public.schema_version VALUES (180, 1795994021529);

INSERT INTO public.spider_health VALUES (7, 1, 1, 1795994025502, '\x7b2272756e73223a5b5b312c312c313739353939343032353530322c3135302c302c3630342c2266696e6973686564225d5d2c22726561736f6e73223a5b5d2c226572726f72223a22222c226d656469616e5f6974656d73223a6e756c6c7d');

INSERT INTO public.spiders VALUES (7, 'books', 1, '[]', 1795994024898, 1795994024898);
INSERT INTO public.spiders VALUES (7, 'other', 2, '[]', 1795994025153, 1795994025153);

ALTER TABLE ONLY public.access_keys
    ADD CONSTRAINT access_keys_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.activity
    ADD CONSTRAINT activity_pkey PRIMARY KEY (project, number);

ALTER TABLE ONLY public.alert_groups
    ADD CONSTRAINT alert_groups_pkey PRIMARY KEY (project, spider);

ALTER TABLE ONLY public.alert_messages
    ADD CONSTRAINT alert_messages_pkey PRIMARY KEY (project, target, number);

ALTER TABLE ONLY public.alert_targets
    ADD CONSTRAINT alert_targets_pkey PRIMARY KEY (project, number);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_of_workers_pkey PRIMARY KEY (project, spider, job, attempt);

ALTER TABLE ONLY public.collection_records
    ADD CONSTRAINT collection_records_pkey PRIMARY KEY (project, collection, key);

ALTER TABLE ONLY public.collection_records_0
    ADD CONSTRAINT collection_records_0_pkey PRIMARY KEY (project, collection, key);

ALTER TABLE ONLY public.collection_records_1
    ADD CONSTRAINT collection_records_1_pkey PRIMARY KEY (project, collection, key);

ALTER TABLE ONLY public.collection_records_2
    ADD CONSTRAINT collection_records_2_pkey PRIMARY KEY (project, collection, key);

ALTER TABLE ONLY public.collection_records_3
    ADD CONSTRAINT collection_records_3_pkey PRIMARY KEY (project, collection, key);

ALTER TABLE ONLY public.collection_records_4
    ADD CONSTRAINT collection_records_4_pkey PRIMARY KEY (project, collection, key);

ALTER TABLE ONLY public.collection_records_5
    ADD CONSTRAINT collection_records_5_pkey PRIMARY KEY (project, collection, key);

ALTER TABLE ONLY public.collection_records_6
    ADD CONSTRAINT collection_records_6_pkey PRIMARY KEY (project, collection, key);

ALTER TABLE ONLY public.collection_records_7
    ADD CONSTRAINT collection_records_7_pkey PRIMARY KEY (project, collection, key);

ALTER TABLE ONLY public.collections
    ADD CONSTRAINT collections_pkey PRIMARY KEY (project, name, type);

ALTER TABLE ONLY public.comments
    ADD CONSTRAINT comments_pkey PRIMARY KEY (project, number);

ALTER TABLE ONLY public.copies
    ADD CONSTRAINT copies_pkey PRIMARY KEY (started);

ALTER TABLE ONLY public.counters
    ADD CONSTRAINT counters_pkey PRIMARY KEY (project, name);

ALTER TABLE ONLY public.current_versions
    ADD CONSTRAINT current_versions_pkey PRIMARY KEY (project);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (project, spider, job, kind, delivery);

ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (project, spider, job, delivery);

ALTER TABLE ONLY public.freed
    ADD CONSTRAINT freed_pkey PRIMARY KEY (project);

ALTER TABLE ONLY public.frontier_batches
    ADD CONSTRAINT frontier_batches_pkey PRIMARY KEY (project, slot, priority, batch);

ALTER TABLE ONLY public.frontier_batches_0
    ADD CONSTRAINT frontier_batches_0_pkey PRIMARY KEY (project, slot, priority, batch);

ALTER TABLE ONLY public.frontier_batches_1
    ADD CONSTRAINT frontier_batches_1_pkey PRIMARY KEY (project, slot, priority, batch);

ALTER TABLE ONLY public.frontier_batches_2
    ADD CONSTRAINT frontier_batches_2_pkey PRIMARY KEY (project, slot, priority, batch);

ALTER TABLE ONLY public.frontier_batches_3
    ADD CONSTRAINT frontier_batches_3_pkey PRIMARY KEY (project, slot, priority, batch);

ALTER TABLE ONLY public.frontier_batches_4
    ADD CONSTRAINT frontier_batches_4_pkey PRIMARY KEY (project, slot, priority, batch);

ALTER TABLE ONLY public.frontier_batches_5
    ADD CONSTRAINT frontier_batches_5_pkey PRIMARY KEY (project, slot, priority, batch);

ALTER TABLE ONLY public.frontier_batches_6
    ADD CONSTRAINT frontier_batches_6_pkey PRIMARY KEY (project, slot, priority, batch);

ALTER TABLE ONLY public.frontier_batches_7
    ADD CONSTRAINT frontier_batches_7_pkey PRIMARY KEY (project, slot, priority, batch);

ALTER TABLE ONLY public.frontier_feeds
    ADD CONSTRAINT frontier_feeds_pkey PRIMARY KEY (project, frontier);

ALTER TABLE ONLY public.frontier_fingerprint_blocks
    ADD CONSTRAINT frontier_fingerprint_blocks_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_fingerprint_data
    ADD CONSTRAINT frontier_fingerprint_data_pkey PRIMARY KEY (project, slot, addition, place);

ALTER TABLE ONLY public.frontier_fingerprints
    ADD CONSTRAINT frontier_fingerprints_pkey PRIMARY KEY (project, slot, run, fp);

ALTER TABLE ONLY public.frontier_fingerprints_0
    ADD CONSTRAINT frontier_fingerprints_0_pkey PRIMARY KEY (project, slot, run, fp);

ALTER TABLE ONLY public.frontier_fingerprints_1
    ADD CONSTRAINT frontier_fingerprints_1_pkey PRIMARY KEY (project, slot, run, fp);

ALTER TABLE ONLY public.frontier_fingerprints_2
    ADD CONSTRAINT frontier_fingerprints_2_pkey PRIMARY KEY (project, slot, run, fp);

ALTER TABLE ONLY public.frontier_fingerprints_3
    ADD CONSTRAINT frontier_fingerprints_3_pkey PRIMARY KEY (project, slot, run, fp);

ALTER TABLE ONLY public.frontier_fingerprints_4
    ADD CONSTRAINT frontier_fingerprints_4_pkey PRIMARY KEY (project, slot, run, fp);

ALTER TABLE ONLY public.frontier_fingerprints_5
    ADD CONSTRAINT frontier_fingerprints_5_pkey PRIMARY KEY (project, slot, run, fp);

ALTER TABLE ONLY public.frontier_fingerprints_6
    ADD CONSTRAINT frontier_fingerprints_6_pkey PRIMARY KEY (project, slot, run, fp);

ALTER TABLE ONLY public.frontier_fingerprints_7
    ADD CONSTRAINT frontier_fingerprints_7_pkey PRIMARY KEY (project, slot, run, fp);

ALTER TABLE ONLY public.frontier_long_fingerprints
    ADD CONSTRAINT frontier_long_fingerprints_pkey PRIMARY KEY (project, slot, beginning, hash);

ALTER TABLE ONLY public.frontier_packed_fingerprints
    ADD CONSTRAINT frontier_packed_fingerprints_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_packed_fingerprints_0
    ADD CONSTRAINT frontier_packed_fingerprints_0_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_packed_fingerprints_1
    ADD CONSTRAINT frontier_packed_fingerprints_1_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_packed_fingerprints_2
    ADD CONSTRAINT frontier_packed_fingerprints_2_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_packed_fingerprints_3
    ADD CONSTRAINT frontier_packed_fingerprints_3_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_packed_fingerprints_4
    ADD CONSTRAINT frontier_packed_fingerprints_4_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_packed_fingerprints_5
    ADD CONSTRAINT frontier_packed_fingerprints_5_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_packed_fingerprints_6
    ADD CONSTRAINT frontier_packed_fingerprints_6_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_packed_fingerprints_7
    ADD CONSTRAINT frontier_packed_fingerprints_7_pkey PRIMARY KEY (project, slot, run, first);

ALTER TABLE ONLY public.frontier_slots
    ADD CONSTRAINT frontier_slots_pkey PRIMARY KEY (project, frontier, slot);

ALTER TABLE ONLY public.group_domains
    ADD CONSTRAINT group_domains_pkey PRIMARY KEY (project, spider, job, domain);

ALTER TABLE ONLY public.group_shares
    ADD CONSTRAINT group_shares_pkey PRIMARY KEY (project, spider, job, name, attempt);

ALTER TABLE ONLY public.job_counts
    ADD CONSTRAINT job_counts_pkey PRIMARY KEY (project, spider, state);

ALTER TABLE ONLY public.job_places
    ADD CONSTRAINT job_places_pkey PRIMARY KEY (project, spider, job);

ALTER TABLE ONLY public.job_tags
    ADD CONSTRAINT job_tags_pkey PRIMARY KEY (project, tag, spider, job);

ALTER TABLE ONLY public.job_verdicts
    ADD CONSTRAINT job_verdicts_pkey PRIMARY KEY (project, spider, job);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (project, spider, job);

ALTER TABLE ONLY public.last_commits
    ADD CONSTRAINT last_commits_pkey PRIMARY KEY (writer);

ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.locks
    ADD CONSTRAINT locks_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.monitor_expected
    ADD CONSTRAINT monitor_expected_pkey PRIMARY KEY (project, rule);

ALTER TABLE ONLY public.monitor_incidents
    ADD CONSTRAINT monitor_incidents_pkey PRIMARY KEY (project, spider, of_server, rule, arguments);

ALTER TABLE ONLY public.monitor_queue
    ADD CONSTRAINT monitor_queue_pkey PRIMARY KEY (project, kind, subject, part);

ALTER TABLE ONLY public.monitor_results
    ADD CONSTRAINT monitor_results_pkey PRIMARY KEY (project, spider, job, of_server, rule);

ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (node);

ALTER TABLE ONLY public.periodic_jobs
    ADD CONSTRAINT periodic_jobs_pkey PRIMARY KEY (project, number);

ALTER TABLE ONLY public.project_names
    ADD CONSTRAINT project_names_pkey PRIMARY KEY (project);

ALTER TABLE ONLY public.project_settings
    ADD CONSTRAINT project_settings_pkey PRIMARY KEY (project, name);

ALTER TABLE ONLY public.record_chunks
    ADD CONSTRAINT record_chunks_pkey PRIMARY KEY (project, kind, spider, job, start);

ALTER TABLE ONLY public.record_chunks_0
    ADD CONSTRAINT record_chunks_0_pkey PRIMARY KEY (project, kind, spider, job, start);

ALTER TABLE ONLY public.record_chunks_1
    ADD CONSTRAINT record_chunks_1_pkey PRIMARY KEY (project, kind, spider, job, start);

ALTER TABLE ONLY public.record_chunks_2
    ADD CONSTRAINT record_chunks_2_pkey PRIMARY KEY (project, kind, spider, job, start);

ALTER TABLE ONLY public.record_chunks_3
    ADD CONSTRAINT record_chunks_3_pkey PRIMARY KEY (project, kind, spider, job, start);

ALTER TABLE ONLY public.record_chunks_4
    ADD CONSTRAINT record_chunks_4_pkey PRIMARY KEY (project, kind, spider, job, start);

ALTER TABLE ONLY public.record_chunks_5
    ADD CONSTRAINT record_chunks_5_pkey PRIMARY KEY (project, kind, spider, job, start);

ALTER TABLE ONLY public.record_chunks_6
    ADD CONSTRAINT record_chunks_6_pkey PRIMARY KEY (project, kind, spider, job, start);

ALTER TABLE ONLY public.record_chunks_7
    ADD CONSTRAINT record_chunks_7_pkey PRIMARY KEY (project, kind, spider, job, start);

ALTER TABLE ONLY public.record_counts
    ADD CONSTRAINT record_counts_pkey PRIMARY KEY (project, kind, spider, job, field);

ALTER TABLE ONLY public.record_streams
    ADD CONSTRAINT record_streams_pkey PRIMARY KEY (project, kind, spider, job, writer, start);

ALTER TABLE ONLY public.record_totals
    ADD CONSTRAINT record_totals_pkey PRIMARY KEY (project, kind, spider, job);

ALTER TABLE ONLY public.removals
    ADD CONSTRAINT removals_pkey PRIMARY KEY (project, kind, number, part);

ALTER TABLE ONLY public.restores
    ADD CONSTRAINT restores_pkey PRIMARY KEY (project, spider, job);

ALTER TABLE ONLY public.rules
    ADD CONSTRAINT rules_pkey PRIMARY KEY (project, purpose, number);

ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.spider_health
    ADD CONSTRAINT spider_health_pkey PRIMARY KEY (project, spider);

ALTER TABLE ONLY public.spiders
    ADD CONSTRAINT spiders_pkey PRIMARY KEY (project, name);

ALTER TABLE ONLY public.user_roles
    ADD CONSTRAINT user_roles_pkey PRIMARY KEY (number, project);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (number);

ALTER TABLE ONLY public.version_pieces
    ADD CONSTRAINT version_pieces_pkey PRIMARY KEY (project, deploy, piece);

ALTER TABLE ONLY public.version_spiders
    ADD CONSTRAINT version_spiders_pkey PRIMARY KEY (project, deploy, name);

ALTER TABLE ONLY public.versions
    ADD CONSTRAINT versions_pkey PRIMARY KEY (project, deploy);

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (project, webhook, number);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (project, number);

ALTER TABLE ONLY public.worker_groups
    ADD CONSTRAINT worker_groups_pkey PRIMARY KEY (project, spider, job);

CREATE INDEX alert_groups_due ON public.alert_groups USING btree (due, project, spider);

CREATE INDEX alert_messages_by_age ON public.alert_messages USING btree (created, project, target, number) WHERE (due IS NULL);

CREATE INDEX alert_messages_due ON public.alert_messages USING btree (due, project, target, number) WHERE (due IS NOT NULL);

CREATE INDEX attempts_by_node ON public.attempts USING btree (node);

CREATE INDEX collection_records_by_expiry ON ONLY public.collection_records USING btree (project, collection, expires) WHERE (expires IS NOT NULL);

CREATE INDEX collection_records_0_project_collection_expires_idx ON public.collection_records_0 USING btree (project, collection, expires) WHERE (expires IS NOT NULL);

CREATE INDEX collection_records_1_project_collection_expires_idx ON public.collection_records_1 USING btree (project, collection, expires) WHERE (expires IS NOT NULL);

CREATE INDEX collection_records_2_project_collection_expires_idx ON public.collection_records_2 USING btree (project, collection, expires) WHERE (expires IS NOT NULL);

CREATE INDEX collection_records_3_project_collection_expires_idx ON public.collection_records_3 USING btree (project, collection, expires) WHERE (expires IS NOT NULL);

CREATE INDEX collection_records_4_project_collection_expires_idx ON public.collection_records_4 USING btree (project, collection, expires) WHERE (expires IS NOT NULL);

CREATE INDEX collection_records_5_project_collection_expires_idx ON public.collection_records_5 USING btree (project, collection, expires) WHERE (expires IS NOT NULL);

CREATE INDEX collection_records_6_project_collection_expires_idx ON public.collection_records_6 USING btree (project, collection, expires) WHERE (expires IS NOT NULL);

CREATE INDEX collection_records_7_project_collection_expires_idx ON public.collection_records_7 USING btree (project, collection, expires) WHERE (expires IS NOT NULL);

CREATE INDEX collections_expiring ON public.collections USING btree (project, collection) WHERE (type = ANY (ARRAY['cs'::text, 'vcs'::text]));

CREATE INDEX comments_by_item ON public.comments USING btree (project, spider, job, item, field, number);

CREATE INDEX deliveries_to_report ON public.deliveries USING btree (project, rule, of_server) WHERE (reported = 0);

CREATE INDEX frontier_slots_by_slot ON public.frontier_slots USING btree (project, slot);

CREATE INDEX job_places_by_age ON public.job_places USING btree (project, deleted);

CREATE INDEX job_tags_by_job ON public.job_tags USING btree (project, spider, job, tag);

CREATE INDEX job_verdicts_alike ON public.job_verdicts USING btree (project, spider, arguments, finished, job);

CREATE INDEX job_verdicts_by_time ON public.job_verdicts USING btree (project, spider, finished, job);

CREATE INDEX jobs_by_spider ON public.jobs USING btree (project, spider, state, changed, job);

CREATE INDEX jobs_by_state ON public.jobs USING btree (project, state, changed, spider, job);

CREATE UNIQUE INDEX jobs_by_unique_key ON public.jobs USING btree (project, unique_key);

CREATE INDEX jobs_deleted ON public.jobs USING btree (changed, project, spider, job) WHERE (state = 'deleted'::text);

CREATE INDEX jobs_in_need ON public.jobs USING btree (project, state, changed, spider, job) WHERE (verdict >= 2);

CREATE INDEX jobs_to_fill ON public.jobs USING btree (node_tags, units, priority DESC, since, project, queued) WHERE ((state = 'running'::text) AND (vacant > 0));

CREATE INDEX jobs_to_place ON public.jobs USING btree (node_tags, units, priority DESC, since, project, queued) WHERE (state = 'pending'::text);

CREATE INDEX jobs_to_start ON public.jobs USING btree (project, priority DESC, queued) WHERE (state = 'pending'::text);

CREATE INDEX monitor_incidents_old ON public.monitor_incidents USING btree (last);

CREATE INDEX monitor_queue_due ON public.monitor_queue USING btree (due, project, kind, subject, part);

CREATE INDEX monitor_results_by_rule ON public.monitor_results USING btree (project, of_server, rule, checked);

CREATE INDEX monitor_results_by_time ON public.monitor_results USING btree (project, checked, spider, job);

CREATE INDEX periodic_jobs_due ON public.periodic_jobs USING btree (next_run, project, number) WHERE (next_run IS NOT NULL);

CREATE UNIQUE INDEX project_names_by_name ON public.project_names USING btree (name);

CREATE INDEX record_totals_removed ON public.record_totals USING btree (project, kind, spider, job) WHERE (removed IS NOT NULL);

CREATE INDEX record_totals_uncounted ON public.record_totals USING btree (project, kind, spider, job) WHERE (uncounted = 1);

CREATE INDEX removals_by_age ON public.removals USING btree (project, since, kind, number, part);

CREATE INDEX spider_health_worst ON public.spider_health USING btree (project, verdict, finished, spider);

CREATE UNIQUE INDEX spiders_by_id ON public.spiders USING btree (project, spider);

CREATE UNIQUE INDEX users_by_subject ON public.users USING btree (issuer, subject);

CREATE INDEX versions_by_name ON public.versions USING btree (project, name, deploy);

CREATE INDEX webhook_deliveries_by_age ON public.webhook_deliveries USING btree (created, project, webhook, number) WHERE (due IS NULL);

CREATE INDEX webhook_deliveries_due ON public.webhook_deliveries USING btree (due, project, webhook, number) WHERE (due IS NOT NULL);

CREATE INDEX webhook_deliveries_past ON public.webhook_deliveries USING btree (project, webhook, state, number) WHERE (due IS NULL);

CREATE INDEX webhook_deliveries_pending ON public.webhook_deliveries USING btree (project, webhook, due, number) WHERE (due IS NOT NULL);

ALTER INDEX public.collection_records_pkey ATTACH PARTITION public.collection_records_0_pkey;

ALTER INDEX public.collection_records_by_expiry ATTACH PARTITION public.collection_records_0_project_collection_expires_idx;

ALTER INDEX public.collection_records_pkey ATTACH PARTITION public.collection_records_1_pkey;

ALTER INDEX public.collection_records_by_expiry ATTACH PARTITION public.collection_records_1_project_collection_expires_idx;

ALTER INDEX public.collection_records_pkey ATTACH PARTITION public.collection_records_2_pkey;

ALTER INDEX public.collection_records_by_expiry ATTACH PARTITION public.collection_records_2_project_collection_expires_idx;

ALTER INDEX public.collection_records_pkey ATTACH PARTITION public.collection_records_3_pkey;

ALTER INDEX public.collection_records_by_expiry ATTACH PARTITION public.collection_records_3_project_collection_expires_idx;

ALTER INDEX public.collection_records_pkey ATTACH PARTITION public.collection_records_4_pkey;

ALTER INDEX public.collection_records_by_expiry ATTACH PARTITION public.collection_records_4_project_collection_expires_idx;

ALTER INDEX public.collection_records_pkey ATTACH PARTITION public.collection_records_5_pkey;

ALTER INDEX public.collection_records_by_expiry ATTACH PARTITION public.collection_records_5_project_collection_expires_idx;

ALTER INDEX public.collection_records_pkey ATTACH PARTITION public.collection_records_6_pkey;

ALTER INDEX public.collection_records_by_expiry ATTACH PARTITION public.collection_records_6_project_collection_expires_idx;

ALTER INDEX public.collection_records_pkey ATTACH PARTITION public.collection_records_7_pkey;

ALTER INDEX public.collection_records_by_expiry ATTACH PARTITION public.collection_records_7_project_collection_expires_idx;

ALTER INDEX public.frontier_batches_pkey ATTACH PARTITION public.frontier_batches_0_pkey;

ALTER INDEX public.frontier_batches_pkey ATTACH PARTITION public.frontier_batches_1_pkey;

ALTER INDEX public.frontier_batches_pkey ATTACH PARTITION public.frontier_batches_2_pkey;

ALTER INDEX public.frontier_batches_pkey ATTACH PARTITION public.frontier_batches_3_pkey;

ALTER INDEX public.frontier_batches_pkey ATTACH PARTITION public.frontier_batches_4_pkey;

ALTER INDEX public.frontier_batches_pkey ATTACH PARTITION public.frontier_batches_5_pkey;

ALTER INDEX public.frontier_batches_pkey ATTACH PARTITION public.frontier_batches_6_pkey;

ALTER INDEX public.frontier_batches_pkey ATTACH PARTITION public.frontier_batches_7_pkey;

ALTER INDEX public.frontier_fingerprints_pkey ATTACH PARTITION public.frontier_fingerprints_0_pkey;

ALTER INDEX public.frontier_fingerprints_pkey ATTACH PARTITION public.frontier_fingerprints_1_pkey;

ALTER INDEX public.frontier_fingerprints_pkey ATTACH PARTITION public.frontier_fingerprints_2_pkey;

ALTER INDEX public.frontier_fingerprints_pkey ATTACH PARTITION public.frontier_fingerprints_3_pkey;

ALTER INDEX public.frontier_fingerprints_pkey ATTACH PARTITION public.frontier_fingerprints_4_pkey;

ALTER INDEX public.frontier_fingerprints_pkey ATTACH PARTITION public.frontier_fingerprints_5_pkey;

ALTER INDEX public.frontier_fingerprints_pkey ATTACH PARTITION public.frontier_fingerprints_6_pkey;

ALTER INDEX public.frontier_fingerprints_pkey ATTACH PARTITION public.frontier_fingerprints_7_pkey;

ALTER INDEX public.frontier_packed_fingerprints_pkey ATTACH PARTITION public.frontier_packed_fingerprints_0_pkey;

ALTER INDEX public.frontier_packed_fingerprints_pkey ATTACH PARTITION public.frontier_packed_fingerprints_1_pkey;

ALTER INDEX public.frontier_packed_fingerprints_pkey ATTACH PARTITION public.frontier_packed_fingerprints_2_pkey;

ALTER INDEX public.frontier_packed_fingerprints_pkey ATTACH PARTITION public.frontier_packed_fingerprints_3_pkey;

ALTER INDEX public.frontier_packed_fingerprints_pkey ATTACH PARTITION public.frontier_packed_fingerprints_4_pkey;

ALTER INDEX public.frontier_packed_fingerprints_pkey ATTACH PARTITION public.frontier_packed_fingerprints_5_pkey;

ALTER INDEX public.frontier_packed_fingerprints_pkey ATTACH PARTITION public.frontier_packed_fingerprints_6_pkey;

ALTER INDEX public.frontier_packed_fingerprints_pkey ATTACH PARTITION public.frontier_packed_fingerprints_7_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_0_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_1_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_2_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_3_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_4_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_5_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_6_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_7_pkey;

