-- Tables of version 0.1.0, never changed again: databases and backups of that version are upgraded from here.
-- In the types of SQLite; `0019_baseline.py` names those of PostgreSQL.

CREATE TABLE audit_spool (
    spooled_id VARCHAR(32) NOT NULL,
    line BLOB NOT NULL,
    PRIMARY KEY (spooled_id)
);

CREATE TABLE installation (
    name VARCHAR(64) NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE one_time_links (
    digest VARCHAR(64) NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (digest)
);

CREATE TABLE tenants (
    tenant_id VARCHAR(255) NOT NULL,
    name TEXT NOT NULL,
    locale VARCHAR(8) NOT NULL,
    policy JSON NOT NULL,
    collection VARCHAR(190) NOT NULL,
    generation INTEGER NOT NULL,
    newest_generation INTEGER NOT NULL,
    shared_filter VARCHAR(255),
    shard_key VARCHAR(255),
    relations INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
    suspended_at DATETIME,
    PRIMARY KEY (tenant_id),
    UNIQUE (collection)
);

CREATE TABLE agreements (
    tenant_id VARCHAR(255) NOT NULL,
    chunk_id VARCHAR(64) NOT NULL,
    other_chunk_id VARCHAR(64) NOT NULL,
    doc_id VARCHAR(512) NOT NULL,
    other_doc_id VARCHAR(512) NOT NULL,
    decided_by VARCHAR(255) NOT NULL,
    at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, chunk_id, other_chunk_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE articles (
    tenant_id VARCHAR(255) NOT NULL,
    article_id VARCHAR(32) NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    questions JSON NOT NULL,
    lang VARCHAR(8) NOT NULL,
    trust VARCHAR(32) NOT NULL,
    version INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
    created_by VARCHAR(255) NOT NULL,
    updated_at DATETIME NOT NULL,
    updated_by VARCHAR(255) NOT NULL,
    published_version INTEGER,
    published_at DATETIME,
    published_by VARCHAR(255),
    preview JSON,
    chat_id VARCHAR(32),
    PRIMARY KEY (tenant_id, article_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_articles_chat ON articles (tenant_id, chat_id);
CREATE INDEX ix_articles_tenant_updated ON articles (tenant_id, updated_at);

CREATE TABLE audit (
    tenant_id VARCHAR(255) NOT NULL,
    sequence BIGINT NOT NULL,
    kind VARCHAR(16) NOT NULL,
    at DATETIME NOT NULL,
    turn_id VARCHAR(128),
    outcome VARCHAR(32),
    reason VARCHAR(64),
    note TEXT,
    digest VARCHAR(64),
    previous VARCHAR(64) NOT NULL,
    hash VARCHAR(64) NOT NULL,
    PRIMARY KEY (tenant_id, sequence),
    UNIQUE (tenant_id, turn_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_audit_tenant_at ON audit (tenant_id, at);

CREATE TABLE audit_chains (
    tenant_id VARCHAR(255) NOT NULL,
    sequence BIGINT NOT NULL,
    hash VARCHAR(64) NOT NULL,
    PRIMARY KEY (tenant_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE audit_contents (
    tenant_id VARCHAR(255) NOT NULL,
    sequence BIGINT NOT NULL,
    person VARCHAR(32) NOT NULL,
    session_id VARCHAR(128) NOT NULL,
    salt VARCHAR(32) NOT NULL,
    body BLOB NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (tenant_id, sequence),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_audit_contents_person ON audit_contents (tenant_id, person);
CREATE INDEX ix_audit_contents_session ON audit_contents (tenant_id, session_id);

CREATE TABLE audit_documents (
    tenant_id VARCHAR(255) NOT NULL,
    doc_id VARCHAR(512) NOT NULL,
    sequence BIGINT NOT NULL,
    cited BOOLEAN NOT NULL,
    chunk_ids JSON NOT NULL,
    PRIMARY KEY (tenant_id, doc_id, sequence),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_audit_documents_sequence ON audit_documents (tenant_id, sequence);

CREATE TABLE canned_replies (
    tenant_id VARCHAR(255) NOT NULL,
    reply_id VARCHAR(32) NOT NULL,
    title VARCHAR(100) NOT NULL,
    text TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, reply_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE chats (
    tenant_id VARCHAR(255) NOT NULL,
    chat_id VARCHAR(32) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    site VARCHAR(64) NOT NULL,
    channel VARCHAR(32) NOT NULL,
    locale VARCHAR(8) NOT NULL,
    state VARCHAR(16) NOT NULL,
    assignee VARCHAR(255),
    version INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    ticket_id VARCHAR(32),
    reason VARCHAR(64) NOT NULL,
    confidence DOUBLE,
    failures INTEGER NOT NULL,
    reopened INTEGER NOT NULL,
    csat INTEGER,
    csat_comment TEXT NOT NULL,
    customer_seen INTEGER NOT NULL,
    operator_seen INTEGER NOT NULL,
    waiting_since DATETIME,
    snoozed_until DATETIME,
    resolved_at DATETIME,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    asked_at DATETIME,
    answered_at DATETIME,
    requested_at DATETIME,
    replied_at DATETIME,
    returned_at DATETIME,
    outcome VARCHAR(32) DEFAULT '' NOT NULL,
    outcome_reason VARCHAR(64) DEFAULT '' NOT NULL,
    undo JSON,
    PRIMARY KEY (tenant_id, chat_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_chats_asked ON chats (tenant_id, asked_at);
CREATE INDEX ix_chats_state ON chats (tenant_id, state, waiting_since);
CREATE INDEX ix_chats_subject ON chats (tenant_id, subject, updated_at);
CREATE INDEX ix_chats_updated ON chats (tenant_id, updated_at);

CREATE TABLE consents (
    tenant_id VARCHAR(255) NOT NULL,
    consent_id VARCHAR(32) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    site VARCHAR(64) NOT NULL,
    text TEXT NOT NULL,
    address VARCHAR(64) NOT NULL,
    at DATETIME NOT NULL,
    withdrawn_at DATETIME,
    PRIMARY KEY (tenant_id, consent_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_consents_subject ON consents (tenant_id, subject);

CREATE TABLE conversations (
    tenant_id VARCHAR(255) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    session_id VARCHAR(128) NOT NULL,
    turns JSON NOT NULL,
    updated_at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, subject, session_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_conversations_updated ON conversations (updated_at);

CREATE TABLE document_versions (
    tenant_id VARCHAR(255) NOT NULL,
    doc_id VARCHAR(512) NOT NULL,
    version INTEGER NOT NULL,
    title TEXT NOT NULL,
    text BLOB NOT NULL,
    source TEXT NOT NULL,
    url TEXT,
    lang VARCHAR(8) NOT NULL,
    markup VARCHAR(32) NOT NULL,
    meta JSON NOT NULL,
    content_hash VARCHAR(128) NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, doc_id, version),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE documents (
    tenant_id VARCHAR(255) NOT NULL,
    doc_id VARCHAR(512) NOT NULL,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    url TEXT,
    lang VARCHAR(8) NOT NULL,
    content_hash VARCHAR(128) NOT NULL,
    chunk_ids JSON NOT NULL,
    updated_at VARCHAR(32) NOT NULL,
    status VARCHAR(32) NOT NULL,
    trust VARCHAR(32) NOT NULL,
    priority INTEGER NOT NULL,
    tags JSON NOT NULL,
    project_key TEXT NOT NULL,
    evidence_tier TEXT NOT NULL,
    source_type TEXT NOT NULL,
    flags JSON NOT NULL,
    version INTEGER NOT NULL,
    given JSON NOT NULL,
    overrides JSON NOT NULL,
    generation INTEGER NOT NULL,
    ingested_at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, doc_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_documents_tenant_hash ON documents (tenant_id, content_hash);

CREATE TABLE edges (
    tenant_id VARCHAR(255) NOT NULL,
    from_doc VARCHAR(512) NOT NULL,
    kind VARCHAR(32) NOT NULL,
    to_doc VARCHAR(512) NOT NULL,
    weight DOUBLE NOT NULL,
    declared BOOLEAN NOT NULL,
    PRIMARY KEY (tenant_id, from_doc, kind, to_doc),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_edges_tenant_to ON edges (tenant_id, to_doc);

CREATE TABLE erasures (
    tenant_id VARCHAR(255) NOT NULL,
    person VARCHAR(32) NOT NULL,
    session_id VARCHAR(128) NOT NULL,
    until DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, person, session_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE evaluation_runs (
    tenant_id VARCHAR(255) NOT NULL,
    run_id VARCHAR(100) NOT NULL,
    created_at DATETIME NOT NULL,
    summary JSON NOT NULL,
    PRIMARY KEY (tenant_id, run_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_evaluation_runs_created ON evaluation_runs (tenant_id, created_at);

CREATE TABLE feedback (
    tenant_id VARCHAR(255) NOT NULL,
    turn_id VARCHAR(128) NOT NULL,
    person VARCHAR(32) NOT NULL,
    session_id VARCHAR(128) NOT NULL,
    thumb VARCHAR(8) NOT NULL,
    reason VARCHAR(16),
    comment TEXT NOT NULL,
    at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, turn_id, person),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_feedback_person ON feedback (tenant_id, person);
CREATE INDEX ix_feedback_tenant_at ON feedback (tenant_id, at);

CREATE TABLE gap_askings (
    tenant_id VARCHAR(255) NOT NULL,
    gap_id VARCHAR(32) NOT NULL,
    sequence BIGINT NOT NULL,
    question TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (tenant_id, gap_id, sequence),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_gap_askings_sequence ON gap_askings (tenant_id, sequence);

CREATE TABLE gaps (
    tenant_id VARCHAR(255) NOT NULL,
    gap_id VARCHAR(32) NOT NULL,
    reason VARCHAR(64) NOT NULL,
    question TEXT NOT NULL,
    stems JSON NOT NULL,
    doc_ids JSON NOT NULL,
    count INTEGER NOT NULL,
    reopened INTEGER NOT NULL,
    status VARCHAR(16) NOT NULL,
    first_at DATETIME NOT NULL,
    last_at DATETIME NOT NULL,
    closed_at DATETIME,
    decided_by VARCHAR(255) DEFAULT '' NOT NULL,
    article_id VARCHAR(32),
    vector BLOB,
    vector_of VARCHAR(32) DEFAULT '' NOT NULL,
    PRIMARY KEY (tenant_id, gap_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_gaps_tenant_status ON gaps (tenant_id, status);

CREATE TABLE generations (
    tenant_id VARCHAR(255) NOT NULL,
    number INTEGER NOT NULL,
    state VARCHAR(16) NOT NULL,
    encoder TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
    retired_at DATETIME,
    PRIMARY KEY (tenant_id, number),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE idempotency (
    tenant_id VARCHAR(255) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    "key" VARCHAR(255) NOT NULL,
    request_hash VARCHAR(64) NOT NULL,
    answer TEXT,
    created_at DATETIME NOT NULL,
    holder VARCHAR(32) DEFAULT '' NOT NULL,
    PRIMARY KEY (tenant_id, subject, "key"),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_idempotency_created ON idempotency (created_at);

CREATE TABLE invitations (
    digest VARCHAR(64) NOT NULL,
    tenant_id VARCHAR(255) NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (digest),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE jobs (
    tenant_id VARCHAR(255) NOT NULL,
    job_id VARCHAR(32) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    state VARCHAR(16) NOT NULL,
    files JSON NOT NULL,
    gone JSON NOT NULL,
    size BIGINT NOT NULL,
    progress JSON NOT NULL,
    report JSON,
    error VARCHAR(64),
    revision INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    farthest INTEGER NOT NULL,
    faults INTEGER NOT NULL,
    cancelling BOOLEAN NOT NULL,
    created_at DATETIME NOT NULL,
    started_at DATETIME,
    begun_at DATETIME,
    finished_at DATETIME,
    holder VARCHAR(32) DEFAULT '' NOT NULL,
    PRIMARY KEY (tenant_id, job_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_jobs_state ON jobs (state, tenant_id);

CREATE TABLE lexicon_parts (
    tenant_id VARCHAR(255) NOT NULL,
    revision INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    whole BOOLEAN NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant_id, revision),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE lexicon_states (
    tenant_id VARCHAR(255) NOT NULL,
    revision INTEGER NOT NULL,
    dirty BOOLEAN NOT NULL,
    PRIMARY KEY (tenant_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE operators (
    login VARCHAR(100) NOT NULL,
    tenant_id VARCHAR(255),
    role VARCHAR(16) NOT NULL,
    name VARCHAR(100) NOT NULL,
    password TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (login),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_operators_tenant ON operators (tenant_id);

CREATE TABLE rejected (
    tenant_id VARCHAR(255) NOT NULL,
    rejected_id VARCHAR(32) NOT NULL,
    text TEXT NOT NULL,
    reason TEXT NOT NULL,
    day VARCHAR(10) NOT NULL,
    doc_id VARCHAR(512),
    declared BOOLEAN NOT NULL,
    PRIMARY KEY (tenant_id, rejected_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_rejected_tenant_doc ON rejected (tenant_id, doc_id);

CREATE TABLE revocations (
    tenant_id VARCHAR(255) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    value VARCHAR(255) NOT NULL,
    until DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, kind, value),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE setting_changes (
    tenant_id VARCHAR(255) NOT NULL,
    change_id VARCHAR(32) NOT NULL,
    at DATETIME NOT NULL,
    changed_by VARCHAR(255) NOT NULL,
    area VARCHAR(16) NOT NULL,
    act VARCHAR(16) NOT NULL,
    about VARCHAR(255) NOT NULL,
    before_json JSON NOT NULL,
    after_json JSON NOT NULL,
    PRIMARY KEY (tenant_id, change_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_setting_changes_at ON setting_changes (tenant_id, at);

CREATE TABLE sign_in_providers (
    tenant_id VARCHAR(255) NOT NULL,
    issuer TEXT NOT NULL,
    client_id TEXT NOT NULL,
    client_secret TEXT NOT NULL,
    rules JSON NOT NULL,
    PRIMARY KEY (tenant_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE sites (
    "key" VARCHAR(64) NOT NULL,
    tenant_id VARCHAR(255) NOT NULL,
    name TEXT NOT NULL,
    origins JSON NOT NULL,
    config JSON NOT NULL,
    secrets JSON NOT NULL,
    identity_secret TEXT,
    identity_required BOOLEAN NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY ("key"),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_sites_tenant ON sites (tenant_id);

CREATE TABLE spending (
    tenant_id VARCHAR(255) NOT NULL,
    day VARCHAR(10) NOT NULL,
    usd DOUBLE NOT NULL,
    PRIMARY KEY (tenant_id, day),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE streams (
    tenant_id VARCHAR(255) NOT NULL,
    turn_id VARCHAR(128) NOT NULL,
    owner VARCHAR(64) NOT NULL,
    holder VARCHAR(32) NOT NULL,
    request_hash VARCHAR(64) NOT NULL,
    begun_at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, turn_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_streams_begun ON streams (begun_at);

CREATE TABLE tickets (
    tenant_id VARCHAR(255) NOT NULL,
    ticket_id VARCHAR(32) NOT NULL,
    turn_id VARCHAR(128) NOT NULL,
    session_id VARCHAR(128) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    channel VARCHAR(128) NOT NULL,
    reason VARCHAR(64) NOT NULL,
    question TEXT NOT NULL,
    draft TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    chat_id VARCHAR(32) NOT NULL,
    closed_at DATETIME,
    PRIMARY KEY (tenant_id, ticket_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_tickets_tenant_chat ON tickets (tenant_id, chat_id);
CREATE INDEX ix_tickets_tenant_created ON tickets (tenant_id, created_at);

CREATE TABLE tokens (
    tenant_id VARCHAR(255) NOT NULL,
    token_id VARCHAR(32) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    scopes JSON NOT NULL,
    issued_at DATETIME NOT NULL,
    issued_by VARCHAR(255) NOT NULL,
    expires_at DATETIME NOT NULL,
    used_at DATETIME,
    PRIMARY KEY (tenant_id, token_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
CREATE INDEX ix_tokens_expires ON tokens (expires_at);

CREATE TABLE tools (
    tenant_id VARCHAR(255) NOT NULL,
    name VARCHAR(64) NOT NULL,
    definition JSON NOT NULL,
    headers JSON NOT NULL,
    PRIMARY KEY (tenant_id, name),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE upload_pieces (
    tenant_id VARCHAR(255) NOT NULL,
    job_id VARCHAR(32) NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, job_id, number),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE watched_files (
    tenant_id VARCHAR(255) NOT NULL,
    path VARCHAR(512) NOT NULL,
    size BIGINT NOT NULL,
    modified_ns BIGINT NOT NULL,
    doc_ids JSON NOT NULL,
    PRIMARY KEY (tenant_id, path),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE webhooks (
    tenant_id VARCHAR(255) NOT NULL,
    webhook_id VARCHAR(32) NOT NULL,
    url TEXT NOT NULL,
    events JSON NOT NULL,
    secrets JSON NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, webhook_id),
    FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE chat_files (
    tenant_id VARCHAR(255) NOT NULL,
    file_id VARCHAR(32) NOT NULL,
    chat_id VARCHAR(32) NOT NULL,
    name TEXT NOT NULL,
    media_type VARCHAR(128) NOT NULL,
    size BIGINT NOT NULL,
    content BLOB NOT NULL,
    created_at DATETIME NOT NULL,
    message_id VARCHAR(32),
    PRIMARY KEY (tenant_id, file_id),
    CONSTRAINT fk_file_chat FOREIGN KEY(tenant_id, chat_id) REFERENCES chats (tenant_id, chat_id) ON DELETE CASCADE
);
CREATE INDEX ix_chat_files_chat ON chat_files (tenant_id, chat_id);
CREATE INDEX ix_chat_files_created ON chat_files (tenant_id, created_at);

CREATE TABLE chat_messages (
    tenant_id VARCHAR(255) NOT NULL,
    chat_id VARCHAR(32) NOT NULL,
    seq INTEGER NOT NULL,
    message_id VARCHAR(32) NOT NULL,
    client_id VARCHAR(128),
    author VARCHAR(16) NOT NULL,
    operator VARCHAR(255) NOT NULL,
    name VARCHAR(255) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    text TEXT NOT NULL,
    turn_id VARCHAR(128) NOT NULL,
    body JSON NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (tenant_id, chat_id, seq),
    CONSTRAINT fk_message_chat FOREIGN KEY(tenant_id, chat_id) REFERENCES chats (tenant_id, chat_id) ON DELETE CASCADE,
    UNIQUE (tenant_id, chat_id, client_id),
    UNIQUE (tenant_id, message_id)
);

CREATE TABLE operator_sessions (
    digest VARCHAR(64) NOT NULL,
    login VARCHAR(100) NOT NULL,
    address VARCHAR(64) NOT NULL,
    browser VARCHAR(200) NOT NULL,
    created_at DATETIME NOT NULL,
    seen_at DATETIME NOT NULL,
    PRIMARY KEY (digest),
    CONSTRAINT fk_session_operator FOREIGN KEY(login) REFERENCES operators (login) ON DELETE CASCADE
);
CREATE INDEX ix_operator_sessions_login ON operator_sessions (login);

CREATE TABLE outbox (
    tenant_id VARCHAR(255) NOT NULL,
    delivery_id VARCHAR(32) NOT NULL,
    webhook_id VARCHAR(32) NOT NULL,
    chat_id VARCHAR(32) NOT NULL,
    event VARCHAR(64) NOT NULL,
    body TEXT NOT NULL,
    state VARCHAR(16) NOT NULL,
    attempts INTEGER NOT NULL,
    next_at DATETIME NOT NULL,
    fault TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    delivered_at DATETIME,
    PRIMARY KEY (tenant_id, delivery_id),
    CONSTRAINT fk_outbox_webhook FOREIGN KEY(tenant_id, webhook_id) REFERENCES webhooks (tenant_id, webhook_id) ON DELETE CASCADE
);
CREATE INDEX ix_outbox_chat ON outbox (tenant_id, chat_id);
CREATE INDEX ix_outbox_due ON outbox (state, next_at);

CREATE TABLE stream_events (
    tenant_id VARCHAR(255) NOT NULL,
    turn_id VARCHAR(128) NOT NULL,
    number INTEGER NOT NULL,
    name VARCHAR(32) NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (tenant_id, turn_id, number),
    CONSTRAINT fk_event_stream FOREIGN KEY(tenant_id, turn_id) REFERENCES streams (tenant_id, turn_id) ON DELETE CASCADE
);
