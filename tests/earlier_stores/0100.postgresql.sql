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

CREATE TABLE public.api_keys (
    name text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    projects text NOT NULL COLLATE pg_catalog."C",
    may_write bigint NOT NULL,
    created bigint NOT NULL,
    extraction bigint DEFAULT 0 NOT NULL,
    organisation text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    suspended bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.attempts (
    project bigint NOT NULL,
    spider bigint NOT NULL,
    job bigint NOT NULL,
    attempt bigint NOT NULL,
    node text NOT NULL COLLATE pg_catalog."C",
    units bigint NOT NULL,
    placed bigint NOT NULL,
    outcome text COLLATE pg_catalog."C"
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
);

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
);

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
);

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
);

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
);

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
);

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
);

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
);

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

CREATE TABLE public.discarded (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL
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
);

CREATE TABLE public.frontier_batches_1 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
);

CREATE TABLE public.frontier_batches_2 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
);

CREATE TABLE public.frontier_batches_3 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
);

CREATE TABLE public.frontier_batches_4 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
);

CREATE TABLE public.frontier_batches_5 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
);

CREATE TABLE public.frontier_batches_6 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
);

CREATE TABLE public.frontier_batches_7 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    priority bigint NOT NULL,
    batch bigint NOT NULL,
    size bigint NOT NULL,
    fixed bigint NOT NULL,
    requests bytea NOT NULL
);

CREATE TABLE public.frontier_fingerprint_blocks (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    first bytea NOT NULL,
    fps bytea NOT NULL,
    fdata bytea
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
);

CREATE TABLE public.frontier_fingerprints_1 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
);

CREATE TABLE public.frontier_fingerprints_2 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
);

CREATE TABLE public.frontier_fingerprints_3 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
);

CREATE TABLE public.frontier_fingerprints_4 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
);

CREATE TABLE public.frontier_fingerprints_5 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
);

CREATE TABLE public.frontier_fingerprints_6 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
);

CREATE TABLE public.frontier_fingerprints_7 (
    project bigint NOT NULL,
    slot bigint NOT NULL,
    run bigint NOT NULL,
    fp bytea NOT NULL,
    fdata bytea
);

CREATE TABLE public.frontier_slots (
    project bigint NOT NULL,
    frontier text NOT NULL COLLATE pg_catalog."C",
    slot text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    last_batch bigint NOT NULL,
    runs bytea,
    stamp bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.job_tags (
    project bigint NOT NULL,
    tag text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL
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
    deploy bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.last_commits (
    writer bigint NOT NULL,
    mark bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='20');

CREATE TABLE public.locks (
    name text NOT NULL COLLATE pg_catalog."C",
    created bigint NOT NULL
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
);
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
);
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
);
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
);
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
);
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
);
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
);
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
);
ALTER TABLE ONLY public.record_chunks_7 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.record_counts (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    field text NOT NULL COLLATE pg_catalog."C",
    occurrences bigint NOT NULL
);

CREATE TABLE public.record_totals (
    project bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    job bigint NOT NULL,
    records bigint NOT NULL,
    bytes bigint NOT NULL,
    skipped bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.schema_version (
    version bigint NOT NULL,
    opened bigint
);

CREATE TABLE public.spiders (
    project bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    spider bigint NOT NULL,
    tags text DEFAULT '[]'::text NOT NULL COLLATE pg_catalog."C",
    created bigint DEFAULT 0 NOT NULL,
    modified bigint DEFAULT 0 NOT NULL
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

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_0 FOR VALUES WITH (modulus 8, remainder 0);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_1 FOR VALUES WITH (modulus 8, remainder 1);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_2 FOR VALUES WITH (modulus 8, remainder 2);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_3 FOR VALUES WITH (modulus 8, remainder 3);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_4 FOR VALUES WITH (modulus 8, remainder 4);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_5 FOR VALUES WITH (modulus 8, remainder 5);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_6 FOR VALUES WITH (modulus 8, remainder 6);

ALTER TABLE ONLY public.record_chunks ATTACH PARTITION public.record_chunks_7 FOR VALUES WITH (modulus 8, remainder 7);

INSERT INTO public.access_keys VALUES ('job-tokens', '020863f22e40e4b62ce69735585eb31f78fe2928ea61205a836806541dcbf65f', 1795993281486);

INSERT INTO public.activity VALUES (7, 1, 1795993281416, '\x7b226576656e74223a226a6f623a73746172746564222c226a6f62223a22372f312f31222c2275736572223a22617069227d');
INSERT INTO public.activity VALUES (7, 2, 1795993281526, '\x7b226576656e74223a226a6f623a73746172746564222c226a6f62223a22372f312f32222c2275736572223a22617069227d');
INSERT INTO public.activity VALUES (7, 3, 1795993281566, '\x7b226576656e74223a226a6f623a7363686564756c6564222c226a6f62223a22372f312f33222c2275736572223a22617069227d');
INSERT INTO public.activity VALUES (7, 4, 1795993281601, '\x7b226576656e74223a226a6f623a7363686564756c6564222c226a6f62223a22372f322f31222c2275736572223a22617069227d');
INSERT INTO public.activity VALUES (7, 5, 1795993281880, '\x7b226576656e74223a226a6f623a636f6d706c65746564222c226a6f62223a22372f312f31222c2275736572223a22617069222c22636c6f73655f726561736f6e223a2266696e6973686564227d');
INSERT INTO public.activity VALUES (7, 6, 1795993281937, '\x7b226576656e74223a226a6f623a64656c65746564222c226a6f62223a22372f322f31222c2275736572223a22617069227d');

INSERT INTO public.collection_records_3 VALUES (7, 2, '\x61', 1795993282120, NULL, '\x7b227072696365223a20347d', 1795993282107, '\x7b227072696365223a20337d', 1795993282087, '\x7b227072696365223a20327d');

INSERT INTO public.collection_records_4 VALUES (7, 3, '\x70', 1795993282151, 1798585282151, '\x7b22626f6479223a20227878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878227d', NULL, NULL, NULL, NULL);

INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3030', 1795993281968, NULL, '\x7b226e223a20307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3031', 1795993281968, NULL, '\x7b226e223a20317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3032', 1795993281968, NULL, '\x7b226e223a20327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3033', 1795993281968, NULL, '\x7b226e223a20337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3034', 1795993281968, NULL, '\x7b226e223a20347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3035', 1795993281968, NULL, '\x7b226e223a20357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3036', 1795993281968, NULL, '\x7b226e223a20367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3039', 1795993281968, NULL, '\x7b226e223a20397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3130', 1795993281968, NULL, '\x7b226e223a2031307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3131', 1795993281968, NULL, '\x7b226e223a2031317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3132', 1795993281968, NULL, '\x7b226e223a2031327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3133', 1795993281968, NULL, '\x7b226e223a2031337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3134', 1795993281968, NULL, '\x7b226e223a2031347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3135', 1795993281968, NULL, '\x7b226e223a2031357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3136', 1795993281968, NULL, '\x7b226e223a2031367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3137', 1795993281968, NULL, '\x7b226e223a2031377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3138', 1795993281968, NULL, '\x7b226e223a2031387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3139', 1795993281968, NULL, '\x7b226e223a2031397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3230', 1795993281968, NULL, '\x7b226e223a2032307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3231', 1795993281968, NULL, '\x7b226e223a2032317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3232', 1795993281968, NULL, '\x7b226e223a2032327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3233', 1795993281968, NULL, '\x7b226e223a2032337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3234', 1795993281968, NULL, '\x7b226e223a2032347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3235', 1795993281968, NULL, '\x7b226e223a2032357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3236', 1795993281968, NULL, '\x7b226e223a2032367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3237', 1795993281968, NULL, '\x7b226e223a2032377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3238', 1795993281968, NULL, '\x7b226e223a2032387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3239', 1795993281968, NULL, '\x7b226e223a2032397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3330', 1795993281968, NULL, '\x7b226e223a2033307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3331', 1795993281968, NULL, '\x7b226e223a2033317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3332', 1795993281968, NULL, '\x7b226e223a2033327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3333', 1795993281968, NULL, '\x7b226e223a2033337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3334', 1795993281968, NULL, '\x7b226e223a2033347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3335', 1795993281968, NULL, '\x7b226e223a2033357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3336', 1795993281968, NULL, '\x7b226e223a2033367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3337', 1795993281968, NULL, '\x7b226e223a2033377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3338', 1795993281968, NULL, '\x7b226e223a2033387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3339', 1795993281968, NULL, '\x7b226e223a2033397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3430', 1795993281968, NULL, '\x7b226e223a2034307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3431', 1795993281968, NULL, '\x7b226e223a2034317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3432', 1795993281968, NULL, '\x7b226e223a2034327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3433', 1795993281968, NULL, '\x7b226e223a2034337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3434', 1795993281968, NULL, '\x7b226e223a2034347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3435', 1795993281968, NULL, '\x7b226e223a2034357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3436', 1795993281968, NULL, '\x7b226e223a2034367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3437', 1795993281968, NULL, '\x7b226e223a2034377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3438', 1795993281968, NULL, '\x7b226e223a2034387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3439', 1795993281968, NULL, '\x7b226e223a2034397d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3530', 1795993281968, NULL, '\x7b226e223a2035307d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3531', 1795993281968, NULL, '\x7b226e223a2035317d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3532', 1795993281968, NULL, '\x7b226e223a2035327d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3533', 1795993281968, NULL, '\x7b226e223a2035337d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3534', 1795993281968, NULL, '\x7b226e223a2035347d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3535', 1795993281968, NULL, '\x7b226e223a2035357d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3536', 1795993281968, NULL, '\x7b226e223a2035367d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3537', 1795993281968, NULL, '\x7b226e223a2035377d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3538', 1795993281968, NULL, '\x7b226e223a2035387d', NULL, NULL, NULL, NULL);
INSERT INTO public.collection_records_5 VALUES (7, 1, '\x3539', 1795993281968, NULL, '\x7b226e223a2035397d', NULL, NULL, NULL, NULL);

INSERT INTO public.collections VALUES (7, 'books', 's', 1);
INSERT INTO public.collections VALUES (7, 'prices', 'vs', 2);
INSERT INTO public.collections VALUES (7, 'pages', 'cs', 3);

INSERT INTO public.comments VALUES (7, 1, 1, 1, 0, '', 1795993281909, 'api', 'A comment');

INSERT INTO public.counters VALUES (7, 'job 1', 3);
INSERT INTO public.counters VALUES (7, 'queue', 4);
INSERT INTO public.counters VALUES (7, 'spider', 2);
INSERT INTO public.counters VALUES (7, 'job 2', 1);
INSERT INTO public.counters VALUES (7, 'comment', 1);
INSERT INTO public.counters VALUES (7, 'activity', 6);
INSERT INTO public.counters VALUES (7, 'collection', 3);
INSERT INTO public.counters VALUES (7, 'frontier slot', 2);

INSERT INTO public.frontier_batches_3 VALUES (7, 2, -5, 2, 1, 1, '\x5b226c61746572222c6e756c6c5d');
INSERT INTO public.frontier_batches_3 VALUES (7, 2, 0, 1, 1, 1, '\x5b22776974682064617461222c7b2261223a205b312c20225c7530306539225d7d5d');

INSERT INTO public.frontier_batches_5 VALUES (7, 1, 2, 3, 100, 1, '\x5b222f333338222c6e756c6c5d2c5b222f303935222c6e756c6c5d2c5b222f333532222c6e756c6c5d2c5b222f313039222c6e756c6c5d2c5b222f333636222c6e756c6c5d2c5b222f313233222c6e756c6c5d2c5b222f333830222c6e756c6c5d2c5b222f313337222c6e756c6c5d2c5b222f333934222c6e756c6c5d2c5b222f313531222c6e756c6c5d2c5b222f343038222c6e756c6c5d2c5b222f313635222c6e756c6c5d2c5b222f343232222c6e756c6c5d2c5b222f313739222c6e756c6c5d2c5b222f343336222c6e756c6c5d2c5b222f313933222c6e756c6c5d2c5b222f343530222c6e756c6c5d2c5b222f323037222c6e756c6c5d2c5b222f343634222c6e756c6c5d2c5b222f323231222c6e756c6c5d2c5b222f343738222c6e756c6c5d2c5b222f323335222c6e756c6c5d2c5b222f343932222c6e756c6c5d2c5b222f323439222c6e756c6c5d2c5b222f303036222c6e756c6c5d2c5b222f323633222c6e756c6c5d2c5b222f303230222c6e756c6c5d2c5b222f323737222c6e756c6c5d2c5b222f303334222c6e756c6c5d2c5b222f323931222c6e756c6c5d2c5b222f303438222c6e756c6c5d2c5b222f333035222c6e756c6c5d2c5b222f303632222c6e756c6c5d2c5b222f333139222c6e756c6c5d2c5b222f303736222c6e756c6c5d2c5b222f333333222c6e756c6c5d2c5b222f303930222c6e756c6c5d2c5b222f333437222c6e756c6c5d2c5b222f313034222c6e756c6c5d2c5b222f333631222c6e756c6c5d2c5b222f313138222c6e756c6c5d2c5b222f333735222c6e756c6c5d2c5b222f313332222c6e756c6c5d2c5b222f333839222c6e756c6c5d2c5b222f313436222c6e756c6c5d2c5b222f343033222c6e756c6c5d2c5b222f313630222c6e756c6c5d2c5b222f343137222c6e756c6c5d2c5b222f313734222c6e756c6c5d2c5b222f343331222c6e756c6c5d2c5b222f313838222c6e756c6c5d2c5b222f343435222c6e756c6c5d2c5b222f323032222c6e756c6c5d2c5b222f343539222c6e756c6c5d2c5b222f323136222c6e756c6c5d2c5b222f343733222c6e756c6c5d2c5b222f323330222c6e756c6c5d2c5b222f343837222c6e756c6c5d2c5b222f323434222c6e756c6c5d2c5b222f303031222c6e756c6c5d2c5b222f323538222c6e756c6c5d2c5b222f303135222c6e756c6c5d2c5b222f323732222c6e756c6c5d2c5b222f303239222c6e756c6c5d2c5b222f323836222c6e756c6c5d2c5b222f303433222c6e756c6c5d2c5b222f333030222c6e756c6c5d2c5b222f303537222c6e756c6c5d2c5b222f333134222c6e756c6c5d2c5b222f303731222c6e756c6c5d2c5b222f333238222c6e756c6c5d2c5b222f303835222c6e756c6c5d2c5b222f333432222c6e756c6c5d2c5b222f303939222c6e756c6c5d2c5b222f333536222c6e756c6c5d2c5b222f313133222c6e756c6c5d2c5b222f333730222c6e756c6c5d2c5b222f313237222c6e756c6c5d2c5b222f333834222c6e756c6c5d2c5b222f313431222c6e756c6c5d2c5b222f333938222c6e756c6c5d2c5b222f313535222c6e756c6c5d2c5b222f343132222c6e756c6c5d2c5b222f313639222c6e756c6c5d2c5b222f343236222c6e756c6c5d2c5b222f313833222c6e756c6c5d2c5b222f343430222c6e756c6c5d2c5b222f313937222c6e756c6c5d2c5b222f343534222c6e756c6c5d2c5b222f323131222c6e756c6c5d2c5b222f343638222c6e756c6c5d2c5b222f323235222c6e756c6c5d2c5b222f343832222c6e756c6c5d2c5b222f323339222c6e756c6c5d2c5b222f343936222c6e756c6c5d2c5b222f323533222c6e756c6c5d2c5b222f303130222c6e756c6c5d2c5b222f323637222c6e756c6c5d2c5b222f303234222c6e756c6c5d2c5b222f323831222c6e756c6c5d');
INSERT INTO public.frontier_batches_5 VALUES (7, 1, 1, 2, 100, 1, '\x5b222f343139222c6e756c6c5d2c5b222f313736222c6e756c6c5d2c5b222f343333222c6e756c6c5d2c5b222f313930222c6e756c6c5d2c5b222f343437222c6e756c6c5d2c5b222f323034222c6e756c6c5d2c5b222f343631222c6e756c6c5d2c5b222f323138222c6e756c6c5d2c5b222f343735222c6e756c6c5d2c5b222f323332222c6e756c6c5d2c5b222f343839222c6e756c6c5d2c5b222f323436222c6e756c6c5d2c5b222f303033222c6e756c6c5d2c5b222f323630222c6e756c6c5d2c5b222f303137222c6e756c6c5d2c5b222f323734222c6e756c6c5d2c5b222f303331222c6e756c6c5d2c5b222f323838222c6e756c6c5d2c5b222f303435222c6e756c6c5d2c5b222f333032222c6e756c6c5d2c5b222f303539222c6e756c6c5d2c5b222f333136222c6e756c6c5d2c5b222f303733222c6e756c6c5d2c5b222f333330222c6e756c6c5d2c5b222f303837222c6e756c6c5d2c5b222f333434222c6e756c6c5d2c5b222f313031222c6e756c6c5d2c5b222f333538222c6e756c6c5d2c5b222f313135222c6e756c6c5d2c5b222f333732222c6e756c6c5d2c5b222f313239222c6e756c6c5d2c5b222f333836222c6e756c6c5d2c5b222f313433222c6e756c6c5d2c5b222f343030222c6e756c6c5d2c5b222f313537222c6e756c6c5d2c5b222f343134222c6e756c6c5d2c5b222f313731222c6e756c6c5d2c5b222f343238222c6e756c6c5d2c5b222f313835222c6e756c6c5d2c5b222f343432222c6e756c6c5d2c5b222f313939222c6e756c6c5d2c5b222f343536222c6e756c6c5d2c5b222f323133222c6e756c6c5d2c5b222f343730222c6e756c6c5d2c5b222f323237222c6e756c6c5d2c5b222f343834222c6e756c6c5d2c5b222f323431222c6e756c6c5d2c5b222f343938222c6e756c6c5d2c5b222f323535222c6e756c6c5d2c5b222f303132222c6e756c6c5d2c5b222f323639222c6e756c6c5d2c5b222f303236222c6e756c6c5d2c5b222f323833222c6e756c6c5d2c5b222f303430222c6e756c6c5d2c5b222f323937222c6e756c6c5d2c5b222f303534222c6e756c6c5d2c5b222f333131222c6e756c6c5d2c5b222f303638222c6e756c6c5d2c5b222f333235222c6e756c6c5d2c5b222f303832222c6e756c6c5d2c5b222f333339222c6e756c6c5d2c5b222f303936222c6e756c6c5d2c5b222f333533222c6e756c6c5d2c5b222f313130222c6e756c6c5d2c5b222f333637222c6e756c6c5d2c5b222f313234222c6e756c6c5d2c5b222f333831222c6e756c6c5d2c5b222f313338222c6e756c6c5d2c5b222f333935222c6e756c6c5d2c5b222f313532222c6e756c6c5d2c5b222f343039222c6e756c6c5d2c5b222f313636222c6e756c6c5d2c5b222f343233222c6e756c6c5d2c5b222f313830222c6e756c6c5d2c5b222f343337222c6e756c6c5d2c5b222f313934222c6e756c6c5d2c5b222f343531222c6e756c6c5d2c5b222f323038222c6e756c6c5d2c5b222f343635222c6e756c6c5d2c5b222f323232222c6e756c6c5d2c5b222f343739222c6e756c6c5d2c5b222f323336222c6e756c6c5d2c5b222f343933222c6e756c6c5d2c5b222f323530222c6e756c6c5d2c5b222f303037222c6e756c6c5d2c5b222f323634222c6e756c6c5d2c5b222f303231222c6e756c6c5d2c5b222f323738222c6e756c6c5d2c5b222f303335222c6e756c6c5d2c5b222f323932222c6e756c6c5d2c5b222f303439222c6e756c6c5d2c5b222f333036222c6e756c6c5d2c5b222f303633222c6e756c6c5d2c5b222f333230222c6e756c6c5d2c5b222f303737222c6e756c6c5d2c5b222f333334222c6e756c6c5d2c5b222f303931222c6e756c6c5d2c5b222f333438222c6e756c6c5d2c5b222f313035222c6e756c6c5d2c5b222f333632222c6e756c6c5d');
INSERT INTO public.frontier_batches_5 VALUES (7, 1, 1, 5, 67, 1, '\x5b222f313139222c6e756c6c5d2c5b222f333736222c6e756c6c5d2c5b222f313333222c6e756c6c5d2c5b222f333930222c6e756c6c5d2c5b222f313437222c6e756c6c5d2c5b222f343034222c6e756c6c5d2c5b222f313631222c6e756c6c5d2c5b222f343138222c6e756c6c5d2c5b222f313735222c6e756c6c5d2c5b222f343332222c6e756c6c5d2c5b222f313839222c6e756c6c5d2c5b222f343436222c6e756c6c5d2c5b222f323033222c6e756c6c5d2c5b222f343630222c6e756c6c5d2c5b222f323137222c6e756c6c5d2c5b222f343734222c6e756c6c5d2c5b222f323331222c6e756c6c5d2c5b222f343838222c6e756c6c5d2c5b222f323435222c6e756c6c5d2c5b222f303032222c6e756c6c5d2c5b222f323539222c6e756c6c5d2c5b222f303136222c6e756c6c5d2c5b222f323733222c6e756c6c5d2c5b222f303330222c6e756c6c5d2c5b222f323837222c6e756c6c5d2c5b222f303434222c6e756c6c5d2c5b222f333031222c6e756c6c5d2c5b222f303538222c6e756c6c5d2c5b222f333135222c6e756c6c5d2c5b222f303732222c6e756c6c5d2c5b222f333239222c6e756c6c5d2c5b222f303836222c6e756c6c5d2c5b222f333433222c6e756c6c5d2c5b222f313030222c6e756c6c5d2c5b222f333537222c6e756c6c5d2c5b222f313134222c6e756c6c5d2c5b222f333731222c6e756c6c5d2c5b222f313238222c6e756c6c5d2c5b222f333835222c6e756c6c5d2c5b222f313432222c6e756c6c5d2c5b222f333939222c6e756c6c5d2c5b222f313536222c6e756c6c5d2c5b222f343133222c6e756c6c5d2c5b222f313730222c6e756c6c5d2c5b222f343237222c6e756c6c5d2c5b222f313834222c6e756c6c5d2c5b222f343431222c6e756c6c5d2c5b222f313938222c6e756c6c5d2c5b222f343535222c6e756c6c5d2c5b222f323132222c6e756c6c5d2c5b222f343639222c6e756c6c5d2c5b222f323236222c6e756c6c5d2c5b222f343833222c6e756c6c5d2c5b222f323430222c6e756c6c5d2c5b222f343937222c6e756c6c5d2c5b222f323534222c6e756c6c5d2c5b222f303131222c6e756c6c5d2c5b222f323638222c6e756c6c5d2c5b222f303235222c6e756c6c5d2c5b222f323832222c6e756c6c5d2c5b222f303339222c6e756c6c5d2c5b222f323936222c6e756c6c5d2c5b222f303533222c6e756c6c5d2c5b222f333130222c6e756c6c5d2c5b222f303637222c6e756c6c5d2c5b222f333234222c6e756c6c5d2c5b222f303831222c6e756c6c5d');
INSERT INTO public.frontier_batches_5 VALUES (7, 1, 2, 6, 66, 1, '\x5b222f303338222c6e756c6c5d2c5b222f323935222c6e756c6c5d2c5b222f303532222c6e756c6c5d2c5b222f333039222c6e756c6c5d2c5b222f303636222c6e756c6c5d2c5b222f333233222c6e756c6c5d2c5b222f303830222c6e756c6c5d2c5b222f333337222c6e756c6c5d2c5b222f303934222c6e756c6c5d2c5b222f333531222c6e756c6c5d2c5b222f313038222c6e756c6c5d2c5b222f333635222c6e756c6c5d2c5b222f313232222c6e756c6c5d2c5b222f333739222c6e756c6c5d2c5b222f313336222c6e756c6c5d2c5b222f333933222c6e756c6c5d2c5b222f313530222c6e756c6c5d2c5b222f343037222c6e756c6c5d2c5b222f313634222c6e756c6c5d2c5b222f343231222c6e756c6c5d2c5b222f313738222c6e756c6c5d2c5b222f343335222c6e756c6c5d2c5b222f313932222c6e756c6c5d2c5b222f343439222c6e756c6c5d2c5b222f323036222c6e756c6c5d2c5b222f343633222c6e756c6c5d2c5b222f323230222c6e756c6c5d2c5b222f343737222c6e756c6c5d2c5b222f323334222c6e756c6c5d2c5b222f343931222c6e756c6c5d2c5b222f323438222c6e756c6c5d2c5b222f303035222c6e756c6c5d2c5b222f323632222c6e756c6c5d2c5b222f303139222c6e756c6c5d2c5b222f323736222c6e756c6c5d2c5b222f303333222c6e756c6c5d2c5b222f323930222c6e756c6c5d2c5b222f303437222c6e756c6c5d2c5b222f333034222c6e756c6c5d2c5b222f303631222c6e756c6c5d2c5b222f333138222c6e756c6c5d2c5b222f303735222c6e756c6c5d2c5b222f333332222c6e756c6c5d2c5b222f303839222c6e756c6c5d2c5b222f333436222c6e756c6c5d2c5b222f313033222c6e756c6c5d2c5b222f333630222c6e756c6c5d2c5b222f313137222c6e756c6c5d2c5b222f333734222c6e756c6c5d2c5b222f313331222c6e756c6c5d2c5b222f333838222c6e756c6c5d2c5b222f313435222c6e756c6c5d2c5b222f343032222c6e756c6c5d2c5b222f313539222c6e756c6c5d2c5b222f343136222c6e756c6c5d2c5b222f313733222c6e756c6c5d2c5b222f343330222c6e756c6c5d2c5b222f313837222c6e756c6c5d2c5b222f343434222c6e756c6c5d2c5b222f323031222c6e756c6c5d2c5b222f343538222c6e756c6c5d2c5b222f323135222c6e756c6c5d2c5b222f343732222c6e756c6c5d2c5b222f323239222c6e756c6c5d2c5b222f343836222c6e756c6c5d2c5b222f323433222c6e756c6c5d');

INSERT INTO public.frontier_fingerprints_3 VALUES (7, 2, 1, '\x776974682064617461', '\x7b2262223a206e756c6c7d');
INSERT INTO public.frontier_fingerprints_3 VALUES (7, 2, 1, '\x6c61746572', NULL);

INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303030', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303033', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303134', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303137', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303238', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303331', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303432', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303536', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303730', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303834', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303935', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303938', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313039', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313132', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313233', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313337', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313531', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313635', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313736', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313739', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313930', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313933', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323034', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323138', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323332', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323436', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323537', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323630', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323731', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323734', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323835', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323939', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333133', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333237', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333338', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333431', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333532', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333535', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333636', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333830', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333934', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343038', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343139', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343232', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343333', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343336', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343437', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343631', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343735', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343839', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303036', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303230', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303334', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303435', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303438', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303539', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303632', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303733', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303837', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313031', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313135', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313236', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313239', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313430', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313433', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313534', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313638', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313832', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313936', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323037', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323130', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323231', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323234', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323335', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323439', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323633', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323737', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323838', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323931', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333032', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333035', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333136', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333330', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333434', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333538', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333639', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333732', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333833', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333836', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333937', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343131', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343235', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343339', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343530', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343533', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343634', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343637', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343738', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343831', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343932', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303039', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303132', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303233', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303337', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303531', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303635', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303736', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303739', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303930', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303933', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313034', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313138', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313332', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313436', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313537', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313630', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313731', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313734', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313835', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313939', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323133', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323237', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323338', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323431', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323532', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323535', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323636', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323830', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323934', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333038', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333139', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333232', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333333', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333336', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333437', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333631', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333735', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333839', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343030', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343033', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343134', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343137', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343238', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343331', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343432', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343536', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343730', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343834', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343935', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343938', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303031', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303135', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303236', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303239', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303430', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303433', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303534', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303638', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303832', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303936', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313037', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313130', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313231', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313234', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313335', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313439', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313633', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313737', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313838', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313931', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323032', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323035', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323136', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323330', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323434', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323538', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323639', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323732', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323833', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323836', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323937', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333131', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333235', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333339', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333530', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333533', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333634', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333637', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333738', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333831', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333932', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343036', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343230', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343334', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343435', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343438', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343539', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343632', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343733', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343837', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303034', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303138', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303332', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303436', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303537', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303630', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303731', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303734', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303835', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303939', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313133', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313237', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313338', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313431', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313532', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313535', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313636', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313830', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313934', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323038', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323139', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323232', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323333', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323336', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323437', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323631', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323735', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323839', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333030', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333033', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333134', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333137', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333238', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333331', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333432', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333536', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333730', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333834', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333935', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333938', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343039', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343132', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343233', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343337', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343531', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343635', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343736', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343739', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343930', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343933', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303037', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303130', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303231', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303234', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303335', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303439', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303633', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303737', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303838', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303931', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313032', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313035', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313136', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313330', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313434', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313538', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313639', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313732', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313833', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313836', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313937', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323131', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323235', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323339', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323530', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323533', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323634', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323637', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323738', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323831', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323932', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333036', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333230', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333334', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333435', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333438', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333539', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333632', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333733', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333837', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343031', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343135', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343236', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343239', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343430', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343433', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343534', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343638', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343832', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343936', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303133', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303237', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303338', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303431', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303532', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303535', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303636', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303830', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303934', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313038', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313139', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313232', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313333', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313336', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313437', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313631', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313735', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313839', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323030', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323033', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323134', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323137', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323238', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323331', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323432', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323536', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323730', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323834', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323935', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323938', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333039', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333132', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333233', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333337', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333531', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333635', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333736', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333739', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333930', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333933', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343034', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343138', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343332', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343436', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343537', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343630', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343731', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343734', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343835', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343939', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303032', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303035', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303136', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303330', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303434', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303538', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303639', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303732', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303833', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303836', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303937', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313131', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313235', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313339', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313530', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313533', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313634', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313637', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313738', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313831', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313932', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323036', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323230', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323334', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323435', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323438', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323539', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323632', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323733', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323837', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333031', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333135', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333236', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333239', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333430', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333433', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333534', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333638', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333832', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333936', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343037', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343130', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343231', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343234', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343335', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343439', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343633', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343737', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343838', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343931', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303038', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303139', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303232', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303333', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303336', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303437', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303631', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303735', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303839', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313030', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313033', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313134', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313137', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313238', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313331', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313432', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313536', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313730', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313834', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313935', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313938', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323039', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323132', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323233', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323337', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323531', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323635', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323736', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323739', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323930', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323933', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333034', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333138', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333332', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333436', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333537', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333630', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333731', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333734', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333835', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333939', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343133', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343237', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343338', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343431', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343532', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343535', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343636', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343830', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343934', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303131', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303235', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303339', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303530', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303533', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303634', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303637', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303738', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303831', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f303932', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313036', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313230', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313334', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313435', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313438', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313539', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313632', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313733', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f313837', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323031', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323135', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323236', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323239', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323430', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323433', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323534', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323638', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323832', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f323936', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333037', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333130', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333231', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333234', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333335', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333439', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333633', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333737', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333838', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f333931', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343032', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343035', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343136', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343330', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343434', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343538', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343639', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343732', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343833', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343836', NULL);
INSERT INTO public.frontier_fingerprints_5 VALUES (7, 1, 1, '\x2f343937', NULL);

INSERT INTO public.frontier_slots VALUES (7, 'shop', '0', 1, 6, '\x5b5b312c302c3530302c6e756c6c2c66616c73652c305d5d', 155800097578432266);
INSERT INTO public.frontier_slots VALUES (7, 'shop', '1', 2, 2, '\x5b5b312c302c322c6e756c6c2c66616c73652c305d5d', 3941272926733804575);

INSERT INTO public.jobs VALUES (7, 1, 2, 'books', 'running', 1795993281526, 1795993281526, NULL, '\x7b227072696f72697479223a322c22756e697473223a312c227370696465725f61726773223a7b2270616765223a2231227d2c2270726f6a656374223a372c22737069646572223a22626f6f6b73222c227374617465223a2272756e6e696e67222c2272756e6e696e675f74696d65223a313739353939333238313532362c22737461727465645f6279223a22617069227d', 2, 2, 1, '[]', 1795993281526, 0);
INSERT INTO public.jobs VALUES (7, 1, 3, 'books', 'pending', 1795993281566, 1795993281566, NULL, '\x7b227072696f72697479223a322c22756e697473223a312c227370696465725f61726773223a7b2270616765223a2231227d2c2270726f6a656374223a372c22737069646572223a22626f6f6b73222c227374617465223a2270656e64696e67222c2270656e64696e675f74696d65223a313739353939333238313536362c227363686564756c65645f6279223a22617069227d', 2, 3, 1, '[]', 1795993281566, 0);
INSERT INTO public.jobs VALUES (7, 1, 1, 'books', 'finished', 1795993281880, 1795993281880, NULL, '\x7b227072696f72697479223a322c22756e697473223a312c227370696465725f61726773223a7b2270616765223a2231227d2c2270726f6a656374223a372c22737069646572223a22626f6f6b73222c227374617465223a2266696e6973686564222c2272756e6e696e675f74696d65223a313739353939333238313431362c22737461727465645f6279223a22617069222c22636c6f73655f726561736f6e223a2266696e6973686564222c2266696e69736865645f74696d65223a313739353939333238313838302c22636f6d706c657465645f6279223a22617069227d', 2, 1, 1, '[]', 1795993281416, 0);
INSERT INTO public.jobs VALUES (7, 2, 1, 'other', 'deleted', 1795993281937, 1795993281937, NULL, '\x7b227072696f72697479223a322c22756e697473223a312c227370696465725f61726773223a7b2270616765223a2231227d2c2270726f6a656374223a372c22737069646572223a226f74686572222c227374617465223a2264656c65746564222c2270656e64696e675f74696d65223a313739353939333238313630312c227363686564756c65645f6279223a22617069222c2264656c657465645f74696d65223a313739353939333238313933372c2264656c657465645f6279223a22617069227d', 2, 4, 1, '[]', 1795993281601, 0);

INSERT INTO public.last_commits VALUES (2036133609447567785, 1585014308966907454, '2026-11-29 23:01:22.922548+00');

INSERT INTO public.record_chunks_1 VALUES (7, 'items', 1, 1, 0, 120, 1795993281636, '\x785e75d82d7215501005619f55bc7a3a62e6fe4f24ebc0465050c40445b1778a42f66d7354bbcf9ddfcf9fcfb747bc3e9e9fdf3e7fbc3fdf1ecf2f1f1fdf1ff1f8fa2be2bdfe6dc4f3cfcbff3011e63d6c08db3dec08fb3d1c08c73d9c08e73d5c08d73ddc08f73d3c08cf3d2c84750f93346936171cd149f2a4f8248152849244294649a414a524538a53122a452a49956295c44ad16ad46aa2d5a8d544ab51ab8956a35613ad46ad265a8d5a4db41ab59a68356a35d16ad46aa2d5a8d544ab53ab8b56a75617ad4ead2e5a9d5a5db43ab5ba68756a75d1ead4eaa2d5a9d545ab53ab8b56a75617ad41ad215a835a43b406b586680d6a0dd11ad41aa235a835446b506b88d6a0d610ad41ad215a835a43b426b5a6684d6a4dd19ad49aa235a935456b526b8ad6a4d614ad49ad295a935a53b426b5a6684d6a4dd15ad45aa2b5a8b5446b516b89d6a2d612ad45ad255a8b5a4bb416b596682d6a2dd15ad45aa2b5a8b5446b536b8bd6a6d616ad4dad2d5a9b5a5bb436b5b6686d6a6dd1dad4daa2b5a9b5456b536b8bd6a6d616ad43ad235a875a47b40eb58e681d6a1dd13ad43aa275a87544eb50eb88d6a1d611ad43ad235a875a47b48a5a255a45ad12ada256895651ab44aba855a255d42ad12a6a956815b54ab48a5a255a45ad12ad0c7265885706c132442c836419629641b40c51cb205b86b865102e43e4324897217619c4cb10bd0cf265885f0601334cf07670f8c371114c13bc9d1cfa72dc6e0efd396e47873e1db7ab43bf8edbd9a16fc7edeed0bfe37678e8e371bb3cf079fc05b7865632', NULL);
INSERT INTO public.record_chunks_1 VALUES (7, 'items', 1, 1, 120, 30, 1795993281682, '\x785e45cdb91183000003b03e53e4982060876f2816e0d89d0ad4a9d3391cc3fe1da7dff57938e284c1e21f675c70c5ed656cb1c5165b8ab6d8628b2db6da6aabad415b6db5d5565bb7eb0631904f7a', NULL);
INSERT INTO public.record_chunks_1 VALUES (7, 'requests', 1, 1, 0, 2, 1795993281702, '\x785ea58d410ac3201405f739c5e7ad256aa19bbf2fbd402f6089a0504d30cf55c9dd8b906577d90d0ccc7c5122d3ba4005cfc70b46b033b0ef50b93967044b6f8179ad50b91b411bc60fc15c225406f6f6810a12b9a9b5617e5b8763bad0de428b9567fd1c79f36fe471fc00de3f35b5', '\x92920100920126');
INSERT INTO public.record_chunks_1 VALUES (7, 'requests', 1, 1, 2, 1, 1795993281803, '\x785e15cb4b0a02311444d1ad14357e9836e0e4cdc50db881480209d81fd29591b8f726c3cbe1feb816d53dd3c1d7f34d034f258d938eb82c06e6d193dabed1f130b04fb94f38522f9b6619a8b696b91838fa970e56e9f010d2ed1322ff17fe0a1cac', NULL);
INSERT INTO public.record_chunks_1 VALUES (7, 'logs', 1, 1, 0, 5, 1795993281817, '\x785eab562ac9cc4d55b25230d05150ca492d4bcd51b25230027172538b8b13d341524a3e9979a90a064ab55c70d58684541b22ab3622a4da0859b53121d5c6c8aa4d08a93651aa0500ce5a4011', NULL);
INSERT INTO public.record_chunks_1 VALUES (7, 'samples', 1, 1, 0, 1, 1795993281842, '\x785e8b36d45130d25130d65130d151308d0500173302e8', NULL);

INSERT INTO public.record_chunks_3 VALUES (7, 'items', 1, 2, 0, 4, 1795993281864, '\x785eab56ca53b25230a8e582300c610c2318c3b81600a20b08f5', NULL);

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

INSERT INTO public.record_totals VALUES (7, 'items', 1, 1, 150, 2792, 0);
INSERT INTO public.record_totals VALUES (7, 'requests', 1, 1, 3, 190, 0);
INSERT INTO public.record_totals VALUES (7, 'logs', 1, 1, 5, 35, 0);
INSERT INTO public.record_totals VALUES (7, 'samples', 1, 1, 1, 6, 0);
INSERT INTO public.record_totals VALUES (7, 'items', 1, 2, 4, 16, 0);

INSERT INTO public.schema_version VALUES (0, NULL);
INSERT INTO public.schema_version VALUES (100, 1795993279792);

INSERT INTO public.spiders VALUES (7, 'books', 1, '[]', 1795993281416, 1795993281416);
INSERT INTO public.spiders VALUES (7, 'other', 2, '[]', 1795993281601, 1795993281601);

ALTER TABLE ONLY public.access_keys
    ADD CONSTRAINT access_keys_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.activity
    ADD CONSTRAINT activity_pkey PRIMARY KEY (project, number);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (project, spider, job);

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

ALTER TABLE ONLY public.discarded
    ADD CONSTRAINT discarded_pkey PRIMARY KEY (project, kind, number);

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

ALTER TABLE ONLY public.frontier_fingerprint_blocks
    ADD CONSTRAINT frontier_fingerprint_blocks_pkey PRIMARY KEY (project, slot, run, first);

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

ALTER TABLE ONLY public.frontier_slots
    ADD CONSTRAINT frontier_slots_pkey PRIMARY KEY (project, frontier, slot);

ALTER TABLE ONLY public.job_tags
    ADD CONSTRAINT job_tags_pkey PRIMARY KEY (project, tag, spider, job);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (project, spider, job);

ALTER TABLE ONLY public.last_commits
    ADD CONSTRAINT last_commits_pkey PRIMARY KEY (writer);

ALTER TABLE ONLY public.locks
    ADD CONSTRAINT locks_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (node);

ALTER TABLE ONLY public.periodic_jobs
    ADD CONSTRAINT periodic_jobs_pkey PRIMARY KEY (project, number);

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

ALTER TABLE ONLY public.record_totals
    ADD CONSTRAINT record_totals_pkey PRIMARY KEY (project, kind, spider, job);

ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.spiders
    ADD CONSTRAINT spiders_pkey PRIMARY KEY (project, name);

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

CREATE INDEX comments_by_item ON public.comments USING btree (project, spider, job, item, field, number);

CREATE INDEX job_tags_by_job ON public.job_tags USING btree (project, spider, job, tag);

CREATE INDEX jobs_by_spider ON public.jobs USING btree (project, spider, state, changed);

CREATE INDEX jobs_by_state ON public.jobs USING btree (project, state, changed);

CREATE INDEX jobs_by_time ON public.jobs USING btree (project, changed);

CREATE UNIQUE INDEX jobs_by_unique_key ON public.jobs USING btree (project, unique_key);

CREATE INDEX jobs_to_place ON public.jobs USING btree (node_tags, units, priority DESC, since, project, queued) WHERE (state = 'pending'::text);

CREATE INDEX jobs_to_start ON public.jobs USING btree (project, priority DESC, queued) WHERE (state = 'pending'::text);

CREATE INDEX periodic_jobs_due ON public.periodic_jobs USING btree (next_run, project, number) WHERE (next_run IS NOT NULL);

CREATE UNIQUE INDEX spiders_by_id ON public.spiders USING btree (project, spider);

CREATE INDEX versions_by_name ON public.versions USING btree (project, name, deploy);

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

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_0_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_1_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_2_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_3_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_4_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_5_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_6_pkey;

ALTER INDEX public.record_chunks_pkey ATTACH PARTITION public.record_chunks_7_pkey;

