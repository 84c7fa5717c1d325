"""The tables of the state database, as the first release creates them. Later releases change them by migrations.

They are SQL and not calls of sqlite-utils, which has no `CHECK`, `WITHOUT ROWID` or partial indexes, and which
PostgreSQL could not run.
"""

#: `sources.valid_from` is the number of the oldest extraction whose search hits are valid: while a document is split
#: again, hits in its old chunks are still valid.
SCHEMA = """\
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE teams (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL
) WITHOUT ROWID;

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

CREATE TABLE bucket_changes (
  bucket_id TEXT NOT NULL REFERENCES buckets (id),
  writer BIGINT NOT NULL,
  changes BIGINT NOT NULL,
  PRIMARY KEY (bucket_id, writer)
) WITHOUT ROWID;

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
  rechunk BIGINT NOT NULL DEFAULT 0,
  batch_id TEXT
) WITHOUT ROWID;

CREATE INDEX sources_of_team ON sources (team_id, id);

CREATE INDEX sources_replacing ON sources (replaces) WHERE replaces IS NOT NULL;

CREATE UNIQUE INDEX sources_of_url ON sources (team_id, url_key) WHERE url_key IS NOT NULL;

CREATE INDEX sources_to_rechunk ON sources (id) WHERE rechunk = 1;

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

CREATE INDEX memberships_of_bucket ON memberships (bucket_id, source_id, sync_status);

CREATE INDEX memberships_due ON memberships (due_at) WHERE due_at IS NOT NULL;

CREATE INDEX memberships_leased ON memberships (lease_until_s) WHERE lease_until_s IS NOT NULL;

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
  finished_at TEXT,
  lane TEXT NOT NULL DEFAULT 'single' CHECK (lane IN ('prompt', 'wave', 'single', 'suspect')),
  trace TEXT
) WITHOUT ROWID;

CREATE INDEX tasks_open ON tasks (type, status, lane, team_id, id) WHERE finished_at IS NULL;

CREATE INDEX tasks_delayed ON tasks (type, next_attempt_at)
  WHERE finished_at IS NULL AND next_attempt_at IS NOT NULL;

CREATE INDEX tasks_of_source ON tasks (source_id, id);

CREATE UNIQUE INDEX tasks_rebuilding ON tasks (team_id) WHERE type = 'store_rebuild' AND finished_at IS NULL;

CREATE INDEX tasks_rebuilds ON tasks (team_id, id) WHERE type = 'store_rebuild';

CREATE TABLE idempotency (
  key_id TEXT NOT NULL REFERENCES keys (id),
  key TEXT NOT NULL,
  route TEXT NOT NULL,
  fingerprint TEXT,
  answer TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (key_id, key)
) WITHOUT ROWID;

CREATE INDEX idempotency_by_age ON idempotency (created_at);

CREATE TABLE tombstones (
  source_id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL,
  replaced_by TEXT,
  cleaned_at TEXT,
  created_at TEXT NOT NULL,
  blob TEXT
) WITHOUT ROWID;

CREATE INDEX tombstones_to_clean ON tombstones (source_id) WHERE cleaned_at IS NULL;

CREATE TABLE detachments (
  source_id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL,
  retitles BIGINT NOT NULL DEFAULT 0,
  lease_until_s DOUBLE PRECISION
) WITHOUT ROWID;

CREATE INDEX detachments_leased ON detachments (lease_until_s) WHERE lease_until_s IS NOT NULL;

CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  bucket_ids TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  created_at TEXT NOT NULL,
  ended_at TEXT
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

CREATE INDEX uploads_of_batch ON uploads (batch_id, position) WHERE batch_id IS NOT NULL;

CREATE INDEX uploads_open ON uploads (expires_at) WHERE status = 'open';

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

CREATE INDEX deliveries_of_team ON deliveries (team_id, id);

CREATE INDEX deliveries_due ON deliveries (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE delivery_attempts (
  delivery_id TEXT NOT NULL REFERENCES deliveries (id),
  attempt BIGINT NOT NULL,
  started_at TEXT NOT NULL,
  duration_ms BIGINT NOT NULL,
  http_status BIGINT,
  error TEXT,
  PRIMARY KEY (delivery_id, attempt)
) WITHOUT ROWID;

CREATE TABLE webhook_secrets (
  team_id TEXT PRIMARY KEY REFERENCES teams (id),
  generation BIGINT NOT NULL,
  rotated_at TEXT NOT NULL
) WITHOUT ROWID;

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

CREATE INDEX cascades_of_bucket ON cascades (bucket_id);

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

CREATE TABLE usage (
  team_id TEXT NOT NULL REFERENCES teams (id),
  month TEXT NOT NULL,
  answers BIGINT NOT NULL,
  PRIMARY KEY (team_id, month)
) WITHOUT ROWID;

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

CREATE INDEX events_of_team ON events (team_id, turn, seq);

CREATE UNIQUE INDEX events_by_id ON events (id);

CREATE TABLE vector_offers (
  team_id TEXT NOT NULL REFERENCES teams (id),
  text_sha256 TEXT NOT NULL,
  bucket_id TEXT NOT NULL,
  model TEXT NOT NULL,
  vector TEXT NOT NULL,
  passages BIGINT NOT NULL,
  offered_at TEXT NOT NULL,
  PRIMARY KEY (team_id, text_sha256, bucket_id)
);

CREATE INDEX vector_offers_by_age ON vector_offers (offered_at);

CREATE INDEX vector_offers_of_bucket ON vector_offers (bucket_id);

CREATE VIEW teams_in_maintenance AS
SELECT team_id FROM tasks WHERE type = 'store_rebuild' AND finished_at IS NULL"""

#: A migration that adds a column to `sources` must create this view again, because PostgreSQL expands `s.*` only when a
#: view is created.
SOURCE_VIEWS = """\
CREATE VIEW source_views AS
SELECT s.*, t.type AS task_type, t.status AS task_status,
  (SELECT group_concat(m.bucket_id || ' ' || m.sync_status) FROM memberships m
    JOIN buckets b ON b.id = m.bucket_id AND b.status <> 'deleting' WHERE m.source_id = s.id) AS places,
  EXISTS (SELECT 1 FROM teams_in_maintenance r WHERE r.team_id = s.team_id) AS in_maintenance
FROM sources s LEFT JOIN tasks t ON t.id = s.task_id"""


#: Columns of `sources` by which lists of a bucket are sorted. `memberships` has copies of them, such as `source_title`,
#: each with an index, so that a page of a large bucket is read without the rest of the bucket. Code that changes one of
#: them in `sources` changes the copies in the same transaction.
SORTED = ("title", "created_at", "updated_at", "size_bytes", "status")
#: All that `memberships` copies: the file name too, which is searched by words together with the title.
COPIED = (*SORTED, "filename")

#: What watchers of folders last reported. A row is forgotten when it is older than a minute.
WATCHERS = """\
CREATE TABLE watchers (
  team_id TEXT NOT NULL REFERENCES teams (id),
  key_id TEXT NOT NULL,
  id TEXT NOT NULL,
  mappings TEXT NOT NULL,
  reported_at TEXT NOT NULL,
  PRIMARY KEY (key_id, id)
) WITHOUT ROWID"""
