BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'state','m001_teams_buckets_sources','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(2,'state','m002_uploads_batches','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(3,'state','m003_urls_webhooks','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(4,'state','m004_cascades','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(5,'state','m005_rebuilds','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(6,'state','m006_agents','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(7,'state','m007_rechunking','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(8,'state','m008_lanes','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(9,'state','m009_retitles','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(10,'state','m010_changes','2026-11-23 12:45:31');
INSERT INTO "_sqlite_migrations" VALUES(11,'state','m011_events','2026-11-23 12:45:31');
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
INSERT INTO "agents" VALUES('team_01m8471bedyr6xrsft7t7n7v78','agt_01m8471erk3fz0110br216dcwh','Helper','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-23T12:45:35.379Z','2026-11-23T12:45:35.379Z');
INSERT INTO "agents" VALUES('team_01m8471bedyr6xrsft7t7n7v78','default','Default agent','','','{"scope": "buckets", "bucket_ids": ["*"], "source_ids": [], "filters": null, "top_k": null, "score_threshold": null}',NULL,'2026-11-23T12:45:32.002Z','2026-11-23T12:45:32.002Z');
CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  bucket_ids TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  created_at TEXT NOT NULL
, ended_at TEXT) WITHOUT ROWID;
INSERT INTO "batches" VALUES('bat_01m8471ekse93f1vh0qvzrgxg5','team_01m8471bedyr6xrsft7t7n7v78','["bkt_01m8471by103bj56jknavrcxcq"]','2026-11-24T12:45:35.225Z','2026-11-23T12:45:35.225Z',NULL);
CREATE TABLE bucket_changes (bucket_id TEXT NOT NULL REFERENCES buckets (id), writer BIGINT NOT NULL, changes BIGINT NOT NULL, PRIMARY KEY (bucket_id, writer)) WITHOUT ROWID;
INSERT INTO "bucket_changes" VALUES('bkt_01m8471bwsa0qa17sqpaczzekr',0,14);
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
INSERT INTO "buckets" VALUES('bkt_01m8471bwsa0qa17sqpaczzekr','team_01m8471bedyr6xrsft7t7n7v78','handbook','Handbook','','active','{}',NULL,1,NULL,'2026-11-23T12:45:32.441Z','2026-11-23T12:45:32.441Z');
INSERT INTO "buckets" VALUES('bkt_01m8471by103bj56jknavrcxcq','team_01m8471bedyr6xrsft7t7n7v78','archive','Archive','','active','{}',NULL,1,NULL,'2026-11-23T12:45:32.481Z','2026-11-23T12:45:32.481Z');
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
INSERT INTO "events" VALUES(1,4611686018427387904,'evt_01m8471bwsvz676ndryx8v0000','team_01m8471bedyr6xrsft7t7n7v78','bucket.created','bkt_01m8471bwsa0qa17sqpaczzekr',NULL,NULL,'key_01m8471bedczed79711cbk08fv','{"slug": "handbook", "name": "Handbook", "status": "active"}','2026-11-23T12:45:32.441Z');
INSERT INTO "events" VALUES(2,4611686018427387904,'evt_01m8471bybs9wr21877r3m0000','team_01m8471bedyr6xrsft7t7n7v78','bucket.created','bkt_01m8471by103bj56jknavrcxcq',NULL,NULL,'key_01m8471bedczed79711cbk08fv','{"slug": "archive", "name": "Archive", "status": "active"}','2026-11-23T12:45:32.491Z');
INSERT INTO "events" VALUES(3,4611686018427387904,'evt_01m8471c2kpw5ppbp4v2ft0000','team_01m8471bedyr6xrsft7t7n7v78','source.queued','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c01ykrf69802590daq8',NULL,'key_01m8471bedczed79711cbk08fv','{"title": "0.md", "status": "queued", "ready": false}','2026-11-23T12:45:32.627Z');
INSERT INTO "events" VALUES(4,4611686018427387904,'evt_01m8471c2ykmvkksqwqrh60000','team_01m8471bedyr6xrsft7t7n7v78','source.indexing','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c01ykrf69802590daq8',NULL,NULL,'{"title": "0.md", "status": "indexing", "ready": false}','2026-11-23T12:45:32.638Z');
INSERT INTO "events" VALUES(5,4611686018427387904,'evt_01m8471c3ns991m8kpsfte0000','team_01m8471bedyr6xrsft7t7n7v78','source.queued','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c3je654w7pe8ccfxmdc',NULL,'key_01m8471bedczed79711cbk08fv','{"title": "1.md", "status": "queued", "ready": false}','2026-11-23T12:45:32.661Z');
INSERT INTO "events" VALUES(6,4611686018427387904,'evt_01m8471c3thgm2a45nahpx0000','team_01m8471bedyr6xrsft7t7n7v78','source.indexing','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c3je654w7pe8ccfxmdc',NULL,NULL,'{"title": "1.md", "status": "indexing", "ready": false}','2026-11-23T12:45:32.666Z');
INSERT INTO "events" VALUES(7,4611686018427387904,'evt_01m8471c5asgvmhn7s1mmc0000','team_01m8471bedyr6xrsft7t7n7v78','source.queued','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c54w3nfr3xrfqpnajgd',NULL,'key_01m8471bedczed79711cbk08fv','{"title": "2.md", "status": "queued", "ready": false}','2026-11-23T12:45:32.714Z');
INSERT INTO "events" VALUES(8,4611686018427387904,'evt_01m8471c6cv697xsjz0gdn0000','team_01m8471bedyr6xrsft7t7n7v78','source.active','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c01ykrf69802590daq8',NULL,NULL,'{"title": "0.md", "status": "active", "ready": false}','2026-11-23T12:45:32.748Z');
INSERT INTO "events" VALUES(9,4611686018427387904,'evt_01m8471c6dthjrm9qrb9pn0000','team_01m8471bedyr6xrsft7t7n7v78','source.ready','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c01ykrf69802590daq8',NULL,NULL,'{"title": "0.md", "status": "active", "ready": true}','2026-11-23T12:45:32.748Z');
INSERT INTO "events" VALUES(10,4611686018427387904,'evt_01m8471c6dvef29e3msh420000','team_01m8471bedyr6xrsft7t7n7v78','source.active','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c3je654w7pe8ccfxmdc',NULL,NULL,'{"title": "1.md", "status": "active", "ready": false}','2026-11-23T12:45:32.749Z');
INSERT INTO "events" VALUES(11,4611686018427387904,'evt_01m8471c6d7qjqr26zkqfw0000','team_01m8471bedyr6xrsft7t7n7v78','source.ready','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c3je654w7pe8ccfxmdc',NULL,NULL,'{"title": "1.md", "status": "active", "ready": true}','2026-11-23T12:45:32.749Z');
INSERT INTO "events" VALUES(12,4611686018427387904,'evt_01m8471c7ky8ysbr3ehxb10000','team_01m8471bedyr6xrsft7t7n7v78','source.queued','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c69tkpsspcb95jynmay',NULL,'key_01m8471bedczed79711cbk08fv','{"title": "Where is the key?", "status": "queued", "ready": false}','2026-11-23T12:45:32.787Z');
INSERT INTO "events" VALUES(13,4611686018427387904,'evt_01m8471c7tvqc27bbjhzxm0000','team_01m8471bedyr6xrsft7t7n7v78','source.indexing','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c54w3nfr3xrfqpnajgd',NULL,NULL,'{"title": "2.md", "status": "indexing", "ready": false}','2026-11-23T12:45:32.794Z');
INSERT INTO "events" VALUES(14,4611686018427387904,'evt_01m8471c7tvqc27bbjhzxm0001','team_01m8471bedyr6xrsft7t7n7v78','source.indexing','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c69tkpsspcb95jynmay',NULL,NULL,'{"title": "Where is the key?", "status": "indexing", "ready": false}','2026-11-23T12:45:32.794Z');
INSERT INTO "events" VALUES(15,4611686018427387904,'evt_01m8471c8s2w356k9nqz9y0000','team_01m8471bedyr6xrsft7t7n7v78','source.active','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c54w3nfr3xrfqpnajgd',NULL,NULL,'{"title": "2.md", "status": "active", "ready": false}','2026-11-23T12:45:32.825Z');
INSERT INTO "events" VALUES(16,4611686018427387904,'evt_01m8471c8s2w356k9nqz9y0001','team_01m8471bedyr6xrsft7t7n7v78','source.active','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c69tkpsspcb95jynmay',NULL,NULL,'{"title": "Where is the key?", "status": "active", "ready": false}','2026-11-23T12:45:32.825Z');
INSERT INTO "events" VALUES(17,4611686018427387904,'evt_01m8471c8t4m3b5rhbp2x50000','team_01m8471bedyr6xrsft7t7n7v78','source.ready','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c54w3nfr3xrfqpnajgd',NULL,NULL,'{"title": "2.md", "status": "active", "ready": true}','2026-11-23T12:45:32.826Z');
INSERT INTO "events" VALUES(18,4611686018427387904,'evt_01m8471c8t4m3b5rhbp2x50001','team_01m8471bedyr6xrsft7t7n7v78','source.ready','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c69tkpsspcb95jynmay',NULL,NULL,'{"title": "Where is the key?", "status": "active", "ready": true}','2026-11-23T12:45:32.826Z');
INSERT INTO "events" VALUES(19,4611686018427387904,'evt_01m8471ddgex40rg6awnm30000','team_01m8471bedyr6xrsft7t7n7v78','source.queued','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471ddds6hmt4kcm0j6j3xc',NULL,'key_01m8471bedczed79711cbk08fv','{"title": "empty.pdf", "status": "queued", "ready": false}','2026-11-23T12:45:34.000Z');
INSERT INTO "events" VALUES(20,4611686018427387904,'evt_01m8471dds9nzm3s20f2370000','team_01m8471bedyr6xrsft7t7n7v78','source.indexing','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471ddds6hmt4kcm0j6j3xc',NULL,NULL,'{"title": "empty.pdf", "status": "indexing", "ready": false}','2026-11-23T12:45:34.009Z');
INSERT INTO "events" VALUES(21,4611686018427387904,'evt_01m8471dgssjwfzvny360k0000','team_01m8471bedyr6xrsft7t7n7v78','source.failed','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471ddds6hmt4kcm0j6j3xc',NULL,NULL,'{"title": "empty.pdf", "status": "failed", "ready": false, "error": {"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}}','2026-11-23T12:45:34.105Z');
INSERT INTO "events" VALUES(22,4611686018427387904,'evt_01m8471eqdeq0m6a3xxb550000','team_01m8471bedyr6xrsft7t7n7v78','source.deleted','bkt_01m8471bwsa0qa17sqpaczzekr','src_01m8471c01ykrf69802590daq8',NULL,'key_01m8471bedczed79711cbk08fv','{"title": "0.md"}','2026-11-23T12:45:35.341Z');
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "facts" VALUES('installation_id','ins_01m8471bedksffmqz129sjsx2f');
CREATE TABLE idempotency (
  key_id TEXT NOT NULL REFERENCES keys (id),
  key TEXT NOT NULL,
  route TEXT NOT NULL,
  fingerprint TEXT,
  answer TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (key_id, key)
) WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('key_01m8471bedczed79711cbk08fv','b','POST /v1/buckets/{bucket}/batches','4c656d945834164e113370296102344cef4afc5685bf686079b044a6a192c58e','{"batch_id": "bat_01m8471ekse93f1vh0qvzrgxg5", "bucket_ids": ["bkt_01m8471by103bj56jknavrcxcq"], "rejected": []}','2026-11-23T12:45:35.233Z');
INSERT INTO "idempotency" VALUES('key_01m8471bedczed79711cbk08fv','key-0','POST /v1/buckets/{bucket}/files','50c1f70d673eab4473164992a37b5288425b3763d4815c1ae64e2021c6254602','{"id": "src_01m8471c01ykrf69802590daq8", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "0.md", "filename": "0.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "09ec35411fa00c614e888508bce1cb6ad0f022dc7f1e787a92390e377a8161a1", "task": {"id": "task_01m8471c01wkew2jks17d7hn88", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 0}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m8471bwsa0qa17sqpaczzekr"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T12:45:32.545Z", "updated_at": "2026-11-23T12:45:32.545Z"}','2026-11-23T12:45:32.629Z');
INSERT INTO "idempotency" VALUES('key_01m8471bedczed79711cbk08fv','key-1','POST /v1/buckets/{bucket}/files','012ef5a1fbb0caed8df93ee5ec226d02aef650f13fca895c55fa14c0db68c35f','{"id": "src_01m8471c3je654w7pe8ccfxmdc", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "1.md", "filename": "1.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "e10c7bd68fd67d99cee4e0ddff166ed763a89492f641c75c7121bb2fc82d19af", "task": {"id": "task_01m8471c3jq4x9g7zx6zjwh4n5", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 1}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m8471bwsa0qa17sqpaczzekr"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T12:45:32.655Z", "updated_at": "2026-11-23T12:45:32.655Z"}','2026-11-23T12:45:32.661Z');
INSERT INTO "idempotency" VALUES('key_01m8471bedczed79711cbk08fv','key-2','POST /v1/buckets/{bucket}/files','8309955709b75b055691282212d5f0cee5a99225af6a2eda7048820fd353212b','{"id": "src_01m8471c54w3nfr3xrfqpnajgd", "object": "knowledge_file", "type": "file", "status": "queued", "ready": false, "ready_withheld_by": null, "bucket_sync_status": "queued", "title": "2.md", "filename": "2.md", "content_type": "text/markdown", "size_bytes": 58, "sha256": "799fe3ccba25929cc48931c820decf5bc0cf59a1ae491f1e3fa4d29d3c24431e", "task": {"id": "task_01m8471c54fn5n7f1hht53431q", "type": "provider_file_search_indexing", "status": "queued"}, "tags": ["quay"], "metadata": {"note": 2}, "mapping": null, "source_url": null, "final_url": null, "http_status": null, "etag": null, "last_modified": null, "fetched_at": null, "question": null, "answer": null, "alternate_questions": null, "bucket_ids": ["bkt_01m8471bwsa0qa17sqpaczzekr"], "replaces": null, "error": null, "warnings": [], "extraction": null, "created_at": "2026-11-23T12:45:32.708Z", "updated_at": "2026-11-23T12:45:32.708Z"}','2026-11-23T12:45:32.714Z');
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
INSERT INTO "keys" VALUES('key_01m8471bedczed79711cbk08fv','team_01m8471bedyr6xrsft7t7n7v78','admin','7e75f29ca2e3e73fd429850e3893b8c0a5b446603de93ef655cdfbe635a28635','["knowledge:file:create", "knowledge:bucket:create", "knowledge:read", "knowledge:bucket:update", "knowledge:bucket:delete", "knowledge:source:delete", "knowledge:search", "agent:read", "agent:manage", "answer:create", "webhook:manage", "key:manage"]',NULL,NULL,NULL,NULL,'2026-11-23T12:45:31.981Z');
INSERT INTO "keys" VALUES('key_01m8471erc4h0yve9k86tyhpqp','team_01m8471bedyr6xrsft7t7n7v78','reader','9df0fbf51f4c5a3f99380c863a2695df0ed4d4e6cffd5fb60f4772415f996820','["knowledge:read", "knowledge:search", "agent:read", "answer:create"]',NULL,NULL,NULL,NULL,'2026-11-23T12:45:35.372Z');
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
INSERT INTO "memberships" VALUES('src_01m8471c3je654w7pe8ccfxmdc','bkt_01m8471bwsa0qa17sqpaczzekr','team_01m8471bedyr6xrsft7t7n7v78','active',0,NULL,NULL,'2026-11-23T12:45:32.655Z');
INSERT INTO "memberships" VALUES('src_01m8471c54w3nfr3xrfqpnajgd','bkt_01m8471bwsa0qa17sqpaczzekr','team_01m8471bedyr6xrsft7t7n7v78','active',0,NULL,NULL,'2026-11-23T12:45:32.708Z');
INSERT INTO "memberships" VALUES('src_01m8471c69tkpsspcb95jynmay','bkt_01m8471bwsa0qa17sqpaczzekr','team_01m8471bedyr6xrsft7t7n7v78','active',0,NULL,NULL,'2026-11-23T12:45:32.745Z');
INSERT INTO "memberships" VALUES('src_01m8471ddds6hmt4kcm0j6j3xc','bkt_01m8471bwsa0qa17sqpaczzekr','team_01m8471bedyr6xrsft7t7n7v78','queued',0,NULL,NULL,'2026-11-23T12:45:33.997Z');
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
INSERT INTO "sources" VALUES('src_01m8471c3je654w7pe8ccfxmdc','team_01m8471bedyr6xrsft7t7n7v78','file','active',1,'1.md','1.md','text/markdown',58,'e10c7bd68fd67d99cee4e0ddff166ed763a89492f641c75c7121bb2fc82d19af','["quay"]','{"note": 1}',NULL,NULL,NULL,'task_01m8471c3jq4x9g7zx6zjwh4n5',NULL,'[]','{"characters": 58, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T12:45:32.655Z','2026-11-23T12:45:32.749Z',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "sources" VALUES('src_01m8471c54w3nfr3xrfqpnajgd','team_01m8471bedyr6xrsft7t7n7v78','file','active',1,'2.md','2.md','text/markdown',58,'799fe3ccba25929cc48931c820decf5bc0cf59a1ae491f1e3fa4d29d3c24431e','["quay"]','{"note": 2}',NULL,NULL,NULL,'task_01m8471c54fn5n7f1hht53431q',NULL,'[]','{"characters": 58, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T12:45:32.708Z','2026-11-23T12:45:32.825Z',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "sources" VALUES('src_01m8471c69tkpsspcb95jynmay','team_01m8471bedyr6xrsft7t7n7v78','qa','active',1,'Where is the key?','question.md','text/markdown',37,'89be5e0c69ed990db7a385c34eff6a2c36ee90cb50e62167f6fa3945f806a3ba','[]','{}',NULL,NULL,NULL,'task_01m8471c69w9qw44zx87zqn75v',NULL,'[]','{"characters": 37, "pages": null, "pages_without_text": [], "chunks": 1, "language": null}','2026-11-23T12:45:32.745Z','2026-11-23T12:45:32.825Z',NULL,NULL,NULL,'{"question": "Where is the key?", "answer": "In the drawer.", "alternate_questions": []}',NULL,NULL,0,NULL);
INSERT INTO "sources" VALUES('src_01m8471ddds6hmt4kcm0j6j3xc','team_01m8471bedyr6xrsft7t7n7v78','file','failed',1,'empty.pdf','empty.pdf','application/pdf',17,'abd6e5c67ffd4a2a3814cd49406f263d0fb03c401dab7af2e4db7d7900ab0572','[]','{}',NULL,NULL,NULL,'task_01m8471dddhc0w4t6y05sa18cg','{"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}','[]',NULL,'2026-11-23T12:45:33.997Z','2026-11-23T12:45:34.105Z',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
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
INSERT INTO "tasks" VALUES('task_01m8471c01wkew2jks17d7hn88','team_01m8471bedyr6xrsft7t7n7v78','provider_file_search_indexing','succeeded','src_01m8471c01ykrf69802590daq8',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:45:32.545Z','2026-11-23T12:45:32.637Z','2026-11-23T12:45:32.748Z','prompt');
INSERT INTO "tasks" VALUES('task_01m8471c3jq4x9g7zx6zjwh4n5','team_01m8471bedyr6xrsft7t7n7v78','provider_file_search_indexing','succeeded','src_01m8471c3je654w7pe8ccfxmdc',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:45:32.655Z','2026-11-23T12:45:32.666Z','2026-11-23T12:45:32.749Z','prompt');
INSERT INTO "tasks" VALUES('task_01m8471c54fn5n7f1hht53431q','team_01m8471bedyr6xrsft7t7n7v78','provider_file_search_indexing','succeeded','src_01m8471c54w3nfr3xrfqpnajgd',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:45:32.708Z','2026-11-23T12:45:32.793Z','2026-11-23T12:45:32.825Z','prompt');
INSERT INTO "tasks" VALUES('task_01m8471c69w9qw44zx87zqn75v','team_01m8471bedyr6xrsft7t7n7v78','provider_file_search_indexing','succeeded','src_01m8471c69tkpsspcb95jynmay',1,1,3,NULL,'bucket_sync',1,1,NULL,NULL,'2026-11-23T12:45:32.745Z','2026-11-23T12:45:32.793Z','2026-11-23T12:45:32.825Z','prompt');
INSERT INTO "tasks" VALUES('task_01m8471dddhc0w4t6y05sa18cg','team_01m8471bedyr6xrsft7t7n7v78','provider_file_search_indexing','failed','src_01m8471ddds6hmt4kcm0j6j3xc',1,1,3,NULL,'extract',0,NULL,'{"code": "document_unreadable", "message": "The PDF is damaged: it can''t be opened.", "retryable": false}',NULL,'2026-11-23T12:45:33.997Z','2026-11-23T12:45:34.008Z','2026-11-23T12:45:34.105Z','single');
CREATE TABLE teams (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "teams" VALUES('team_01m8471bedyr6xrsft7t7n7v78','default','2026-11-23T12:45:32.002Z');
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
INSERT INTO "uploads" VALUES('upl_01m8471ekte64q5xwrakv6ybqy','team_01m8471bedyr6xrsft7t7n7v78','["bkt_01m8471by103bj56jknavrcxcq"]','open',1,'a.md','text/markdown',20,'A','[]','{}',NULL,NULL,NULL,NULL,NULL,'bat_01m8471ekse93f1vh0qvzrgxg5','a',0,'2026-11-24T12:45:35.225Z','2026-11-24T12:45:35.226Z','2026-11-23T12:45:35.226Z');
INSERT INTO "uploads" VALUES('upl_01m8471ektpa79pz7w22b1sxas','team_01m8471bedyr6xrsft7t7n7v78','["bkt_01m8471by103bj56jknavrcxcq"]','open',1,'b.md','text/markdown',20,'B','[]','{}',NULL,NULL,NULL,NULL,NULL,'bat_01m8471ekse93f1vh0qvzrgxg5','b',1,'2026-11-24T12:45:35.225Z','2026-11-24T12:45:35.226Z','2026-11-23T12:45:35.226Z');
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
