BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'state','m001_teams_buckets_sources','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(2,'state','m002_uploads_batches','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(3,'state','m003_urls_webhooks','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(4,'state','m004_cascades','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(5,'state','m005_rebuilds','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(6,'state','m006_agents','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(7,'state','m007_rechunking','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(8,'state','m008_lanes','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(9,'state','m009_retitles','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(10,'state','m010_changes','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(11,'state','m011_events','2026-11-23 15:06:03');
INSERT INTO "_sqlite_migrations" VALUES(12,'state','m012_traces','2026-11-23 15:06:03');
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
INSERT INTO "agents" VALUES('team_01m84f2mzs7sba4bt2q82k429v','agt_01m84f2nv673qsm1m9xf39e54m','Helper','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-23T15:06:04.006Z','2026-11-23T15:06:04.006Z');
INSERT INTO "agents" VALUES('team_01m84f2mzs7sba4bt2q82k429v','default','Default agent','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-23T15:06:03.164Z','2026-11-23T15:06:03.164Z');
CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  bucket_ids TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  created_at TEXT NOT NULL
, ended_at TEXT) WITHOUT ROWID;
INSERT INTO "batches" VALUES('bat_01m84f2nt2gc07cvnmb3dqnbvw','team_01m84f2mzs7sba4bt2q82k429v','["bkt_01m84f2n9r666qv7zttjbh8npm"]','2026-11-24T15:06:03.970Z','2026-11-23T15:06:03.970Z',NULL);
CREATE TABLE bucket_changes (bucket_id TEXT NOT NULL REFERENCES buckets (id), writer BIGINT NOT NULL, changes BIGINT NOT NULL, PRIMARY KEY (bucket_id, writer)) WITHOUT ROWID;
INSERT INTO "bucket_changes" VALUES('bkt_01m84f2n8ecm41xqg71ya9ayh8',0,14);
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
INSERT INTO "buckets" VALUES('bkt_01m84f2n8ecm41xqg71ya9ayh8','team_01m84f2mzs7sba4bt2q82k429v','handbook','Handbook','','active','{}',NULL,1,NULL,'2026-11-23T15:06:03.406Z','2026-11-23T15:06:03.406Z');
INSERT INTO "buckets" VALUES('bkt_01m84f2n9r666qv7zttjbh8npm','team_01m84f2mzs7sba4bt2q82k429v','archive','Archive','','active','{}',NULL,1,NULL,'2026-11-23T15:06:03.448Z','2026-11-23T15:06:03.448Z');
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
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  turn BIGINT NOT NULL,
  id TEXT NOT NULL,
  team_id TEXT NOT NULL,
  type TEXT NOT NULL,
  bucket_ids TEXT,
  source_id TEXT,
  batch_id TEXT,
  key_id TEXT,
  data TEXT NOT NULL,
  created_at TEXT NOT NULL
);
INSERT INTO "events" VALUES(1,4611686018427387904,'evt_01m84f2n8jxzaehgp1seqz0000','team_01m84f2mzs7sba4bt2q82k429v','bucket.created','bkt_01m84f2n8ecm41xqg71ya9ayh8',NULL,NULL,'key_01m84f2mzsngj885yx77x59eyx','{"slug": "handbook", "name": "Handbook", "status": "active"}','2026-11-23T15:06:03.410Z');
INSERT INTO "events" VALUES(2,4611686018427387904,'evt_01m84f2na0d50vg9z27rak0000','team_01m84f2mzs7sba4bt2q82k429v','bucket.created','bkt_01m84f2n9r666qv7zttjbh8npm',NULL,NULL,'key_01m84f2mzsngj885yx77x59eyx','{"slug": "archive", "name": "Archive", "status": "active"}','2026-11-23T15:06:03.456Z');
INSERT INTO "events" VALUES(3,4611686018427387904,'evt_01m84f2nb961w2aykvhe6m0000','team_01m84f2mzs7sba4bt2q82k429v','source.queued','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nb3yeatc3p1j73zh4k3',NULL,'key_01m84f2mzsngj885yx77x59eyx','{"title": "0.md", "status": "queued", "ready": false}','2026-11-23T15:06:03.497Z');
INSERT INTO "events" VALUES(4,4611686018427387904,'evt_01m84f2nbyh8vyjap5z1ce0000','team_01m84f2mzs7sba4bt2q82k429v','source.indexing','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nb3yeatc3p1j73zh4k3',NULL,NULL,'{"title": "0.md", "status": "indexing", "ready": false}','2026-11-23T15:06:03.518Z');
INSERT INTO "events" VALUES(5,4611686018427387904,'evt_01m84f2ncecpgcyhzvgk4z0000','team_01m84f2mzs7sba4bt2q82k429v','source.queued','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nc3b8pvsgfj9f45gsw5',NULL,'key_01m84f2mzsngj885yx77x59eyx','{"title": "1.md", "status": "queued", "ready": false}','2026-11-23T15:06:03.534Z');
INSERT INTO "events" VALUES(6,4611686018427387904,'evt_01m84f2ncppz5kykdyej430000','team_01m84f2mzs7sba4bt2q82k429v','source.indexing','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nc3b8pvsgfj9f45gsw5',NULL,NULL,'{"title": "1.md", "status": "indexing", "ready": false}','2026-11-23T15:06:03.542Z');
INSERT INTO "events" VALUES(7,4611686018427387904,'evt_01m84f2nd68xrkda7v54yk0000','team_01m84f2mzs7sba4bt2q82k429v','source.queued','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nd179a6cywmst9hhrxe',NULL,'key_01m84f2mzsngj885yx77x59eyx','{"title": "2.md", "status": "queued", "ready": false}','2026-11-23T15:06:03.558Z');
INSERT INTO "events" VALUES(8,4611686018427387904,'evt_01m84f2neeg7ew7dcxgjxv0000','team_01m84f2mzs7sba4bt2q82k429v','source.queued','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nds4g7bet4zj0ks8y4g',NULL,'key_01m84f2mzsngj885yx77x59eyx','{"title": "Where is the key?", "status": "queued", "ready": false}','2026-11-23T15:06:03.597Z');
INSERT INTO "events" VALUES(9,4611686018427387904,'evt_01m84f2nh69wp44bagrb130000','team_01m84f2mzs7sba4bt2q82k429v','source.active','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nb3yeatc3p1j73zh4k3',NULL,NULL,'{"title": "0.md", "status": "active", "ready": false}','2026-11-23T15:06:03.686Z');
INSERT INTO "events" VALUES(10,4611686018427387904,'evt_01m84f2nh6871tv0e071vt0000','team_01m84f2mzs7sba4bt2q82k429v','source.ready','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nb3yeatc3p1j73zh4k3',NULL,NULL,'{"title": "0.md", "status": "active", "ready": true}','2026-11-23T15:06:03.686Z');
INSERT INTO "events" VALUES(11,4611686018427387904,'evt_01m84f2nh9ej4fscxkr60q0000','team_01m84f2mzs7sba4bt2q82k429v','source.active','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nc3b8pvsgfj9f45gsw5',NULL,NULL,'{"title": "1.md", "status": "active", "ready": false}','2026-11-23T15:06:03.689Z');
INSERT INTO "events" VALUES(12,4611686018427387904,'evt_01m84f2nh9442tg38fwtmj0000','team_01m84f2mzs7sba4bt2q82k429v','source.ready','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nc3b8pvsgfj9f45gsw5',NULL,NULL,'{"title": "1.md", "status": "active", "ready": true}','2026-11-23T15:06:03.689Z');
INSERT INTO "events" VALUES(13,4611686018427387904,'evt_01m84f2nhersh6mr9r5r800000','team_01m84f2mzs7sba4bt2q82k429v','source.indexing','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nd179a6cywmst9hhrxe',NULL,NULL,'{"title": "2.md", "status": "indexing", "ready": false}','2026-11-23T15:06:03.694Z');
INSERT INTO "events" VALUES(14,4611686018427387904,'evt_01m84f2nhersh6mr9r5r800001','team_01m84f2mzs7sba4bt2q82k429v','source.indexing','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nds4g7bet4zj0ks8y4g',NULL,NULL,'{"title": "Where is the key?", "status": "indexing", "ready": false}','2026-11-23T15:06:03.694Z');
INSERT INTO "events" VALUES(15,4611686018427387904,'evt_01m84f2nk04yd0vm9xp82n0000','team_01m84f2mzs7sba4bt2q82k429v','source.active','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nd179a6cywmst9hhrxe',NULL,NULL,'{"title": "2.md", "status": "active", "ready": false}','2026-11-23T15:06:03.744Z');
INSERT INTO "events" VALUES(16,4611686018427387904,'evt_01m84f2nk04yd0vm9xp82n0001','team_01m84f2mzs7sba4bt2q82k429v','source.active','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nds4g7bet4zj0ks8y4g',NULL,NULL,'{"title": "Where is the key?", "status": "active", "ready": false}','2026-11-23T15:06:03.744Z');
INSERT INTO "events" VALUES(17,4611686018427387904,'evt_01m84f2nk0sfmq9wn2yvxt0000','team_01m84f2mzs7sba4bt2q82k429v','source.ready','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nd179a6cywmst9hhrxe',NULL,NULL,'{"title": "2.md", "status": "active", "ready": true}','2026-11-23T15:06:03.744Z');
INSERT INTO "events" VALUES(18,4611686018427387904,'evt_01m84f2nk0sfmq9wn2yvxt0001','team_01m84f2mzs7sba4bt2q82k429v','source.ready','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nds4g7bet4zj0ks8y4g',NULL,NULL,'{"title": "Where is the key?", "status": "active", "ready": true}','2026-11-23T15:06:03.744Z');
INSERT INTO "events" VALUES(19,4611686018427387904,'evt_01m84f2nm1de9qrbx6emd90000','team_01m84f2mzs7sba4bt2q82k429v','source.deleted','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nb3yeatc3p1j73zh4k3',NULL,'key_01m84f2mzsngj885yx77x59eyx','{"title": "0.md"}','2026-11-23T15:06:03.777Z');
INSERT INTO "events" VALUES(20,4611686018427387904,'evt_01m84f2nn7v8909vdgapv60000','team_01m84f2mzs7sba4bt2q82k429v','source.queued','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nmhkkvc3d5rnz0j4gwh',NULL,'key_01m84f2mzsngj885yx77x59eyx','{"title": "empty.pdf", "status": "queued", "ready": false}','2026-11-23T15:06:03.815Z');
INSERT INTO "events" VALUES(21,4611686018427387904,'evt_01m84f2nnaqragp0wdhvmr0000','team_01m84f2mzs7sba4bt2q82k429v','source.indexing','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nmhkkvc3d5rnz0j4gwh',NULL,NULL,'{"title": "empty.pdf", "status": "indexing", "ready": false}','2026-11-23T15:06:03.818Z');
INSERT INTO "events" VALUES(22,4611686018427387904,'evt_01m84f2nrxsatvabkyxmrw0000','team_01m84f2mzs7sba4bt2q82k429v','source.failed','bkt_01m84f2n8ecm41xqg71ya9ayh8','src_01m84f2nmhkkvc3d5rnz0j4gwh',NULL,NULL,'{"title": "empty.pdf", "status": "failed", "ready": false, "error": {"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}}','2026-11-23T15:06:03.933Z');
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "facts" VALUES('installation_id','ins_01m84f2mzsz8h80we81rcs5dwg');
CREATE TABLE idempotency (
  key_id TEXT NOT NULL REFERENCES keys (id),
  key TEXT NOT NULL,
  route TEXT NOT NULL,
  fingerprint TEXT,
  answer TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (key_id, key)
) WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('key_01m84f2mzsngj885yx77x59eyx','b','POST /v1/buckets/{bucket}/batches','6e47f0b2b0882716a12de956b2b227eac0b117bc7f35cc14479f4b67098aeb7e','{"batch_id": "bat_01m84f2nt2gc07cvnmb3dqnbvw", "bucket_ids": ["bkt_01m84f2n9r666qv7zttjbh8npm"], "rejected": []}','2026-11-23T15:06:03.972Z');
INSERT INTO "idempotency" VALUES('key_01m84f2mzsngj885yx77x59eyx','key-0','POST /v1/buckets/{bucket}/files','51c66b94f2579b4451c1d3e2ddc137ba5bb90d5adf00c71128957ed02e9e6167','{"id": "src_01m84f2nb3yeatc3p1j73zh4k3", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "0.md", "filename": "0.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "09ec35411fa00c614e888508bce1cb6ad0f022dc7f1e787a92390e377a8161a1", "task": {"id": "task_01m84f2nb34sd52338shxvtatg", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 0}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m84f2n8ecm41xqg71ya9ayh8"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T15:06:03.491Z", "updated_at": "2026-11-23T15:06:03.491Z"}','2026-11-23T15:06:03.505Z');
INSERT INTO "idempotency" VALUES('key_01m84f2mzsngj885yx77x59eyx','key-1','POST /v1/buckets/{bucket}/files','2965faf1b5ab12eb41d2d2e36a4ab9ec6fbf5c8ad1e85fb381c0ac13d69ad5a2','{"id": "src_01m84f2nc3b8pvsgfj9f45gsw5", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "1.md", "filename": "1.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "e10c7bd68fd67d99cee4e0ddff166ed763a89492f641c75c7121bb2fc82d19af", "task": {"id": "task_01m84f2nc3t2d7pgp9f8a5wfvr", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 1}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m84f2n8ecm41xqg71ya9ayh8"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T15:06:03.522Z", "updated_at": "2026-11-23T15:06:03.522Z"}','2026-11-23T15:06:03.534Z');
INSERT INTO "idempotency" VALUES('key_01m84f2mzsngj885yx77x59eyx','key-2','POST /v1/buckets/{bucket}/files','3537ca15644d0e9292a452be771009316fac27f37da274d57ff0d8c88ee8df67','{"id": "src_01m84f2nd179a6cywmst9hhrxe", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "2.md", "filename": "2.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "799fe3ccba25929cc48931c820decf5bc0cf59a1ae491f1e3fa4d29d3c24431e", "task": {"id": "task_01m84f2nd11yb852rfh7gf65zy", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 2}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m84f2n8ecm41xqg71ya9ayh8"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T15:06:03.553Z", "updated_at": "2026-11-23T15:06:03.553Z"}','2026-11-23T15:06:03.558Z');
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
INSERT INTO "keys" VALUES('key_01m84f2mzsngj885yx77x59eyx','team_01m84f2mzs7sba4bt2q82k429v','admin','c21ceaac7034b123055060d405b67b7c9ee00505f7bee2ab491d5ddd0585da3b','["knowledge:file:create", "knowledge:bucket:create", "knowledge:read", "knowledge:bucket:update", "knowledge:bucket:delete", "knowledge:source:delete", "knowledge:search", "agent:read", "agent:manage", "answer:create", "webhook:manage", "key:manage"]',NULL,NULL,NULL,NULL,'2026-11-23T15:06:03.130Z');
INSERT INTO "keys" VALUES('key_01m84f2ntkc58kmfcdmydva3sr','team_01m84f2mzs7sba4bt2q82k429v','reader','81a0e3f3c9aa439d693f67d0f67d82ec94eb9c85d8c8903a142754d8ea06a9b8','["knowledge:read", "knowledge:search", "agent:read", "answer:create"]',NULL,NULL,NULL,NULL,'2026-11-23T15:06:03.987Z');
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
INSERT INTO "memberships" VALUES('src_01m84f2nc3b8pvsgfj9f45gsw5','bkt_01m84f2n8ecm41xqg71ya9ayh8','team_01m84f2mzs7sba4bt2q82k429v','active',0,NULL,NULL,'2026-11-23T15:06:03.522Z');
INSERT INTO "memberships" VALUES('src_01m84f2nd179a6cywmst9hhrxe','bkt_01m84f2n8ecm41xqg71ya9ayh8','team_01m84f2mzs7sba4bt2q82k429v','active',0,NULL,NULL,'2026-11-23T15:06:03.553Z');
INSERT INTO "memberships" VALUES('src_01m84f2nds4g7bet4zj0ks8y4g','bkt_01m84f2n8ecm41xqg71ya9ayh8','team_01m84f2mzs7sba4bt2q82k429v','active',0,NULL,NULL,'2026-11-23T15:06:03.577Z');
INSERT INTO "memberships" VALUES('src_01m84f2nmhkkvc3d5rnz0j4gwh','bkt_01m84f2n8ecm41xqg71ya9ayh8','team_01m84f2mzs7sba4bt2q82k429v','queued',0,NULL,NULL,'2026-11-23T15:06:03.793Z');
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
, batch_id TEXT) WITHOUT ROWID;
INSERT INTO "sources" VALUES('src_01m84f2nc3b8pvsgfj9f45gsw5','team_01m84f2mzs7sba4bt2q82k429v','file','active',1,'1.md','1.md','text/markdown',58,'e10c7bd68fd67d99cee4e0ddff166ed763a89492f641c75c7121bb2fc82d19af','["quay"]','{"note": 1}',NULL,NULL,NULL,'task_01m84f2nc3t2d7pgp9f8a5wfvr',NULL,'[]','{"characters": 58, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T15:06:03.522Z','2026-11-23T15:06:03.688Z',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "sources" VALUES('src_01m84f2nd179a6cywmst9hhrxe','team_01m84f2mzs7sba4bt2q82k429v','file','active',1,'2.md','2.md','text/markdown',58,'799fe3ccba25929cc48931c820decf5bc0cf59a1ae491f1e3fa4d29d3c24431e','["quay"]','{"note": 2}',NULL,NULL,NULL,'task_01m84f2nd11yb852rfh7gf65zy',NULL,'[]','{"characters": 58, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T15:06:03.553Z','2026-11-23T15:06:03.743Z',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "sources" VALUES('src_01m84f2nds4g7bet4zj0ks8y4g','team_01m84f2mzs7sba4bt2q82k429v','qa','active',1,'Where is the key?','question.md','text/markdown',37,'89be5e0c69ed990db7a385c34eff6a2c36ee90cb50e62167f6fa3945f806a3ba','[]','{}',NULL,NULL,NULL,'task_01m84f2nds1dk93atagyg5x48q',NULL,'[]','{"characters": 37, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T15:06:03.577Z','2026-11-23T15:06:03.743Z',NULL,NULL,NULL,'{"question": "Where is the key?", "answer": "In the drawer.", "alternate_questions": []}',NULL,NULL,0,NULL);
INSERT INTO "sources" VALUES('src_01m84f2nmhkkvc3d5rnz0j4gwh','team_01m84f2mzs7sba4bt2q82k429v','file','failed',1,'empty.pdf','empty.pdf','application/pdf',17,'abd6e5c67ffd4a2a3814cd49406f263d0fb03c401dab7af2e4db7d7900ab0572','[]','{}',NULL,NULL,NULL,'task_01m84f2nmh855x8pr4ha32f1xf','{"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}','[]',NULL,'2026-11-23T15:06:03.793Z','2026-11-23T15:06:03.933Z',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
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
, lane TEXT NOT NULL DEFAULT 'single' CHECK (lane IN ('prompt', 'wave', 'single', 'suspect')), trace TEXT) WITHOUT ROWID;
INSERT INTO "tasks" VALUES('task_01m84f2nb34sd52338shxvtatg','team_01m84f2mzs7sba4bt2q82k429v','provider_file_search_indexing','succeeded','src_01m84f2nb3yeatc3p1j73zh4k3',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T15:06:03.491Z','2026-11-23T15:06:03.515Z','2026-11-23T15:06:03.684Z','prompt',NULL);
INSERT INTO "tasks" VALUES('task_01m84f2nc3t2d7pgp9f8a5wfvr','team_01m84f2mzs7sba4bt2q82k429v','provider_file_search_indexing','succeeded','src_01m84f2nc3b8pvsgfj9f45gsw5',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T15:06:03.522Z','2026-11-23T15:06:03.541Z','2026-11-23T15:06:03.688Z','prompt',NULL);
INSERT INTO "tasks" VALUES('task_01m84f2nd11yb852rfh7gf65zy','team_01m84f2mzs7sba4bt2q82k429v','provider_file_search_indexing','succeeded','src_01m84f2nd179a6cywmst9hhrxe',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T15:06:03.553Z','2026-11-23T15:06:03.692Z','2026-11-23T15:06:03.743Z','prompt',NULL);
INSERT INTO "tasks" VALUES('task_01m84f2nds1dk93atagyg5x48q','team_01m84f2mzs7sba4bt2q82k429v','provider_file_search_indexing','succeeded','src_01m84f2nds4g7bet4zj0ks8y4g',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T15:06:03.577Z','2026-11-23T15:06:03.692Z','2026-11-23T15:06:03.743Z','prompt',NULL);
INSERT INTO "tasks" VALUES('task_01m84f2nmh855x8pr4ha32f1xf','team_01m84f2mzs7sba4bt2q82k429v','provider_file_search_indexing','failed','src_01m84f2nmhkkvc3d5rnz0j4gwh',1,1,3,NULL,'extract',0,NULL,'{"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}',NULL,'2026-11-23T15:06:03.793Z','2026-11-23T15:06:03.818Z','2026-11-23T15:06:03.933Z','single',NULL);
CREATE TABLE teams (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "teams" VALUES('team_01m84f2mzs7sba4bt2q82k429v','default','2026-11-23T15:06:03.164Z');
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
INSERT INTO "uploads" VALUES('upl_01m84f2nt33vchhahyv8rd3t0x','team_01m84f2mzs7sba4bt2q82k429v','["bkt_01m84f2n9r666qv7zttjbh8npm"]','open',1,'b.md','text/markdown',20,'B','[]','{}',NULL,NULL,NULL,NULL,NULL,'bat_01m84f2nt2gc07cvnmb3dqnbvw','b',1,'2026-11-24T15:06:03.970Z','2026-11-24T15:06:03.971Z','2026-11-23T15:06:03.971Z');
INSERT INTO "uploads" VALUES('upl_01m84f2nt3x7jfcttk26r1ag9j','team_01m84f2mzs7sba4bt2q82k429v','["bkt_01m84f2n9r666qv7zttjbh8npm"]','open',1,'a.md','text/markdown',20,'A','[]','{}',NULL,NULL,NULL,NULL,NULL,'bat_01m84f2nt2gc07cvnmb3dqnbvw','a',0,'2026-11-24T15:06:03.970Z','2026-11-24T15:06:03.971Z','2026-11-23T15:06:03.971Z');
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
CREATE INDEX tasks_open ON tasks (type, status, lane, team_id, id) WHERE finished_at IS NULL;
CREATE INDEX tasks_delayed ON tasks (type, next_attempt_at) WHERE finished_at IS NULL AND next_attempt_at IS NOT NULL;
CREATE INDEX detachments_leased ON detachments (lease_until_s) WHERE lease_until_s IS NOT NULL;
CREATE INDEX events_of_team ON events (team_id, turn, seq);
CREATE UNIQUE INDEX events_by_id ON events (id);
CREATE VIEW source_views AS
SELECT s.*, t.type AS task_type, t.status AS task_status,
  (SELECT group_concat(m.bucket_id || ' ' || m.sync_status) FROM memberships m
    JOIN buckets b ON b.id = m.bucket_id AND b.status <> 'deleting' WHERE m.source_id = s.id) AS places,
  EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = s.team_id) AS in_maintenance
FROM sources s LEFT JOIN tasks t ON t.id = s.task_id;
COMMIT;
