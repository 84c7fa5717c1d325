BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'state','m001_teams_buckets_sources','2026-11-23 12:01:31');
INSERT INTO "_sqlite_migrations" VALUES(2,'state','m002_uploads_batches','2026-11-23 12:01:31');
INSERT INTO "_sqlite_migrations" VALUES(3,'state','m003_urls_webhooks','2026-11-23 12:01:31');
INSERT INTO "_sqlite_migrations" VALUES(4,'state','m004_cascades','2026-11-23 12:01:31');
INSERT INTO "_sqlite_migrations" VALUES(5,'state','m005_rebuilds','2026-11-23 12:01:31');
INSERT INTO "_sqlite_migrations" VALUES(6,'state','m006_agents','2026-11-23 12:01:31');
INSERT INTO "_sqlite_migrations" VALUES(7,'state','m007_rechunking','2026-11-23 12:01:31');
INSERT INTO "_sqlite_migrations" VALUES(8,'state','m008_lanes','2026-11-23 12:01:31');
INSERT INTO "_sqlite_migrations" VALUES(9,'state','m009_retitles','2026-11-23 12:01:31');
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
INSERT INTO "agents" VALUES('team_01m844grx5g0nrpnva4a7y2n8e','agt_01m844gsts6kt9jwxjcq6eeskc','Helper','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-23T12:01:32.505Z','2026-11-23T12:01:32.505Z');
INSERT INTO "agents" VALUES('team_01m844grx5g0nrpnva4a7y2n8e','default','Default agent','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-23T12:01:31.567Z','2026-11-23T12:01:31.567Z');
CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  bucket_ids TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "batches" VALUES('bat_01m844gsjp8hwbnm5tsk1hfsav','team_01m844grx5g0nrpnva4a7y2n8e','["bkt_01m844gsa2w1j0r13980y1w07p"]','2026-11-24T12:01:32.246Z','2026-11-23T12:01:32.246Z');
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
INSERT INTO "buckets" VALUES('bkt_01m844gs8fzjn72bqw5en7m30y','team_01m844grx5g0nrpnva4a7y2n8e','handbook','Handbook','','active','{}',NULL,17,NULL,'2026-11-23T12:01:31.919Z','2026-11-23T12:01:31.919Z');
INSERT INTO "buckets" VALUES('bkt_01m844gsa2w1j0r13980y1w07p','team_01m844grx5g0nrpnva4a7y2n8e','archive','Archive','','active','{}',NULL,1,NULL,'2026-11-23T12:01:31.970Z','2026-11-23T12:01:31.970Z');
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
, retitles BIGINT NOT NULL DEFAULT 0, lease_until_s DOUBLE PRECISION) WITHOUT ROWID;
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "facts" VALUES('installation_id','ins_01m844grx55tpmtm186cb88gqt');
CREATE TABLE idempotency (
  key_id TEXT NOT NULL REFERENCES keys (id),
  key TEXT NOT NULL,
  route TEXT NOT NULL,
  fingerprint TEXT,
  answer TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (key_id, key)
) WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('key_01m844grx5y5mt259xybkf7eec','b','POST /v1/buckets/{bucket}/batches','9a76070c32d6ce1e87d4b38e3b095ff7e7e323d0d64f4578452a1ed9f3305103','{"batch_id": "bat_01m844gsjp8hwbnm5tsk1hfsav", "bucket_ids": ["bkt_01m844gsa2w1j0r13980y1w07p"], "rejected": []}','2026-11-23T12:01:32.259Z');
INSERT INTO "idempotency" VALUES('key_01m844grx5y5mt259xybkf7eec','key-0','POST /v1/buckets/{bucket}/files','a92663c0a24c8a7694b58a71f4b803c737fce94944d3c429bfc7a7e271548cb7','{"id": "src_01m844gsapekr49fpmfzmt4qz9", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "0.md", "filename": "0.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "09ec35411fa00c614e888508bce1cb6ad0f022dc7f1e787a92390e377a8161a1", "task": {"id": "task_01m844gsapv1r9w2b5va8v3e85", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 0}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m844gs8fzjn72bqw5en7m30y"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T12:01:31.990Z", "updated_at": "2026-11-23T12:01:31.990Z"}','2026-11-23T12:01:31.994Z');
INSERT INTO "idempotency" VALUES('key_01m844grx5y5mt259xybkf7eec','key-1','POST /v1/buckets/{bucket}/files','d5097115a4346cfac5b3fae995b9630431616c756f437fc305694243e78b302c','{"id": "src_01m844gsbnzvw0z0wv2jvkcrxc", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "1.md", "filename": "1.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "e10c7bd68fd67d99cee4e0ddff166ed763a89492f641c75c7121bb2fc82d19af", "task": {"id": "task_01m844gsbnm1a2n3ceb3h9fk8m", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 1}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m844gs8fzjn72bqw5en7m30y"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T12:01:32.021Z", "updated_at": "2026-11-23T12:01:32.021Z"}','2026-11-23T12:01:32.048Z');
INSERT INTO "idempotency" VALUES('key_01m844grx5y5mt259xybkf7eec','key-2','POST /v1/buckets/{bucket}/files','eff7d4a45df0b5919482fb548a2ff5b130dd557d30e1bc33f218782ded5c16a3','{"id": "src_01m844gsfg4054ndf5jsy20t4p", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "2.md", "filename": "2.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "799fe3ccba25929cc48931c820decf5bc0cf59a1ae491f1e3fa4d29d3c24431e", "task": {"id": "task_01m844gsfgx0j4g2fyqm68hx09", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 2}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m844gs8fzjn72bqw5en7m30y"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T12:01:32.144Z", "updated_at": "2026-11-23T12:01:32.144Z"}','2026-11-23T12:01:32.149Z');
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
INSERT INTO "keys" VALUES('key_01m844grx5y5mt259xybkf7eec','team_01m844grx5g0nrpnva4a7y2n8e','admin','df5b2e250c8c442f8c019994596f2d25a3586a549257beaecfca6859bb3ccace','["knowledge:file:create", "knowledge:bucket:create", "knowledge:read", "knowledge:bucket:update", "knowledge:bucket:delete", "knowledge:source:delete", "knowledge:search", "agent:read", "agent:manage", "answer:create", "webhook:manage", "key:manage"]',NULL,NULL,NULL,NULL,'2026-11-23T12:01:31.557Z');
INSERT INTO "keys" VALUES('key_01m844gst9bjnmhvy816dgp6a6','team_01m844grx5g0nrpnva4a7y2n8e','reader','65f43edda303f89d53768a99cd23eab91ec5b42e97f35e22863f9e4e19088295','["knowledge:read", "knowledge:search", "agent:read", "answer:create"]',NULL,NULL,NULL,NULL,'2026-11-23T12:01:32.489Z');
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
INSERT INTO "memberships" VALUES('src_01m844gsbnzvw0z0wv2jvkcrxc','bkt_01m844gs8fzjn72bqw5en7m30y','team_01m844grx5g0nrpnva4a7y2n8e','active',0,NULL,NULL,'2026-11-23T12:01:32.021Z');
INSERT INTO "memberships" VALUES('src_01m844gsfg4054ndf5jsy20t4p','bkt_01m844gs8fzjn72bqw5en7m30y','team_01m844grx5g0nrpnva4a7y2n8e','active',0,NULL,NULL,'2026-11-23T12:01:32.144Z');
INSERT INTO "memberships" VALUES('src_01m844gsgb507e4nca5c004rha','bkt_01m844gs8fzjn72bqw5en7m30y','team_01m844grx5g0nrpnva4a7y2n8e','active',0,NULL,NULL,'2026-11-23T12:01:32.171Z');
INSERT INTO "memberships" VALUES('src_01m844gsj7tw20nvh3g9e5cxdz','bkt_01m844gs8fzjn72bqw5en7m30y','team_01m844grx5g0nrpnva4a7y2n8e','queued',0,NULL,NULL,'2026-11-23T12:01:32.231Z');
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
INSERT INTO "sources" VALUES('src_01m844gsbnzvw0z0wv2jvkcrxc','team_01m844grx5g0nrpnva4a7y2n8e','file','active',1,'1.md','1.md','text/markdown',58,'e10c7bd68fd67d99cee4e0ddff166ed763a89492f641c75c7121bb2fc82d19af','["quay"]','{"note": 1}',NULL,NULL,NULL,'task_01m844gsbnm1a2n3ceb3h9fk8m',NULL,'[]','{"characters": 58, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T12:01:32.021Z','2026-11-23T12:01:32.146Z',NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "sources" VALUES('src_01m844gsfg4054ndf5jsy20t4p','team_01m844grx5g0nrpnva4a7y2n8e','file','active',1,'2.md','2.md','text/markdown',58,'799fe3ccba25929cc48931c820decf5bc0cf59a1ae491f1e3fa4d29d3c24431e','["quay"]','{"note": 2}',NULL,NULL,NULL,'task_01m844gsfgx0j4g2fyqm68hx09',NULL,'[]','{"characters": 58, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T12:01:32.144Z','2026-11-23T12:01:32.233Z',NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "sources" VALUES('src_01m844gsgb507e4nca5c004rha','team_01m844grx5g0nrpnva4a7y2n8e','qa','active',1,'Where is the key?','question.md','text/markdown',37,'89be5e0c69ed990db7a385c34eff6a2c36ee90cb50e62167f6fa3945f806a3ba','[]','{}',NULL,NULL,NULL,'task_01m844gsgbadetaq1hpxdsh24y',NULL,'[]','{"characters": 37, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T12:01:32.171Z','2026-11-23T12:01:32.286Z',NULL,NULL,NULL,'{"question": "Where is the key?", "answer": "In the drawer.", "alternate_questions": []}',NULL,NULL,0);
INSERT INTO "sources" VALUES('src_01m844gsj7tw20nvh3g9e5cxdz','team_01m844grx5g0nrpnva4a7y2n8e','file','failed',1,'empty.pdf','empty.pdf','application/pdf',17,'abd6e5c67ffd4a2a3814cd49406f263d0fb03c401dab7af2e4db7d7900ab0572','[]','{}',NULL,NULL,NULL,'task_01m844gsj7pxn37q5af3qj18kf','{"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}','[]',NULL,'2026-11-23T12:01:32.231Z','2026-11-23T12:01:32.435Z',NULL,NULL,NULL,NULL,NULL,NULL,0);
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
, lane TEXT NOT NULL DEFAULT 'single' CHECK (lane IN ('prompt', 'wave', 'single', 'suspect'))) WITHOUT ROWID;
INSERT INTO "tasks" VALUES('task_01m844gsapv1r9w2b5va8v3e85','team_01m844grx5g0nrpnva4a7y2n8e','provider_file_search_indexing','succeeded','src_01m844gsapekr49fpmfzmt4qz9',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:01:31.990Z','2026-11-23T12:01:32.016Z','2026-11-23T12:01:32.145Z','prompt');
INSERT INTO "tasks" VALUES('task_01m844gsbnm1a2n3ceb3h9fk8m','team_01m844grx5g0nrpnva4a7y2n8e','provider_file_search_indexing','succeeded','src_01m844gsbnzvw0z0wv2jvkcrxc',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:01:32.021Z','2026-11-23T12:01:32.055Z','2026-11-23T12:01:32.146Z','prompt');
INSERT INTO "tasks" VALUES('task_01m844gsfgx0j4g2fyqm68hx09','team_01m844grx5g0nrpnva4a7y2n8e','provider_file_search_indexing','succeeded','src_01m844gsfg4054ndf5jsy20t4p',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:01:32.144Z','2026-11-23T12:01:32.154Z','2026-11-23T12:01:32.233Z','prompt');
INSERT INTO "tasks" VALUES('task_01m844gsgbadetaq1hpxdsh24y','team_01m844grx5g0nrpnva4a7y2n8e','provider_file_search_indexing','succeeded','src_01m844gsgb507e4nca5c004rha',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:01:32.171Z','2026-11-23T12:01:32.202Z','2026-11-23T12:01:32.286Z','prompt');
INSERT INTO "tasks" VALUES('task_01m844gsj7pxn37q5af3qj18kf','team_01m844grx5g0nrpnva4a7y2n8e','provider_file_search_indexing','failed','src_01m844gsj7tw20nvh3g9e5cxdz',1,1,3,NULL,'extract',0,NULL,'{"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}',NULL,'2026-11-23T12:01:32.231Z','2026-11-23T12:01:32.240Z','2026-11-23T12:01:32.435Z','single');
CREATE TABLE teams (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "teams" VALUES('team_01m844grx5g0nrpnva4a7y2n8e','default','2026-11-23T12:01:31.567Z');
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
INSERT INTO "uploads" VALUES('upl_01m844gsjq5mqh208s6c2z4twz','team_01m844grx5g0nrpnva4a7y2n8e','["bkt_01m844gsa2w1j0r13980y1w07p"]','open',1,'b.md','text/markdown',20,'B','[]','{}',NULL,NULL,NULL,NULL,NULL,'bat_01m844gsjp8hwbnm5tsk1hfsav','b',1,'2026-11-24T12:01:32.246Z','2026-11-24T12:01:32.247Z','2026-11-23T12:01:32.247Z');
INSERT INTO "uploads" VALUES('upl_01m844gsjq7g4kv0axt2n71vk2','team_01m844grx5g0nrpnva4a7y2n8e','["bkt_01m844gsa2w1j0r13980y1w07p"]','open',1,'a.md','text/markdown',20,'A','[]','{}',NULL,NULL,NULL,NULL,NULL,'bat_01m844gsjp8hwbnm5tsk1hfsav','a',0,'2026-11-24T12:01:32.246Z','2026-11-24T12:01:32.247Z','2026-11-23T12:01:32.247Z');
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
CREATE INDEX tasks_open ON tasks (type, status, lane, team_id, id) WHERE finished_at IS NULL;
CREATE INDEX tasks_delayed ON tasks (type, next_attempt_at) WHERE finished_at IS NULL AND next_attempt_at IS NOT NULL;
CREATE INDEX detachments_leased ON detachments (lease_until_s) WHERE lease_until_s IS NOT NULL;
COMMIT;
