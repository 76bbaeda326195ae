BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
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
CREATE TABLE audit_documents (
	tenant_id VARCHAR(255) NOT NULL, 
	doc_id VARCHAR(512) NOT NULL, 
	sequence BIGINT NOT NULL, 
	cited BOOLEAN NOT NULL, 
	chunk_ids JSON NOT NULL, 
	PRIMARY KEY (tenant_id, doc_id, sequence), 
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
	created_at DATETIME NOT NULL, message_id VARCHAR(32), 
	PRIMARY KEY (tenant_id, file_id), 
	CONSTRAINT fk_file_chat FOREIGN KEY(tenant_id, chat_id) REFERENCES chats (tenant_id, chat_id) ON DELETE CASCADE
);
INSERT INTO "chat_files" VALUES('acme','f1','9122851fd8477fc805d63837','чек.pdf','application/pdf',5,X'255044462D','2026-11-22 23:56:50.436677',NULL);
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
	UNIQUE (tenant_id, chat_id, client_id), 
	UNIQUE (tenant_id, message_id), 
	CONSTRAINT fk_message_chat FOREIGN KEY(tenant_id, chat_id) REFERENCES chats (tenant_id, chat_id) ON DELETE CASCADE
);
INSERT INTO "chat_messages" VALUES('acme','9122851fd8477fc805d63837',1,'142a90bc70f9a60a87b0ffe8','c1','customer','','','text','Где мой заказ?','','{}','2026-11-22 23:56:50.380766');
INSERT INTO "chat_messages" VALUES('acme','9122851fd8477fc805d63837',2,'ad4e3d81156e16d5e8a23b80',NULL,'system','','','event','','','{"event": "queued", "ticket_id": "CFF2U-VZMCC", "reason": "user_request"}','2026-11-22 23:56:50.408702');
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
	PRIMARY KEY (tenant_id, chat_id), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
INSERT INTO "chats" VALUES('acme','9122851fd8477fc805d63837','anna','site_acme','widget','ru','queued',NULL,1,2,'CFF2U-VZMCC','user_request',NULL,0,0,5,'Спасибо',0,0,'2026-11-22 23:56:50.398136',NULL,NULL,'2026-11-22 23:56:50.312068','2026-11-22 23:56:50.408702');
CREATE TABLE consents (
	tenant_id VARCHAR(255) NOT NULL, 
	consent_id VARCHAR(32) NOT NULL, 
	subject VARCHAR(255) NOT NULL, 
	site VARCHAR(64) NOT NULL, 
	text TEXT NOT NULL, 
	address VARCHAR(64) NOT NULL, 
	at DATETIME NOT NULL, 
	PRIMARY KEY (tenant_id, consent_id), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
INSERT INTO "consents" VALUES('acme','43b2164e9501034ddd7259f4','anna','site_acme','Согласен','127.0.0.1','2026-11-22 23:56:50.349047');
CREATE TABLE conversations (
	tenant_id VARCHAR(255) NOT NULL, 
	subject VARCHAR(255) NOT NULL, 
	session_id VARCHAR(128) NOT NULL, 
	turns JSON NOT NULL, 
	updated_at DATETIME NOT NULL, 
	PRIMARY KEY (tenant_id, subject, session_id), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
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
CREATE TABLE erasures (
	tenant_id VARCHAR(255) NOT NULL, 
	person VARCHAR(32) NOT NULL, 
	session_id VARCHAR(128) NOT NULL, 
	until DATETIME NOT NULL, 
	PRIMARY KEY (tenant_id, person, session_id), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
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
CREATE TABLE gap_askings (
	tenant_id VARCHAR(255) NOT NULL, 
	gap_id VARCHAR(32) NOT NULL, 
	sequence BIGINT NOT NULL, 
	PRIMARY KEY (tenant_id, gap_id, sequence), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
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
	PRIMARY KEY (tenant_id, gap_id), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
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
	PRIMARY KEY (tenant_id, subject, "key"), 
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
	PRIMARY KEY (tenant_id, job_id), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);
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
INSERT INTO "outbox" VALUES('acme','msg_7766b5dcc837e86ea84e23cc','b01dbebc2c3148ee','9122851fd8477fc805d63837','chat.started','{"type": "chat.started", "timestamp": "2026-11-22T23:56:50.314281+00:00", "data": {"chat_id": "9122851fd8477fc805d63837", "subject": "anna", "site": "site_acme", "channel": "widget", "state": "bot", "assignee": null, "ticket_id": null}}','pending',0,'2026-11-22 23:56:50.314281','','2026-11-22 23:56:50.314281',NULL);
INSERT INTO "outbox" VALUES('acme','msg_f8ba0843eb5b9845c103b9d5','b01dbebc2c3148ee','9122851fd8477fc805d63837','chat.message','{"type": "chat.message", "timestamp": "2026-11-22T23:56:50.396019+00:00", "data": {"chat_id": "9122851fd8477fc805d63837", "subject": "anna", "site": "site_acme", "channel": "widget", "state": "bot", "assignee": null, "ticket_id": null, "message": {"message_id": "142a90bc70f9a60a87b0ffe8", "seq": 1, "author": "customer", "kind": "text", "text": "Где мой заказ?"}}}','pending',0,'2026-11-22 23:56:50.396019','','2026-11-22 23:56:50.396019',NULL);
INSERT INTO "outbox" VALUES('acme','msg_ef8a8eeceb7c4c20cc45c483','b01dbebc2c3148ee','9122851fd8477fc805d63837','chat.state','{"type": "chat.state", "timestamp": "2026-11-22T23:56:50.407468+00:00", "data": {"chat_id": "9122851fd8477fc805d63837", "subject": "anna", "site": "site_acme", "channel": "widget", "state": "queued", "assignee": null, "ticket_id": null, "before": "bot"}}','pending',0,'2026-11-22 23:56:50.407468','','2026-11-22 23:56:50.407468',NULL);
INSERT INTO "outbox" VALUES('acme','msg_e1443465336228fa67ba3d1c','b01dbebc2c3148ee','9122851fd8477fc805d63837','chat.handoff','{"type": "chat.handoff", "timestamp": "2026-11-22T23:56:50.423750+00:00", "data": {"chat_id": "9122851fd8477fc805d63837", "subject": "anna", "site": "site_acme", "channel": "widget", "state": "queued", "assignee": null, "ticket_id": "CFF2U-VZMCC", "reason": "user_request", "question": "Где мой заказ?"}}','pending',0,'2026-11-22 23:56:50.423750','','2026-11-22 23:56:50.423750',NULL);
INSERT INTO "outbox" VALUES('acme','msg_3a3efb77c74663e028a8d9af','b01dbebc2c3148ee','9122851fd8477fc805d63837','chat.rated','{"type": "chat.rated", "timestamp": "2026-11-22T23:56:50.435267+00:00", "data": {"chat_id": "9122851fd8477fc805d63837", "subject": "anna", "site": "site_acme", "channel": "widget", "state": "queued", "assignee": null, "ticket_id": "CFF2U-VZMCC", "csat": 5, "comment": "Спасибо"}}','pending',0,'2026-11-22 23:56:50.435267','','2026-11-22 23:56:50.435267',NULL);
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
INSERT INTO "sites" VALUES('site_acme','acme','Магазин','["https://shop.example"]','{"locale": "ru", "theme": {}, "welcome": "", "suggested": [], "consent": null}','[{"secret": "DDeu17oeUPcRwbPOgrBly2nuGj4Xy_NFrhOd3r8zYya1nm_BQl6xvoq_Y2Q5ApzY", "created_at": "2026-11-22T23:56:50.272946+00:00"}]',NULL,0,'2026-11-22 23:56:50.272968');
CREATE TABLE spending (
	tenant_id VARCHAR(255) NOT NULL, 
	day VARCHAR(10) NOT NULL, 
	usd DOUBLE NOT NULL, 
	PRIMARY KEY (tenant_id, day), 
	FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
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
	PRIMARY KEY (tenant_id), 
	UNIQUE (collection)
);
INSERT INTO "tenants" VALUES('acme','Acme','ru','{}','acme',1,1,NULL,NULL,0,'2026-11-22 23:56:49.078813');
CREATE TABLE "tickets" (
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
INSERT INTO "tickets" VALUES('acme','CFF2U-VZMCC','','9122851fd8477fc805d63837','anna','operator','user_request','Где мой заказ?','','2026-11-22 23:56:50.408615','9122851fd8477fc805d63837',NULL);
CREATE TABLE tools (
	tenant_id VARCHAR(255) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	definition JSON NOT NULL, 
	headers JSON NOT NULL, 
	PRIMARY KEY (tenant_id, name), 
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
INSERT INTO "webhooks" VALUES('acme','b01dbebc2c3148ee','https://crm.example/hook','["chat.started", "chat.message", "chat.handoff", "chat.state", "chat.rated"]','[{"secret": "whsec_wn8tw3tt7VGnkUHm8w25rXakBiBkcbcmJIInUJmBIRI=", "created_at": "2026-11-22T23:56:50.293275+00:00"}]','2026-11-22 23:56:50.293303');
CREATE INDEX ix_documents_tenant_hash ON documents (tenant_id, content_hash);
CREATE INDEX ix_edges_tenant_to ON edges (tenant_id, to_doc);
CREATE INDEX ix_rejected_tenant_doc ON rejected (tenant_id, doc_id);
CREATE INDEX ix_conversations_updated ON conversations (updated_at);
CREATE INDEX ix_idempotency_created ON idempotency (created_at);
CREATE INDEX ix_audit_tenant_at ON audit (tenant_id, at);
CREATE INDEX ix_audit_contents_session ON audit_contents (tenant_id, session_id);
CREATE INDEX ix_audit_contents_person ON audit_contents (tenant_id, person);
CREATE INDEX ix_audit_documents_sequence ON audit_documents (tenant_id, sequence);
CREATE INDEX ix_feedback_tenant_at ON feedback (tenant_id, at);
CREATE INDEX ix_feedback_person ON feedback (tenant_id, person);
CREATE INDEX ix_gaps_tenant_status ON gaps (tenant_id, status);
CREATE INDEX ix_gap_askings_sequence ON gap_askings (tenant_id, sequence);
CREATE INDEX ix_jobs_state ON jobs (state, tenant_id);
CREATE INDEX ix_tickets_tenant_created ON tickets (tenant_id, created_at);
CREATE INDEX ix_tickets_tenant_chat ON tickets (tenant_id, chat_id);
CREATE INDEX ix_sites_tenant ON sites (tenant_id);
CREATE INDEX ix_chats_updated ON chats (tenant_id, updated_at);
CREATE INDEX ix_chats_state ON chats (tenant_id, state, waiting_since);
CREATE INDEX ix_chats_subject ON chats (tenant_id, subject, updated_at);
CREATE INDEX ix_consents_subject ON consents (tenant_id, subject);
CREATE INDEX ix_outbox_chat ON outbox (tenant_id, chat_id);
CREATE INDEX ix_outbox_due ON outbox (state, next_at);
CREATE INDEX ix_chat_files_chat ON chat_files (tenant_id, chat_id);
CREATE INDEX ix_chat_files_created ON chat_files (tenant_id, created_at);
COMMIT;
