"""The schema of a mapping's index, one ordered migration at a time."""

import sqlite_utils
from sqlite_utils import Migrations

sync = Migrations("sync")


@sync()
def m001_files_batches_facts(db: sqlite_utils.Database) -> None:
    for statement in _FIRST.split(";\n\n"):
        db.execute(statement)


# A run may be killed between two of these; the next one makes the rest.
_FIRST = """\
CREATE TABLE IF NOT EXISTS files (
  size_bytes INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  ctime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  device INTEGER NOT NULL,
  hashed_ns INTEGER NOT NULL,
  path TEXT PRIMARY KEY,
  raw TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  source_id TEXT,
  place_id TEXT,
  state TEXT NOT NULL,
  reason TEXT
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS batches (
  key TEXT PRIMARY KEY,
  body TEXT NOT NULL,
  files TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID"""
