"""Inspects index files, without changing them, while no process has them open."""

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from svc_daemon.core.problems import LOG_BYTES, Problem, Repair
from svc_daemon.databases.schemas import find_difference, read_objects
from svc_daemon.databases.sqlite import log_bytes, open_unchanging
from svc_daemon.provider.contract import InspectedDocument
from svc_daemon.provider.embedded import document_rows, documents
from svc_daemon.provider.embedded.files import index_path, list_teams
from svc_daemon.provider.embedded.indexes import postings_folder
from svc_daemon.provider.embedded.postings import PostingsDamaged, check_files, count_terms
from svc_daemon.provider.embedded.schema import ORDINAL_BITS, UPGRADED, VERSION, is_blank, prepare

#: Most bytes of a value of a passage, which has at most 8000 characters, and of any other. They are generous.
MOST_BYTES, MOST_OTHER_BYTES = dict.fromkeys(("headings", "text"), 2**20), 2**23


class _RowCheck(NamedTuple):
    """An invariant, an SQL statement that returns the rows that violate it, and the message for such a row."""

    invariant: str
    statement: str
    message: str


_ROW_CHECKS = (
    _RowCheck(
        "I7",
        "SELECT d.source_id, d.chunks AS counted, (SELECT count(*) FROM chunks AS c"
        " WHERE c.chunk_key BETWEEN d.document_key << :bits AND (d.document_key + 1 << :bits) - 1) AS found"
        " FROM documents AS d WHERE d.hidden = 0 AND counted <> found",
        "the document of {source_id} has {found} chunks, its row counts {counted}",
    ),
    _RowCheck(
        "I7",
        "SELECT d.source_id, m.bucket_id, m.chunks AS counted, d.chunks AS found FROM memberships AS m"
        " JOIN documents AS d USING (document_key) WHERE d.hidden = 0 AND counted <> found",
        "the document of {source_id} counts {counted} chunks in {bucket_id}, it has {found}",
    ),
    _RowCheck(
        "I7",
        "SELECT chunks AS counted, (SELECT coalesce(sum(chunks), 0) FROM documents WHERE hidden = 0) AS found"
        " FROM totals WHERE counted <> found",
        "the totals count {counted} chunks, there are {found}",
    ),
    _RowCheck(
        "I7",
        "SELECT d.source_id, d.embedded AS counted, (SELECT count(*) FROM signs AS s"
        " JOIN vectors AS v USING (chunk_key)"
        " WHERE s.chunk_key BETWEEN d.document_key << :bits AND (d.document_key + 1 << :bits) - 1"
        " AND s.model_key = d.model_key AND v.model_key = d.model_key) AS found"
        " FROM documents AS d WHERE d.hidden = 0 AND counted <> found",
        "the document of {source_id} has {found} vectors, its row counts {counted}",
    ),
    _RowCheck(
        "I8",
        "SELECT count(*) AS found FROM vectors WHERE chunk_key NOT IN (SELECT chunk_key FROM chunks)"
        " HAVING count(*) > 0",
        "there are {found} vectors of chunks that are not there",
    ),
)


class IndexInspector:
    """Checks the index files in a folder. No process may have them open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_teams(self) -> list[str]:
        return list_teams(self._folder)

    def check_index(self, team_id: str, *, read_data: bool) -> list[Problem]:
        path, about = index_path(self._folder, team_id), {"team_id": team_id}
        problems = []
        if (size_bytes := log_bytes(path)) >= LOG_BYTES:
            message = f"the log of the search index of {team_id} has {size_bytes} bytes"
            problems.append(Problem("I10", message, Repair.TRIM_LOG, about))
        try:
            with open_unchanging(path) as connection:
                found = list(_check(connection, path, read_data=read_data))
        except sqlite3.DatabaseError as error:
            found = [("I10", f"it can't be read: {error}")]
        for invariant, message in found:
            problems.append(
                Problem(invariant, f"the search index of {team_id}: {message}", Repair.REBUILD_INDEX, about)
            )
        return problems

    def list_documents(self, team_id: str) -> dict[str, InspectedDocument]:
        if not index_path(self._folder, team_id).exists():
            return {}
        with open_unchanging(index_path(self._folder, team_id)) as connection:
            if is_blank(connection):
                return {}
            rows = connection.execute("SELECT * FROM documents WHERE hidden = 0").fetchall()
            return {
                row["source_id"]: InspectedDocument(
                    row["source_id"],
                    row["generation"],
                    row["title"],
                    documents.list_buckets(connection, row["document_key"]),
                    row["chunks"],
                )
                for row in rows
            }


def is_own_index(path: Path) -> bool:
    """Whether an index file, which no process has open, can be one that this release has made.

    It has exactly the schema of this release, and no value that is longer than any of its own.
    """
    try:
        with open_unchanging(path) as connection, closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
            made.row_factory = sqlite3.Row
            prepare(made)
            if find_difference(read_objects(connection), read_objects(made)) is not None:
                return False
            # The schema is ours, and thereby the names in it.
            listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return not any(_has_outsized(connection, table) for (table,) in listed.fetchall())
    except sqlite3.Error:
        return False


def _has_outsized(connection: sqlite3.Connection, table: str) -> bool:
    """Whether a row of this table has a longer value than this program writes. Searches would read it as a whole."""
    columns = connection.execute("SELECT name FROM pragma_table_info(:table)", {"table": table}).fetchall()
    # The length of a text would end at NUL.
    tests = (f"length(CAST({name} AS BLOB)) > {MOST_BYTES.get(name, MOST_OTHER_BYTES)}" for (name,) in columns)
    return connection.execute(f"SELECT 1 FROM {table} WHERE {' OR '.join(tests)} LIMIT 1").fetchone() is not None  # noqa: S608


def _check(connection: sqlite3.Connection, path: Path, *, read_data: bool) -> Iterator[tuple[str, str]]:
    # An empty file is not a problem: a crash can leave one, and its tables are created when it is opened.
    if is_blank(connection):
        return
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in UPGRADED:
        yield "I10", f"it has version {version}, this release makes version {VERSION}"
        return
    messages = [message for (message,) in connection.execute("PRAGMA integrity_check") if message != "ok"]
    if messages:
        yield from (("I10", f"it is damaged: {message}") for message in messages)
        return
    for check in _ROW_CHECKS:
        for row in connection.execute(check.statement, {"bits": ORDINAL_BITS}):
            yield check.invariant, check.message.format(**dict(row))
    if version == VERSION:
        yield from _check_postings(connection, path, read_data=read_data)
    if read_data:
        yield from _check_texts(connection)


def _check_texts(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Check that each chunk's text equals the document's text between the chunk's offsets."""
    for (source_id,) in connection.execute("SELECT source_id FROM documents WHERE hidden = 0").fetchall():
        try:
            stored = documents.find_text(connection, source_id)
        except (zlib.error, UnicodeDecodeError) as error:
            yield "I6", f"the text of {source_id} can't be read: {error}"
            continue
        chunks = [each.chunk for each in stored.chunks] if stored else []
        text = stored.text if stored else ""
        wrong = sum(chunk.text != text[chunk.char_start : chunk.char_end] for chunk in chunks)
        if wrong:
            yield "I6", f"{wrong} chunks of {source_id} do not match its text"


def _check_postings(connection: sqlite3.Connection, path: Path, *, read_data: bool) -> Iterator[tuple[str, str]]:
    """Check the files of the postings, and that all chunks are in them, with `read_data` by each of their words."""
    number, _ = document_rows.find_postings(connection)
    folder = postings_folder(path, number)
    if not number or not folder.exists():
        # They are made from the rows when the index is opened, as after a restore.
        return
    try:
        check_files(folder)
        held, held_words = count_terms(folder, "document", "words")
    except (PostingsDamaged, OSError) as error:
        yield "I6", f"its postings are damaged: {error}"
        return
    for posted_as, chunks in documents.count_posted(connection).items():
        if held.get(str(posted_as), 0) < chunks:
            stored = documents.find_by_number(connection, posted_as)
            yield "I6", f"{chunks} chunks of {stored['source_id'] if stored else posted_as} are found by no search"
    if read_data:
        words = Counter[str]()
        for posted_as in documents.count_posted(connection):
            if stored := documents.find_by_number(connection, posted_as):
                rows = documents.read_chunk_rows(connection, stored["document_key"], 0, stored["chunks"])
                wording = documents.read_wording(connection, stored)
                words.update(word for posting in wording.postings(0, rows) for word in set(posting.words.split()))
        lost = sum(held_words.get(word, 0) < count for word, count in words.items())
        if lost:
            yield "I6", f"its postings are not those of its texts: {lost} words are not in all of their chunks"
