BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'state','m001_teams_buckets_sources','2026-11-23 12:01:54');
INSERT INTO "_sqlite_migrations" VALUES(2,'state','m002_uploads_batches','2026-11-23 12:01:54');
INSERT INTO "_sqlite_migrations" VALUES(3,'state','m003_urls_webhooks','2026-11-23 12:01:54');
INSERT INTO "_sqlite_migrations" VALUES(4,'state','m004_cascades','2026-11-23 12:01:54');
INSERT INTO "_sqlite_migrations" VALUES(5,'state','m005_rebuilds','2026-11-23 12:01:54');
INSERT INTO "_sqlite_migrations" VALUES(6,'state','m006_agents','2026-11-23 12:01:54');
INSERT INTO "_sqlite_migrations" VALUES(7,'state','m007_rechunking','2026-11-23 12:01:54');
CREATE TABLE agents (
  team_id TEXT NOT NULL REFERENCES teams (id),
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  instructions TEXT NOT NULL,
  policy TEXT NOT NULL,
  bound_surface TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (team_id, id)
) WITHOUT ROWID;
INSERT INTO "agents" VALUES('team_01m844hf5jhb892s2dp20y2zh8','agt_01m844hjedh1srw7rxny6jc4xn','Helper','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-23T12:01:57.709Z','2026-11-23T12:01:57.709Z');
INSERT INTO "agents" VALUES('team_01m844hf5jhb892s2dp20y2zh8','default','Default agent','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-23T12:01:54.360Z','2026-11-23T12:01:54.360Z');
CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  bucket_ids TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "batches" VALUES('bat_01m844hj9rqk73djst243jt4fc','team_01m844hf5jhb892s2dp20y2zh8','["bkt_01m844hfmz938914tskp9pbdr7"]','2026-11-24T12:01:57.560Z','2026-11-23T12:01:57.560Z');
CREATE TABLE buckets (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  slug TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'archived', 'deleting')),
  metadata TEXT NOT NULL,
  chunking TEXT,
  revision BIGINT NOT NULL,
  last_delete_error TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  UNIQUE (team_id, slug)
) WITHOUT ROWID;
INSERT INTO "buckets" VALUES('bkt_01m844hfjn7z9pqcwwe7qsv2jz','team_01m844hf5jhb892s2dp20y2zh8','handbook','Handbook','','active','{}',NULL,17,NULL,'2026-11-23T12:01:54.773Z','2026-11-23T12:01:54.773Z');
INSERT INTO "buckets" VALUES('bkt_01m844hfmz938914tskp9pbdr7','team_01m844hf5jhb892s2dp20y2zh8','archive','Archive','','active','{}',NULL,1,NULL,'2026-11-23T12:01:54.847Z','2026-11-23T12:01:54.847Z');
CREATE TABLE cascades (
  task_id TEXT PRIMARY KEY REFERENCES tasks (id),
  team_id TEXT NOT NULL REFERENCES teams (id),
  bucket_id TEXT NOT NULL,
  after_id TEXT NOT NULL,
  total BIGINT NOT NULL,
  deleted BIGINT NOT NULL,
  detached BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  reason TEXT
) WITHOUT ROWID;
CREATE TABLE deliveries (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  source_id TEXT NOT NULL,
  event TEXT NOT NULL,
  url TEXT NOT NULL,
  body TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
  tries_left BIGINT NOT NULL,
  due_at TEXT,
  created_at TEXT NOT NULL,
  UNIQUE (source_id, event)
) WITHOUT ROWID;
CREATE TABLE delivery_attempts (
  delivery_id TEXT NOT NULL REFERENCES deliveries (id),
  attempt BIGINT NOT NULL,
  started_at TEXT NOT NULL,
  duration_ms BIGINT NOT NULL,
  http_status BIGINT,
  error TEXT,
  PRIMARY KEY (delivery_id, attempt)
) WITHOUT ROWID;
CREATE TABLE detachments (
  source_id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "facts" VALUES('installation_id','ins_01m844hf5jpkdg9kfn3p0d0krg');
CREATE TABLE idempotency (
  key_id TEXT NOT NULL REFERENCES keys (id),
  key TEXT NOT NULL,
  route TEXT NOT NULL,
  fingerprint TEXT,
  answer TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (key_id, key)
) WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('key_01m844hf5k5q2tkrm6mf6ygywc','b','POST /v1/buckets/{bucket}/batches','5b1756e4a6ad13c244ea3b7f5bc7b2ea3ebb65e0ca92bd34746628e594088223','{"batch_id": "bat_01m844hj9rqk73djst243jt4fc", "bucket_ids": ["bkt_01m844hfmz938914tskp9pbdr7"], "rejected": []}','2026-11-23T12:01:57.563Z');
INSERT INTO "idempotency" VALUES('key_01m844hf5k5q2tkrm6mf6ygywc','key-0','POST /v1/buckets/{bucket}/files','d06119c918c6650b43bcb9066086b56d6da44a73694056d624606ef05fafb29e','{"id": "src_01m844hfnq2f6cdd8pvt3dbea0", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "0.md", "filename": "0.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "09ec35411fa00c614e888508bce1cb6ad0f022dc7f1e787a92390e377a8161a1", "task": {"id": "task_01m844hfnq8jy26c5rz3m5kfkx", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 0}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m844hfjn7z9pqcwwe7qsv2jz"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T12:01:54.871Z", "updated_at": "2026-11-23T12:01:54.871Z"}','2026-11-23T12:01:54.922Z');
INSERT INTO "idempotency" VALUES('key_01m844hf5k5q2tkrm6mf6ygywc','key-1','POST /v1/buckets/{bucket}/files','4166940c27bc1b7caa6c70839938c48829d151756ac44c1719b224a2ab294dd6','{"id": "src_01m844hfs2j7wxg2g585zhv6hw", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "1.md", "filename": "1.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "e10c7bd68fd67d99cee4e0ddff166ed763a89492f641c75c7121bb2fc82d19af", "task": {"id": "task_01m844hfs27grn5qh4nm23jzqr", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 1}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m844hfjn7z9pqcwwe7qsv2jz"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T12:01:54.978Z", "updated_at": "2026-11-23T12:01:54.978Z"}','2026-11-23T12:01:55.009Z');
INSERT INTO "idempotency" VALUES('key_01m844hf5k5q2tkrm6mf6ygywc','key-2','POST /v1/buckets/{bucket}/files','5c9daf015e75a308eaf4688a6ee9d204e7f19543bd1aa75d926fd931ef9de9ef','{"id": "src_01m844hfv6qh82v62def4nwfts", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "2.md", "filename": "2.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "799fe3ccba25929cc48931c820decf5bc0cf59a1ae491f1e3fa4d29d3c24431e", "task": {"id": "task_01m844hfv6sv1tn311z1rfpg7x", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 2}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m844hfjn7z9pqcwwe7qsv2jz"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T12:01:55.046Z", "updated_at": "2026-11-23T12:01:55.046Z"}','2026-11-23T12:01:55.072Z');
CREATE TABLE keys (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  capabilities TEXT NOT NULL,
  models TEXT,
  buckets TEXT,
  expires_at TEXT,
  revoked_at TEXT,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "keys" VALUES('key_01m844hf5k5q2tkrm6mf6ygywc','team_01m844hf5jhb892s2dp20y2zh8','admin','970df61a5f0beda50a5fa3b07870a6411c7ccdeb0e3a1108d6014ea454d1767a','["knowledge:file:create", "knowledge:bucket:create", "knowledge:read", "knowledge:bucket:update", "knowledge:bucket:delete", "knowledge:source:delete", "knowledge:search", "agent:read", "agent:manage", "answer:create", "webhook:manage", "key:manage"]',NULL,NULL,NULL,NULL,'2026-11-23T12:01:54.355Z');
INSERT INTO "keys" VALUES('key_01m844hjdtb1jhd8qmwp7zw5c4','team_01m844hf5jhb892s2dp20y2zh8','reader','6d45f52ba67244a4af2474ea6a4f8e7f22c11e2008f46847593d789f486325c5','["knowledge:read", "knowledge:search", "agent:read", "answer:create"]',NULL,NULL,NULL,NULL,'2026-11-23T12:01:57.690Z');
CREATE TABLE memberships (
  source_id TEXT NOT NULL REFERENCES sources (id),
  bucket_id TEXT NOT NULL REFERENCES buckets (id),
  team_id TEXT NOT NULL,
  sync_status TEXT NOT NULL CHECK (sync_status IN ('queued', 'syncing', 'active', 'failed')),
  attempt BIGINT NOT NULL,
  lease_until_s DOUBLE PRECISION,
  due_at TEXT,
  created_at TEXT NOT NULL,
  PRIMARY KEY (source_id, bucket_id)
) WITHOUT ROWID;
INSERT INTO "memberships" VALUES('src_01m844hfs2j7wxg2g585zhv6hw','bkt_01m844hfjn7z9pqcwwe7qsv2jz','team_01m844hf5jhb892s2dp20y2zh8','active',0,NULL,NULL,'2026-11-23T12:01:54.978Z');
INSERT INTO "memberships" VALUES('src_01m844hfv6qh82v62def4nwfts','bkt_01m844hfjn7z9pqcwwe7qsv2jz','team_01m844hf5jhb892s2dp20y2zh8','active',0,NULL,NULL,'2026-11-23T12:01:55.046Z');
INSERT INTO "memberships" VALUES('src_01m844hfw61ab6zq43aep5bf54','bkt_01m844hfjn7z9pqcwwe7qsv2jz','team_01m844hf5jhb892s2dp20y2zh8','active',0,NULL,NULL,'2026-11-23T12:01:55.078Z');
INSERT INTO "memberships" VALUES('src_01m844hh36czwc1tc860z8rdjq','bkt_01m844hfjn7z9pqcwwe7qsv2jz','team_01m844hf5jhb892s2dp20y2zh8','queued',0,NULL,NULL,'2026-11-23T12:01:56.326Z');
CREATE TABLE sources (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  type TEXT NOT NULL CHECK (type IN ('file', 'page', 'qa')),
  status TEXT NOT NULL CHECK (status IN ('queued', 'indexing', 'active', 'failed')),
  generation BIGINT NOT NULL,
  title TEXT NOT NULL,
  filename TEXT NOT NULL,
  content_type TEXT NOT NULL,
  size_bytes BIGINT NOT NULL,
  sha256 TEXT NOT NULL,
  tags TEXT NOT NULL,
  metadata TEXT NOT NULL,
  mapping TEXT,
  source_url TEXT,
  replaces TEXT,
  task_id TEXT,
  error TEXT,
  warnings TEXT NOT NULL,
  extraction TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  blob TEXT,
  url_key TEXT,
  fetched TEXT,
  qa TEXT,
  webhook TEXT,
  valid_from BIGINT,
  rechunk BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO "sources" VALUES('src_01m844hfs2j7wxg2g585zhv6hw','team_01m844hf5jhb892s2dp20y2zh8','file','active',1,'1.md','1.md','text/markdown',58,'e10c7bd68fd67d99cee4e0ddff166ed763a89492f641c75c7121bb2fc82d19af','["quay"]','{"note": 1}',NULL,NULL,NULL,'task_01m844hfs27grn5qh4nm23jzqr',NULL,'[]','{"characters": 58, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T12:01:54.978Z','2026-11-23T12:01:55.164Z',NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "sources" VALUES('src_01m844hfv6qh82v62def4nwfts','team_01m844hf5jhb892s2dp20y2zh8','file','active',1,'2.md','2.md','text/markdown',58,'799fe3ccba25929cc48931c820decf5bc0cf59a1ae491f1e3fa4d29d3c24431e','["quay"]','{"note": 2}',NULL,NULL,NULL,'task_01m844hfv6sv1tn311z1rfpg7x',NULL,'[]','{"characters": 58, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T12:01:55.046Z','2026-11-23T12:01:55.200Z',NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "sources" VALUES('src_01m844hfw61ab6zq43aep5bf54','team_01m844hf5jhb892s2dp20y2zh8','qa','active',1,'Where is the key?','question.md','text/markdown',37,'89be5e0c69ed990db7a385c34eff6a2c36ee90cb50e62167f6fa3945f806a3ba','[]','{}',NULL,NULL,NULL,'task_01m844hfw6da2m9abvvn1b3des',NULL,'[]','{"characters": 37, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T12:01:55.078Z','2026-11-23T12:01:55.202Z',NULL,NULL,NULL,'{"question": "Where is the key?", "answer": "In the drawer.", "alternate_questions": []}',NULL,NULL,0);
INSERT INTO "sources" VALUES('src_01m844hh36czwc1tc860z8rdjq','team_01m844hf5jhb892s2dp20y2zh8','file','failed',1,'empty.pdf','empty.pdf','application/pdf',17,'abd6e5c67ffd4a2a3814cd49406f263d0fb03c401dab7af2e4db7d7900ab0572','[]','{}',NULL,NULL,NULL,'task_01m844hh36bhdaw14dstpm8gyt','{"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}','[]',NULL,'2026-11-23T12:01:56.326Z','2026-11-23T12:01:56.487Z',NULL,NULL,NULL,NULL,NULL,NULL,0);
CREATE TABLE tasks (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  type TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
  source_id TEXT,
  attempt BIGINT NOT NULL,
  token BIGINT NOT NULL,
  max_attempts BIGINT NOT NULL,
  lease_until_s DOUBLE PRECISION,
  stage TEXT,
  chunks_done BIGINT NOT NULL,
  chunks_total BIGINT,
  error TEXT,
  next_attempt_at TEXT,
  created_at TEXT NOT NULL,
  started_at TEXT,
  finished_at TEXT
) WITHOUT ROWID;
INSERT INTO "tasks" VALUES('task_01m844hfnq8jy26c5rz3m5kfkx','team_01m844hf5jhb892s2dp20y2zh8','provider_file_search_indexing','succeeded','src_01m844hfnq2f6cdd8pvt3dbea0',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:01:54.871Z','2026-11-23T12:01:54.956Z','2026-11-23T12:01:55.155Z');
INSERT INTO "tasks" VALUES('task_01m844hfs27grn5qh4nm23jzqr','team_01m844hf5jhb892s2dp20y2zh8','provider_file_search_indexing','succeeded','src_01m844hfs2j7wxg2g585zhv6hw',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:01:54.978Z','2026-11-23T12:01:55.015Z','2026-11-23T12:01:55.164Z');
INSERT INTO "tasks" VALUES('task_01m844hfv6sv1tn311z1rfpg7x','team_01m844hf5jhb892s2dp20y2zh8','provider_file_search_indexing','succeeded','src_01m844hfv6qh82v62def4nwfts',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:01:55.046Z','2026-11-23T12:01:55.164Z','2026-11-23T12:01:55.200Z');
INSERT INTO "tasks" VALUES('task_01m844hfw6da2m9abvvn1b3des','team_01m844hf5jhb892s2dp20y2zh8','provider_file_search_indexing','succeeded','src_01m844hfw61ab6zq43aep5bf54',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:01:55.078Z','2026-11-23T12:01:55.181Z','2026-11-23T12:01:55.202Z');
INSERT INTO "tasks" VALUES('task_01m844hh36bhdaw14dstpm8gyt','team_01m844hf5jhb892s2dp20y2zh8','provider_file_search_indexing','failed','src_01m844hh36czwc1tc860z8rdjq',1,1,3,NULL,'extract',0,NULL,'{"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}',NULL,'2026-11-23T12:01:56.326Z','2026-11-23T12:01:56.354Z','2026-11-23T12:01:56.487Z');
CREATE TABLE teams (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "teams" VALUES('team_01m844hf5jhb892s2dp20y2zh8','default','2026-11-23T12:01:54.360Z');
CREATE TABLE tombstones (
  source_id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL,
  replaced_by TEXT,
  cleaned_at TEXT,
  created_at TEXT NOT NULL,
  blob TEXT
) WITHOUT ROWID;
CREATE TABLE uploads (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  bucket_ids TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'finalized', 'canceled', 'expired', 'failed')),
  generation BIGINT NOT NULL,
  filename TEXT NOT NULL,
  content_type TEXT NOT NULL,
  size_bytes BIGINT NOT NULL,
  title TEXT NOT NULL,
  tags TEXT NOT NULL,
  metadata TEXT NOT NULL,
  mapping TEXT,
  replaces TEXT,
  sha256 TEXT,
  source_id TEXT,
  error TEXT,
  batch_id TEXT REFERENCES batches (id),
  client_file_id TEXT,
  position BIGINT NOT NULL,
  expires_at TEXT NOT NULL,
  ends_at TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "uploads" VALUES('upl_01m844hj9tnsgf2x0gepm8e6d5','team_01m844hf5jhb892s2dp20y2zh8','["bkt_01m844hfmz938914tskp9pbdr7"]','open',1,'b.md','text/markdown',20,'B','[]','{}',NULL,NULL,NULL,NULL,NULL,'bat_01m844hj9rqk73djst243jt4fc','b',1,'2026-11-24T12:01:57.560Z','2026-11-24T12:01:57.562Z','2026-11-23T12:01:57.562Z');
INSERT INTO "uploads" VALUES('upl_01m844hj9tqtjq3eck4etw7a14','team_01m844hf5jhb892s2dp20y2zh8','["bkt_01m844hfmz938914tskp9pbdr7"]','open',1,'a.md','text/markdown',20,'A','[]','{}',NULL,NULL,NULL,NULL,NULL,'bat_01m844hj9rqk73djst243jt4fc','a',0,'2026-11-24T12:01:57.560Z','2026-11-24T12:01:57.562Z','2026-11-23T12:01:57.562Z');
CREATE TABLE usage (
  team_id TEXT NOT NULL REFERENCES teams (id),
  month TEXT NOT NULL,
  answers BIGINT NOT NULL,
  PRIMARY KEY (team_id, month)
) WITHOUT ROWID;
CREATE TABLE webhook_secrets (
  team_id TEXT PRIMARY KEY REFERENCES teams (id),
  generation BIGINT NOT NULL,
  rotated_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE INDEX sources_of_team ON sources (team_id, id);
CREATE INDEX sources_replacing ON sources (replaces) WHERE replaces IS NOT NULL;
CREATE UNIQUE INDEX sources_of_url ON sources (team_id, url_key) WHERE url_key IS NOT NULL;
CREATE INDEX sources_to_rechunk ON sources (id) WHERE rechunk = 1;
CREATE INDEX memberships_of_bucket ON memberships (bucket_id, source_id, sync_status);
CREATE INDEX memberships_due ON memberships (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX memberships_leased ON memberships (lease_until_s) WHERE lease_until_s IS NOT NULL;
CREATE INDEX tasks_open ON tasks (team_id, status, id) WHERE finished_at IS NULL;
CREATE INDEX tasks_of_source ON tasks (source_id, id);
CREATE UNIQUE INDEX tasks_rebuilding ON tasks (team_id) WHERE type = 'store_rebuild' AND finished_at IS NULL;
CREATE INDEX tasks_rebuilds ON tasks (team_id, id) WHERE type = 'store_rebuild';
CREATE INDEX idempotency_by_age ON idempotency (created_at);
CREATE INDEX tombstones_to_clean ON tombstones (source_id) WHERE cleaned_at IS NULL;
CREATE INDEX uploads_of_batch ON uploads (batch_id, position) WHERE batch_id IS NOT NULL;
CREATE INDEX uploads_open ON uploads (expires_at) WHERE status = 'open';
CREATE INDEX deliveries_of_team ON deliveries (team_id, id);
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX cascades_of_bucket ON cascades (bucket_id);
CREATE VIEW teams_in_maintenance AS
SELECT team_id FROM tasks WHERE type = 'store_rebuild' AND finished_at IS NULL;
CREATE VIEW source_views AS
SELECT s.*, t.type AS task_type, t.status AS task_status,
  (SELECT group_concat(m.bucket_id || ' ' || m.sync_status) FROM memberships m
    JOIN buckets b ON b.id = m.bucket_id AND b.status <> 'deleting' WHERE m.source_id = s.id) AS places,
  EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = s.team_id) AS in_maintenance
FROM sources s LEFT JOIN tasks t ON t.id = s.task_id;
COMMIT;
