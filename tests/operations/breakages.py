"""Breaks each invariant of a data directory: the statements or file changes, and how `verify` reports them."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.operations.directories import SampleDirectory, change

#: Valid names of a source, a session and a staging file that the state does not know.
STRAY, PART, HALF = f"src_{'0' * 26}", f"upl_{'0' * 26}", "0" * 32

Break = Callable[[SampleDirectory], object]


def overwrite(path: Path) -> None:
    """Replace the file's content by random bytes of the same size."""
    path.write_bytes(os.urandom(path.stat().st_size))


def _empty_index(path: Path) -> None:
    """Replace the index by a database without tables, as a kill leaves it right after the file is created."""
    path.unlink()
    change(path, "PRAGMA journal_mode = WAL")


def _grow_log(path: Path) -> None:
    with path.with_name(f"{path.name}-wal").open("wb") as log:
        log.truncate(64 * 1024 * 1024)


def _remove_document(directory: SampleDirectory) -> None:
    provider = EmbeddedProvider(directory.files.index)
    provider.delete_document(directory.team, directory.source)
    provider.close()


def _link(path: Path) -> None:
    """Move the file to another folder, and leave a symbolic link to it."""
    path.symlink_to(path.rename(path.parent.parent / "elsewhere"))


def _delete(directory: SampleDirectory, source_id: str) -> None:
    """Delete the source from the state and its blob, but not from the index."""
    directory.sql(
        *(f"DELETE FROM {rows} = '{source_id}'" for rows in ("memberships WHERE source_id", "sources WHERE id"))
    )
    (directory.files.blobs / source_id).unlink()


def _change_session(directory: SampleDirectory, *statements: str) -> None:
    """Run the statements and delete the session's part file."""
    directory.sql(*statements)
    (directory.files.parts / directory.session).unlink()


#: Duplicate the upload session.
DOUBLE = ["CREATE TABLE copies AS SELECT * FROM uploads", "UPDATE copies SET id = 'upl_copy'"]
DOUBLE += ["INSERT INTO uploads SELECT * FROM copies", "DROP TABLE copies"]
BATCHED = "UPDATE uploads SET batch_id = 'bat_1', client_file_id = 'a', status = 'canceled'"
FINALIZED = "UPDATE uploads SET status = 'finalized'"


def _finalize_twice(directory: SampleDirectory) -> None:
    _change_session(directory, f"{FINALIZED}, source_id = '{directory.source}'", *DOUBLE)


def _batch_twice(directory: SampleDirectory) -> None:
    _change_session(
        directory,
        f"INSERT INTO batches VALUES ('bat_1', '{directory.team}', '[]', '', '', NULL, NULL)",
        BATCHED,
        *DOUBLE,
    )


#: How each problem is reported, followed by the statements that cause it, each for the state or for the index.
REPAIRED = """
I4: blob {source} has no source, and the index of {team} has it as 'notes.md' in {bucket}
    state: DELETE FROM memberships WHERE source_id = '{source}'
    state: DELETE FROM tasks WHERE source_id = '{source}'
    state: DELETE FROM sources WHERE id = '{source}'
I4: part {session} has no open session
    state: UPDATE uploads SET status = 'canceled'
I6: source {source} is active in generation 5, and is in the index as generation 1
    state: UPDATE sources SET generation = 5 WHERE id = '{source}'
I6: source {source} is active in bucket {other}, and no search of that finds it
    state: INSERT INTO memberships (source_id, bucket_id, team_id, sync_status, attempt, created_at)\
 SELECT source_id, '{other}', team_id, sync_status, attempt, created_at FROM memberships WHERE source_id = '{source}'
I6: source {source} is called 'Other'
    state: UPDATE sources SET title = 'Other' WHERE id = '{source}'
I6: 1 chunks of {imported} are found by no search
    index: UPDATE documents SET posted_as = 999999 WHERE source_id = '{imported}'
I7: source {source} was read into 99 chunks
    state: UPDATE sources SET extraction = json_set(extraction, '$.chunks', 99) WHERE id = '{source}'
I7: the totals count 99
    index: UPDATE totals SET chunks = 99
I7: the document of {shared} counts 99 chunks in {other}
    index: UPDATE memberships SET chunks = 99 WHERE bucket_id = '{other}'
I7: the document of {shared} has 0 vectors, its row counts 3
    index: UPDATE documents SET embedded = 3, model_key = 1 WHERE source_id = '{shared}'
I8: there are 1 vectors of chunks that are not there
    index: INSERT INTO vectors VALUES (1 << 40, 1, x'00')
I8: source {shared} is not in bucket {other}, and the index has it there
    state: DELETE FROM memberships WHERE source_id = '{shared}' AND bucket_id = '{other}'
I10: it has version 9
    index: PRAGMA user_version = 9
I13: source {queued} is queued, and no task moves it on
    state: DELETE FROM tasks WHERE source_id = '{queued}'
I13: source {queued} is indexing, and no task moves it on
    state: UPDATE sources SET status = 'indexing' WHERE id = '{queued}'
    state: UPDATE tasks SET status = 'running' WHERE source_id = '{queued}'
I13: the sync of source {source} into bucket {bucket} is queued, and is never due
    state: UPDATE memberships SET sync_status = 'queued' WHERE source_id = '{source}'
"""
NOT_REPAIRED = """
I9: source {imported} is active, and its webhook was not called
    state: DELETE FROM delivery_attempts
    state: DELETE FROM deliveries WHERE source_id = '{imported}'
I9: source {unreadable} is failed, and its webhook was not called
    state: DELETE FROM delivery_attempts
    state: DELETE FROM deliveries WHERE source_id = '{unreadable}'
I13: is pending, and its call is never due
    state: UPDATE deliveries SET status = 'pending' WHERE source_id = '{imported}'
I13: is queued, and no source waits for it
    state: UPDATE tasks SET status = 'queued', finished_at = NULL WHERE source_id = '{source}'
I13: bucket {other} is being deleted, and no task does it
    state: UPDATE buckets SET status = 'deleting' WHERE id = '{other}'
I13: task task_x deletes a bucket that is not being deleted
    state: INSERT INTO tasks (id, team_id, type, status, attempt, token, max_attempts, chunks_done, created_at)\
 VALUES ('task_x', '{team}', 'bucket_delete_cascade', 'queued', 0, 0, 3, 0, '')
I5: source {source} answers two idempotency keys, first and other
    state: INSERT INTO idempotency SELECT key_id, 'other', route, fingerprint, answer, created_at FROM idempotency
I5: answers with source {source} of another team
    state: INSERT INTO teams VALUES ('team_b', 'b', '')
    state: INSERT INTO agents SELECT 'team_b', id, name, role, instructions, policy, NULL, '', '' FROM agents
    state: UPDATE keys SET team_id = 'team_b'
I7: has counted more members of bucket bkt_x than there were
    state: INSERT INTO cascades SELECT id, team_id, 'bkt_x', '', 1, 1, 1, 1, NULL FROM tasks LIMIT 1
I8: source {source} was deleted, and its row is still there
    state: INSERT INTO tombstones VALUES ('{source}', '{team}', NULL, NULL, '', NULL)
I9: of source {imported} goes out under another id
    state: UPDATE deliveries SET body = '{{"id": "evt_x"}}' WHERE source_id = '{imported}'
I10: a row of memberships names nothing in buckets
    state: UPDATE memberships SET bucket_id = 'bkt_x' WHERE source_id = '{failed}'
I13: is running, and its time of ending does not match that
    state: UPDATE tasks SET status = 'running' WHERE source_id = '{source}'
I15: agent default of {team} retrieves nothing: its stored policy has bucket_ids that are not a list of bucket ids
    state: UPDATE agents SET policy = replace(policy, '["*"]', '"*"')
I15: the agents of {team} can't be read
    state: UPDATE agents SET policy = CAST(x'FF' AS TEXT)
I15: agent default of {team} retrieves nothing: it is missing
    state: DELETE FROM agents
"""
#: Problems that SQL alone can't cause: the report, whether `--repair` repairs it, and the function that causes it.
BY_HAND: list[tuple[str, bool, Break]] = [
    ("I3: source {source} has no blob", True, lambda w: (w.files.blobs / w.source).unlink()),
    ("I3: source {source} has no blob", True, lambda w: _link(w.files.blobs / w.source)),
    ("I2: source {source} has 5 bytes", True, lambda w: os.truncate(w.files.blobs / w.source, 5)),
    (f"I4: blob {STRAY} has no source, and no", True, lambda w: (w.files.blobs / STRAY).touch()),
    (f"I4: staging file {HALF} belongs to no upload", True, lambda w: (w.files.staging / HALF).touch()),
    (f"I4: part {PART} has no open session", True, lambda w: (w.files.parts / PART).touch()),
    ("I5: source {source} was made of two sessions", False, _finalize_twice),
    ("I6: source {source} is active in generation 1", True, _remove_document),
    ("I6: is active in generation 1", True, lambda w: _empty_index(w.index)),
    ("I7: session {session} is finalized", False, lambda w: _change_session(w, FINALIZED)),
    ("I7: batch bat_1 counts the file a more than once", False, _batch_twice),
    ("I8: a document of {question}, which is not a source", True, lambda w: _delete(w, w.question)),
    ("I10: the log of the state database has 67108864", True, lambda w: _grow_log(w.files.state)),
    ("I10: the log of the search index of {team} has 67108864", True, lambda w: _grow_log(w.index)),
    ("I10: the search index of {team}", True, lambda w: overwrite(w.index)),
]


def _run(statements: list[str]) -> Break:
    def break_it(directory: SampleDirectory) -> None:
        for statement in statements:
            database, _, sql = statement.strip().partition(": ")
            change(directory.index if database == "index" else directory.files.state, sql.format(**vars(directory)))

    return break_it


def _read(text: str, is_repaired: bool) -> Iterator[tuple[str, bool, Break]]:
    for entry in re.split(r"\n(?=I)", text.strip()):
        report, *statements = entry.splitlines()
        yield report, is_repaired, _run(statements)


#: Each problem: how it is reported, whether `--repair` repairs it, and the function that causes it.
BROKEN = [*_read(REPAIRED, True), *_read(NOT_REPAIRED, False), *BY_HAND]
