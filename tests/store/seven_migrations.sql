BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'state','m001_teams_buckets_sources','2026-11-22 20:38:35.289769+00:00');
INSERT INTO "_sqlite_migrations" VALUES(2,'state','m002_uploads_batches','2026-11-22 20:38:35.293697+00:00');
INSERT INTO "_sqlite_migrations" VALUES(3,'state','m003_urls_webhooks','2026-11-22 20:38:35.299947+00:00');
INSERT INTO "_sqlite_migrations" VALUES(4,'state','m004_cascades','2026-11-22 20:38:35.308829+00:00');
INSERT INTO "_sqlite_migrations" VALUES(5,'state','m005_rebuilds','2026-11-22 20:38:35.312838+00:00');
INSERT INTO "_sqlite_migrations" VALUES(6,'state','m006_agents','2026-11-22 20:38:35.316774+00:00');
INSERT INTO "_sqlite_migrations" VALUES(7,'state','m007_rechunking','2026-11-22 20:38:35.321311+00:00');
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
INSERT INTO "agents" VALUES('team_01m82fpthxymx2zazxje1zq98z','default','Default agent','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-22T20:38:35.332Z','2026-11-22T20:38:35.332Z');
INSERT INTO "agents" VALUES('team_01m82fptjdxwj2ryxa7ggrnkfb','agt_01m82fqew510xsmmqwhhh86ykt','Helper','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-22T20:38:56.133Z','2026-11-22T20:38:56.133Z');
INSERT INTO "agents" VALUES('team_01m82fptjdxwj2ryxa7ggrnkfb','default','Default agent','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-22T20:38:35.341Z','2026-11-22T20:38:35.341Z');
CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  bucket_ids TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
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
INSERT INTO "buckets" VALUES('bkt_01m82fqemat74etvpvnf6xktc2','team_01m82fptjdxwj2ryxa7ggrnkfb','handbook','Hand Book','','active','{}',NULL,16,NULL,'2026-11-22T20:38:55.882Z','2026-11-22T20:38:55.882Z');
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
INSERT INTO "facts" VALUES('installation_id','ins_01m82fpthx62f5ghwvgsjnsp9x');
CREATE TABLE idempotency (
  key_id TEXT NOT NULL REFERENCES keys (id),
  key TEXT NOT NULL,
  route TEXT NOT NULL,
  fingerprint TEXT,
  answer TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (key_id, key)
) WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('key_01m82fptjdkkpvszc25vxpnr8j','k1','POST /v1/buckets/{bucket}/files','10d134fa311e481cceaf0490142d2d781b63a2e311e3ac6418379ae11b3f32a8','{"id": "src_01m82fqep3epmmm0dymvh1pymd", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "Leave", "filename": "leave.md", "content_type": "text/markdown", "size_bytes": 53, "sha256": "c73208af18fbabc67462ff6fc1a747e70e68f285343a0e116685fd3ecd59efa2", "task": {"id": "task_01m82fqep3rwez1gwe69skg53s", "type": "provider_file_search_indexing", "status": "queued"}, "tags": [], "metadata": {}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m82fqemat74etvpvnf6xktc2"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-22T20:38:55.939Z", "updated_at": "2026-11-22T20:38:55.939Z"}','2026-11-22T20:38:55.961Z');
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
INSERT INTO "keys" VALUES('key_01m82fpthxhf3stawpfxkqapva','team_01m82fpthxymx2zazxje1zq98z','admin','6d13a9c50b149dcaa98917ebe304d82112a96c789dce601b306ebc49c5ac5432','["knowledge:file:create", "knowledge:bucket:create", "knowledge:read", "knowledge:bucket:update", "knowledge:bucket:delete", "knowledge:source:delete", "knowledge:search", "agent:read", "agent:manage", "answer:create", "webhook:manage", "key:manage"]',NULL,NULL,NULL,NULL,'2026-11-22T20:38:35.326Z');
INSERT INTO "keys" VALUES('key_01m82fptjdkkpvszc25vxpnr8j','team_01m82fptjdxwj2ryxa7ggrnkfb','admin','4d62c89bac7390e6f93dd3fb367c6d58e6b53472bf685760defe2301c91f4aea','["knowledge:file:create", "knowledge:bucket:create", "knowledge:read", "knowledge:bucket:update", "knowledge:bucket:delete", "knowledge:source:delete", "knowledge:search", "agent:read", "agent:manage", "answer:create", "webhook:manage", "key:manage"]',NULL,NULL,NULL,NULL,'2026-11-22T20:38:35.341Z');
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
INSERT INTO "memberships" VALUES('src_01m82fqep3epmmm0dymvh1pymd','bkt_01m82fqemat74etvpvnf6xktc2','team_01m82fptjdxwj2ryxa7ggrnkfb','active',1,NULL,NULL,'2026-11-22T20:38:55.939Z');
INSERT INTO "memberships" VALUES('src_01m82fqerg24c84gy6d4q4xe5r','bkt_01m82fqemat74etvpvnf6xktc2','team_01m82fptjdxwj2ryxa7ggrnkfb','active',1,NULL,NULL,'2026-11-22T20:38:56.016Z');
INSERT INTO "memberships" VALUES('src_01m82fqeskgndfqy18df5j9yc0','bkt_01m82fqemat74etvpvnf6xktc2','team_01m82fptjdxwj2ryxa7ggrnkfb','active',1,NULL,NULL,'2026-11-22T20:38:56.051Z');
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
  updated_at TEXT NOT NULL
, blob TEXT, url_key TEXT, fetched TEXT, qa TEXT, webhook TEXT, valid_from BIGINT, rechunk BIGINT NOT NULL DEFAULT 0) WITHOUT ROWID;
INSERT INTO "sources" VALUES('src_01m82fqep3epmmm0dymvh1pymd','team_01m82fptjdxwj2ryxa7ggrnkfb','file','active',1,'Leave','leave.md','text/markdown',53,'c73208af18fbabc67462ff6fc1a747e70e68f285343a0e116685fd3ecd59efa2','[]','{}',NULL,NULL,NULL,'task_01m82fqep3rwez1gwe69skg53s',NULL,'[]','{"characters": 53, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-22T20:38:55.939Z','2026-11-22T20:38:56.027Z',NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "sources" VALUES('src_01m82fqerg24c84gy6d4q4xe5r','team_01m82fptjdxwj2ryxa7ggrnkfb','file','active',1,'two.txt','two.txt','text/plain',29,'86c1d4c7b227a788248334184eee13f6da8546442362b17514957c04034b6476','[]','{}',NULL,NULL,NULL,'task_01m82fqergaypxczxtbnb9580a',NULL,'[]','{"characters": 29, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-22T20:38:56.016Z','2026-11-22T20:38:56.094Z',NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "sources" VALUES('src_01m82fqeskgndfqy18df5j9yc0','team_01m82fptjdxwj2ryxa7ggrnkfb','qa','active',1,'What?','question.md','text/markdown',16,'8b8b7c2bea709c5494dee6eca42342e14c173d134b18a1fdd9a9d76e0b98098e','[]','{}',NULL,NULL,NULL,'task_01m82fqesk369q6ae2n7tdvme5',NULL,'[]','{"characters": 16, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-22T20:38:56.051Z','2026-11-22T20:38:56.142Z',NULL,NULL,NULL,'{"question": "What?", "answer": "That.", "alternate_questions": []}',NULL,NULL,0);
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
INSERT INTO "tasks" VALUES('task_01m82fqep3rwez1gwe69skg53s','team_01m82fptjdxwj2ryxa7ggrnkfb','provider_file_search_indexing','succeeded','src_01m82fqep3epmmm0dymvh1pymd',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-22T20:38:55.939Z','2026-11-22T20:38:55.965Z','2026-11-22T20:38:56.027Z');
INSERT INTO "tasks" VALUES('task_01m82fqergaypxczxtbnb9580a','team_01m82fptjdxwj2ryxa7ggrnkfb','provider_file_search_indexing','succeeded','src_01m82fqerg24c84gy6d4q4xe5r',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-22T20:38:56.016Z','2026-11-22T20:38:56.032Z','2026-11-22T20:38:56.094Z');
INSERT INTO "tasks" VALUES('task_01m82fqesk369q6ae2n7tdvme5','team_01m82fptjdxwj2ryxa7ggrnkfb','provider_file_search_indexing','succeeded','src_01m82fqeskgndfqy18df5j9yc0',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-22T20:38:56.051Z','2026-11-22T20:38:56.077Z','2026-11-22T20:38:56.142Z');
CREATE TABLE teams (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "teams" VALUES('team_01m82fpthxymx2zazxje1zq98z','default','2026-11-22T20:38:35.332Z');
INSERT INTO "teams" VALUES('team_01m82fptjdxwj2ryxa7ggrnkfb','acme','2026-11-22T20:38:35.341Z');
CREATE TABLE tombstones (
  source_id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL,
  replaced_by TEXT,
  cleaned_at TEXT,
  created_at TEXT NOT NULL
, blob TEXT) WITHOUT ROWID;
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
CREATE INDEX memberships_of_bucket ON memberships (bucket_id, source_id, sync_status);
CREATE INDEX memberships_due ON memberships (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX memberships_leased ON memberships (lease_until_s) WHERE lease_until_s IS NOT NULL;
CREATE INDEX tasks_open ON tasks (team_id, status, id) WHERE finished_at IS NULL;
CREATE INDEX tasks_of_source ON tasks (source_id, id);
CREATE INDEX idempotency_by_age ON idempotency (created_at);
CREATE INDEX tombstones_to_clean ON tombstones (source_id) WHERE cleaned_at IS NULL;
CREATE INDEX uploads_of_batch ON uploads (batch_id, position) WHERE batch_id IS NOT NULL;
CREATE INDEX uploads_open ON uploads (expires_at) WHERE status = 'open';
CREATE UNIQUE INDEX sources_of_url ON sources (team_id, url_key) WHERE url_key IS NOT NULL;
CREATE INDEX deliveries_of_team ON deliveries (team_id, id);
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX cascades_of_bucket ON cascades (bucket_id);
CREATE UNIQUE INDEX tasks_rebuilding ON tasks (team_id) WHERE type = 'store_rebuild' AND finished_at IS NULL;
CREATE INDEX tasks_rebuilds ON tasks (team_id, id) WHERE type = 'store_rebuild';
CREATE VIEW teams_in_maintenance AS
SELECT team_id FROM tasks WHERE type = 'store_rebuild' AND finished_at IS NULL;
CREATE VIEW source_views AS
SELECT s.*, t.type AS task_type, t.status AS task_status,
  (SELECT group_concat(m.bucket_id || ' ' || m.sync_status) FROM memberships m
    JOIN buckets b ON b.id = m.bucket_id AND b.status <> 'deleting' WHERE m.source_id = s.id) AS places,
  EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = s.team_id) AS in_maintenance
FROM sources s LEFT JOIN tasks t ON t.id = s.task_id;
CREATE INDEX sources_to_rechunk ON sources (id) WHERE rechunk = 1;
COMMIT;
