"""Every promise of a data directory, broken by hand."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.operations.directories import Whole

#: Names such as the service gives, which nothing in the state has.
STRAY, PART, HALF = f"src_{'0' * 26}", f"upl_{'0' * 26}", "0" * 32

Break = Callable[[Whole], object]


def overwrite(path: Path) -> None:
    """Other bytes of the same number."""
    path.write_bytes(os.urandom(path.stat().st_size))


def _empty_index(path: Path) -> None:
    """What a kill leaves between the making of the file and that of its tables, where documents should be."""
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def _grow_log(path: Path) -> None:
    with path.with_name(f"{path.name}-wal").open("wb") as log:
        log.truncate(64 * 1024 * 1024)


def _remove_document(whole: Whole, source_id: str) -> None:
    provider = EmbeddedProvider(whole.files.index)
    provider.delete_document(whole.team, source_id)
    provider.close()


def _link(path: Path) -> None:
    """The same bytes, somewhere else."""
    elsewhere = path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(elsewhere)


def _forget(whole: Whole, source_id: str) -> None:
    """As an older state knows the source: not at all."""
    whole.sql(
        f"DELETE FROM memberships WHERE source_id = '{source_id}'",
        f"DELETE FROM tasks WHERE source_id = '{source_id}'",
        f"DELETE FROM sources WHERE id = '{source_id}'",
    )


def _delete(whole: Whole, source_id: str) -> None:
    """Delete the source in the state, and forget about the index."""
    whole.sql(
        f"DELETE FROM memberships WHERE source_id = '{source_id}'", f"DELETE FROM sources WHERE id = '{source_id}'"
    )
    (whole.files.blobs / source_id).unlink()


def _end_session(whole: Whole, status: str) -> None:
    whole.sql(f"UPDATE uploads SET status = '{status}'")
    (whole.files.parts / whole.session).unlink()


def _double_session(whole: Whole, *statements: str) -> None:
    """Change the session, which has no bytes any more, and make another just like it."""
    whole.sql(
        *statements,
        "CREATE TABLE copies AS SELECT * FROM uploads",
        "UPDATE copies SET id = 'upl_copy'",
        "INSERT INTO uploads SELECT * FROM copies",
        "DROP TABLE copies",
    )
    (whole.files.parts / whole.session).unlink()


def _undelivered(source_id: str) -> list[str]:
    return ["DELETE FROM delivery_attempts", f"DELETE FROM deliveries WHERE source_id = '{source_id}'"]


#: What is done by hand, the invariant, what is told, and whether it can be mended.
BROKEN: dict[str, tuple[Break, str, str, bool]] = {
    "blob lost": (lambda w: (w.files.blobs / w.source).unlink(), "I3", "source {source} has no blob", True),
    "blob cut": (lambda w: os.truncate(w.files.blobs / w.source, 5), "I2", "source {source} has 5 bytes", True),
    "blob that is a link": (lambda w: _link(w.files.blobs / w.source), "I3", "source {source} has no blob", True),
    "blob of nobody": (lambda w: (w.files.blobs / STRAY).touch(), "I4", f"blob {STRAY} has no source, and no", True),
    "blob of a lost row": (
        lambda w: _forget(w, w.source),
        "I4",
        "blob {source} has no source, and the index of {team} has it as 'notes.md' in {bucket}",
        True,
    ),
    "staging file": (lambda w: (w.files.staging / HALF).touch(), "I4", f"staging file {HALF} belongs to nobody", True),
    "part of nobody": (lambda w: (w.files.parts / PART).touch(), "I4", f"part {PART} has no open session", True),
    "part of an ended session": (
        lambda w: w.sql("UPDATE uploads SET status = 'canceled'"),
        "I4",
        "part {session} has no open session",
        True,
    ),
    "two keys of one source": (
        lambda w: w.sql(
            "INSERT INTO idempotency SELECT key_id, 'other', route, fingerprint, answer, created_at FROM idempotency"
        ),
        "I5",
        "source {source} answers two idempotency keys, first and other",
        False,
    ),
    "two sessions of one source": (
        lambda w: _double_session(w, f"UPDATE uploads SET status = 'finalized', source_id = '{w.source}'"),
        "I5",
        "source {source} was made of two sessions",
        False,
    ),
    "a key of another team": (
        lambda w: w.sql(
            "INSERT INTO teams VALUES ('team_b', 'b', '')",
            "INSERT INTO agents SELECT 'team_b', id, name, role, instructions, policy, NULL, '', '' FROM agents",
            "UPDATE keys SET team_id = 'team_b'",
        ),
        "I5",
        "answers with source {source} of another team",
        False,
    ),
    "policy broken": (
        lambda w: w.sql("UPDATE agents SET policy = replace(policy, '[\"*\"]', '\"*\"')"),
        "I15",
        "agent default of {team} retrieves nothing: its stored policy has bucket_ids that are no list of bucket ids",
        False,
    ),
    "policy without letters": (
        lambda w: w.sql("UPDATE agents SET policy = CAST(x'FF' AS TEXT)"),
        "I15",
        "the agents of {team} can't be read",
        False,
    ),
    "default agent taken away": (
        lambda w: w.sql("DELETE FROM agents"),
        "I15",
        "agent default of {team} retrieves nothing: it is missing",
        False,
    ),
    "document lost": (lambda w: _remove_document(w, w.source), "I6", "source {source} is active in generation 1", True),
    "older generation": (
        lambda w: w.sql(f"UPDATE sources SET generation = 5 WHERE id = '{w.source}'"),
        "I6",
        "source {source} is active in generation 5, and is in the index as generation 1",
        True,
    ),
    "bucket unknown to the index": (
        lambda w: w.sql(
            f"INSERT INTO memberships SELECT source_id, '{w.other}', team_id, sync_status, attempt, lease_until_s,"
            f" due_at, created_at FROM memberships WHERE source_id = '{w.source}'"
        ),
        "I6",
        "source {source} is active in bucket {other}, and no search of that finds it",
        True,
    ),
    "title unknown to the index": (
        lambda w: w.sql(f"UPDATE sources SET title = 'Other' WHERE id = '{w.source}'"),
        "I6",
        "source {source} is called 'Other'",
        True,
    ),
    "posting lost": (
        lambda w: w.change_index("DELETE FROM chunk_index_docsize WHERE id = (SELECT max(chunk_key) FROM chunks)"),
        "I6",
        "1 chunks of {imported} are found by no search",
        True,
    ),
    "chunks counted wrong": (
        lambda w: w.sql(
            f"UPDATE sources SET extraction = json_set(extraction, '$.chunks', 99) WHERE id = '{w.source}'"
        ),
        "I7",
        "source {source} was read into 99 chunks",
        True,
    ),
    "totals counted wrong": (
        lambda w: w.change_index("UPDATE totals SET chunks = 99"),
        "I7",
        "the totals count 99",
        True,
    ),
    "bucket's chunks counted wrong": (
        lambda w: w.change_index(f"UPDATE memberships SET chunks = 99 WHERE bucket_id = '{w.other}'"),
        "I7",
        "the document of {shared} counts 99 chunks in {other}",
        True,
    ),
    "vectors counted wrong": (
        lambda w: w.change_index(f"UPDATE documents SET embedded = 3, model_key = 1 WHERE source_id = '{w.shared}'"),
        "I7",
        "the document of {shared} has 0 vectors, its row counts 3",
        True,
    ),
    "vector of a chunk that is gone": (
        lambda w: w.change_index("INSERT INTO vectors VALUES (1 << 40, 1, x'00')"),
        "I8",
        "there are 1 vectors of chunks that are not there",
        True,
    ),
    "finalized without a source": (
        lambda w: _end_session(w, "finalized"),
        "I7",
        "session {session} is finalized",
        False,
    ),
    "file counted twice": (
        lambda w: _double_session(
            w,
            f"INSERT INTO batches VALUES ('bat_1', '{w.team}', '[]', '', '')",
            "UPDATE uploads SET batch_id = 'bat_1', client_file_id = 'a', status = 'canceled'",
        ),
        "I7",
        "batch bat_1 counts the file a more than once",
        False,
    ),
    "document of a deleted source": (
        lambda w: _delete(w, w.question),
        "I8",
        "a document of {question}, which is no source",
        True,
    ),
    "left bucket in the index": (
        lambda w: w.sql(f"DELETE FROM memberships WHERE source_id = '{w.shared}' AND bucket_id = '{w.other}'"),
        "I8",
        "source {shared} is not in bucket {other}, and the index has it there",
        True,
    ),
    "tombstone of a living source": (
        lambda w: w.sql(f"INSERT INTO tombstones VALUES ('{w.source}', '{w.team}', NULL, NULL, '', NULL)"),
        "I8",
        "source {source} was deleted, and its row is still there",
        False,
    ),
    "ready and not told": (
        lambda w: w.sql(*_undelivered(w.imported)),
        "I9",
        "source {imported} is active, and its webhook is not told",
        True,
    ),
    "failed and not told": (
        lambda w: w.sql(*_undelivered(w.unreadable)),
        "I9",
        "source {unreadable} is failed, and its webhook is not told",
        True,
    ),
    "another event id": (
        lambda w: w.sql(f"UPDATE deliveries SET body = '{{\"id\": \"evt_x\"}}' WHERE source_id = '{w.imported}'"),
        "I9",
        "of source {imported} goes out under another id",
        False,
    ),
    "call never due": (
        lambda w: w.sql(f"UPDATE deliveries SET status = 'pending' WHERE source_id = '{w.imported}'"),
        "I13",
        "is pending, and its call is never due",
        True,
    ),
    "reference to nothing": (
        lambda w: w.sql(f"UPDATE memberships SET bucket_id = 'bkt_x' WHERE source_id = '{w.failed}'"),
        "I10",
        "a row of memberships names nothing in buckets",
        False,
    ),
    "log of the state": (lambda w: _grow_log(w.files.state), "I10", "the log of the state database has 67108864", True),
    "log of the index": (
        lambda w: _grow_log(w.index),
        "I10",
        "the log of the search index of {team} has 67108864",
        True,
    ),
    "index of another version": (lambda w: w.change_index("PRAGMA user_version = 9"), "I10", "it has version 9", True),
    "index without tables": (lambda w: _empty_index(w.index), "I6", "is active in generation 1", True),
    "index that is no database": (lambda w: overwrite(w.index), "I10", "the search index of {team}", True),
    "queued without a task": (
        lambda w: w.sql(f"DELETE FROM tasks WHERE source_id = '{w.queued}'"),
        "I13",
        "source {queued} is queued, and no task moves it on",
        True,
    ),
    "indexing without a lease": (
        lambda w: w.sql(
            f"UPDATE sources SET status = 'indexing' WHERE id = '{w.queued}'",
            f"UPDATE tasks SET status = 'running' WHERE source_id = '{w.queued}'",
        ),
        "I13",
        "source {queued} is indexing, and no task moves it on",
        True,
    ),
    "task of nobody": (
        lambda w: w.sql(f"UPDATE tasks SET status = 'queued', finished_at = NULL WHERE source_id = '{w.source}'"),
        "I13",
        "is queued, and no source waits for it",
        True,
    ),
    "task ended by half": (
        lambda w: w.sql(f"UPDATE tasks SET status = 'running' WHERE source_id = '{w.source}'"),
        "I13",
        "is running, and its end says otherwise",
        False,
    ),
    "sync never due": (
        lambda w: w.sql(f"UPDATE memberships SET sync_status = 'queued' WHERE source_id = '{w.source}'"),
        "I13",
        "the sync of source {source} into bucket {bucket} is queued, and is never due",
        True,
    ),
    "deletion without a task": (
        lambda w: w.sql(f"UPDATE buckets SET status = 'deleting' WHERE id = '{w.other}'"),
        "I13",
        "bucket {other} is being deleted, and no task does it",
        True,
    ),
    "deletion of a living bucket": (
        lambda w: w.sql(
            "INSERT INTO tasks (id, team_id, type, status, attempt, token, max_attempts, chunks_done, created_at)"
            f" VALUES ('task_x', '{w.team}', 'bucket_delete_cascade', 'queued', 0, 0, 3, 0, '')"
        ),
        "I13",
        "task task_x deletes a bucket that is not being deleted",
        True,
    ),
    "deletion that counts too much": (
        lambda w: w.sql("INSERT INTO cascades SELECT id, team_id, 'bkt_x', '', 1, 1, 1, 1, NULL FROM tasks LIMIT 1"),
        "I7",
        "has counted more members of bucket bkt_x than there were",
        False,
    ),
}
