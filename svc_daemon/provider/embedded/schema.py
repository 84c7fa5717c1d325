"""The schema of an index file, and the errors of its engine.

- The key of a chunk is `document_key << 20 | ordinal`, so the keys of a document's chunks are contiguous.
- `vectors` has full vectors. `signs` has one bit per component of each vector. Searches scan `signs` first.
- `embedded_at` is the `vector_revision` of the index at which a document's vectors last changed.
- A document is hidden while it is written or removed. Searches and counts ignore hidden documents.
- The postings, which say what words are in which chunks, are in a folder beside the file. They are made from the rows,
  and can always be made again. They know a document by its `posted_as`, a number that changes with its buckets and
  names, and a search ignores what they have under a number that no document has. So each change of a document becomes
  visible with a commit of the file.
- `removed_postings` has the numbers whose postings are still to be removed.
"""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from svc_daemon.errors import ShuttingDown, StorageError
from svc_daemon.provider.errors import IndexDamaged, ProviderError, ProviderFailed, SearchTimeout

#: Schema version. An index of the two versions before is migrated; one of any other is rebuilt.
VERSION = 5

#: How many low bits of a chunk's key contain its ordinal.
ORDINAL_BITS = 20
MAX_ORDINAL = (1 << ORDINAL_BITS) - 1

STATEMENTS = (
    """
    CREATE TABLE documents (
        document_key INTEGER PRIMARY KEY,
        source_id TEXT NOT NULL,
        generation INTEGER NOT NULL,
        title TEXT NOT NULL,
        chunks INTEGER NOT NULL,
        pieces INTEGER NOT NULL,
        hidden INTEGER NOT NULL,
        model_key INTEGER,
        embedded INTEGER NOT NULL DEFAULT 0,
        embedded_at INTEGER NOT NULL DEFAULT 0,
        posted_as INTEGER,
        names TEXT NOT NULL DEFAULT '',
        language TEXT
    ) STRICT
    """,
    "CREATE UNIQUE INDEX posted_documents ON documents (posted_as)",
    "CREATE UNIQUE INDEX shown_documents ON documents (source_id) WHERE hidden = 0",
    "CREATE INDEX hidden_documents ON documents (document_key) WHERE hidden = 1",
    # Texts are stored in pieces, so that no transaction writes a large text as a whole.
    """
    CREATE TABLE texts (
        document_key INTEGER NOT NULL,
        piece INTEGER NOT NULL,
        text_zlib BLOB NOT NULL,
        PRIMARY KEY (document_key, piece)
    ) STRICT
    """,
    """
    CREATE TABLE chunks (
        chunk_key INTEGER PRIMARY KEY,
        char_start INTEGER NOT NULL,
        char_end INTEGER NOT NULL,
        page INTEGER,
        line_start INTEGER,
        line_end INTEGER,
        headings TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT
    """,
    # AUTOINCREMENT never reuses a key, so vectors of a deleted model can't be taken for those of a later model.
    """
    CREATE TABLE models (
        model_key INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        vector_bytes INTEGER NOT NULL
    ) STRICT
    """,
    # After a change of the model, vectors of the earlier model stay here until the document is embedded again.
    """
    CREATE TABLE vectors (
        chunk_key INTEGER PRIMARY KEY,
        model_key INTEGER NOT NULL,
        vector BLOB NOT NULL
    ) STRICT
    """,
    # One bit for each component of a vector: its sign. This table is separate, because searches read all of the bits.
    """
    CREATE TABLE signs (
        chunk_key INTEGER PRIMARY KEY,
        model_key INTEGER NOT NULL,
        signs BLOB NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE memberships (
        document_key INTEGER NOT NULL,
        bucket_id TEXT NOT NULL,
        chunks INTEGER NOT NULL,
        PRIMARY KEY (document_key, bucket_id)
    ) STRICT, WITHOUT ROWID
    """,
    # The index contains `chunks` too, so that a bucket's chunks can be counted without reading the table.
    "CREATE INDEX memberships_by_bucket ON memberships (bucket_id, chunks)",
    # `revision` changes with the documents, `vector_revision` only with the vectors. `last_key` is the highest number
    # that a document or its postings ever had. `removed` counts the chunks that were removed since the postings were
    # rebuilt, the first of them at `removed_at`, a Julian date. `postings` and `building` are the numbers of folders;
    # 0 is none.
    """
    CREATE TABLE totals (
        revision INTEGER NOT NULL,
        vector_revision INTEGER NOT NULL,
        chunks INTEGER NOT NULL,
        removed INTEGER NOT NULL,
        removed_at REAL,
        last_key INTEGER NOT NULL DEFAULT 0,
        postings INTEGER NOT NULL DEFAULT 0,
        building INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """,
    "INSERT INTO totals (revision, vector_revision, chunks, removed) VALUES (0, 0, 0, 0)",
    "CREATE TABLE removed_postings (posted_as INTEGER PRIMARY KEY) STRICT",
)

#: The statements that make an index of version 3, whose postings were in tables of FTS5, one of this version. The
#: postings are then made from the rows.
FROM_VERSION_3 = (
    "DROP VIEW indexed_chunks",
    "DROP TABLE chunk_index",
    "ALTER TABLE chunks DROP COLUMN unspaced",
    "ALTER TABLE documents DROP COLUMN title_unspaced",
    "ALTER TABLE documents ADD COLUMN posted_as INTEGER",
    "ALTER TABLE documents ADD COLUMN names TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE documents ADD COLUMN language TEXT",
    "UPDATE documents SET posted_as = document_key",
    "CREATE UNIQUE INDEX posted_documents ON documents (posted_as)",
    "ALTER TABLE totals ADD COLUMN removed_at REAL",
    "ALTER TABLE totals ADD COLUMN last_key INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE totals ADD COLUMN postings INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE totals ADD COLUMN building INTEGER NOT NULL DEFAULT 0",
    "UPDATE totals SET removed = 0, last_key = (SELECT coalesce(max(document_key), 0) FROM documents)",
    "CREATE TABLE removed_postings (posted_as INTEGER PRIMARY KEY) STRICT",
)

#: The statement that makes an index of version 4, whose postings lack other spellings of numbers and dates, one of this
#: version. Searches use the old postings until new ones are made from the rows.
FROM_VERSION_4 = ("UPDATE totals SET building = max(postings, building) + 1 WHERE max(postings, building) > 0",)

#: The statements that make a file of these versions one of this version; an empty file has version 0.
_STEPS = {0: STATEMENTS, 3: FROM_VERSION_3, 4: FROM_VERSION_4}
#: The versions of files with rows that this release uses.
UPGRADED = {*_STEPS, VERSION} - {0}


class WrongVersion(Exception):
    """The index file has the schema of another release."""


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables in a new file. Raises WrongVersion if the file has the schema of another release."""
    # Deleted texts are overwritten where they are deleted (see `overwriting`).
    connection.execute("PRAGMA secure_delete = FAST")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
        return
    if version not in _STEPS:
        raise WrongVersion(f"it has version {version}, this program makes version {VERSION}")
    connection.execute("BEGIN IMMEDIATE")
    for statement in _STEPS[version]:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether the file has no tables yet."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(version == 0 and tables == 0)


@contextmanager
def overwriting(connection: sqlite3.Connection) -> Iterator[None]:
    """Within the block, overwrite deleted data with zeros, so that it can't be recovered."""
    connection.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        connection.execute("PRAGMA secure_delete = FAST")


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of chunk keys, both ends inclusive."""

    first: int
    last: int

    @classmethod
    def of_document(cls, document_key: int) -> "KeyRange":
        """Return all keys that chunks of this document can have."""
        first = document_key << ORDINAL_BITS
        return cls(first, first | MAX_ORDINAL)

    @classmethod
    def of_chunks(cls, document_key: int, ordinal: int, count: int) -> "KeyRange":
        """Return the keys of `count` chunks of this document, from `ordinal` on."""
        first = document_key << ORDINAL_BITS | ordinal
        return cls(first, first + count - 1)

    def parameters(self) -> dict[str, int]:
        return {"first": self.first, "last": self.last}


@contextmanager
def translated(team_id: str) -> Iterator[None]:
    """Within the block, raise exceptions of the team's index file as ProviderError."""
    try:
        yield
    except StorageError as error:
        if isinstance(error.__cause__, sqlite3.Error):
            raise from_sqlite(team_id, error.__cause__) from error
        if isinstance(error, ShuttingDown):
            message = f"The search index of {team_id} was closed meanwhile; try again."
            raise ProviderFailed(message, retryable=True) from error
        message = f"The search index of {team_id} can't be written: {error.message}"
        raise ProviderFailed(message, retryable=True) from error
    except sqlite3.Error as error:
        raise from_sqlite(team_id, error) from error
    except (zlib.error, UnicodeDecodeError) as error:
        raise IndexDamaged(team_id, f"damaged: a text can't be read: {error}") from error
    except WrongVersion as error:
        raise IndexDamaged(team_id, str(error)) from error
    except ImportError as error:
        raise ProviderFailed(f"Vectors need the extra `semantic` ({error}): install it.", retryable=False) from error
    except OSError as error:
        raise ProviderFailed(f"The search index of {team_id}: {error}.", retryable=True) from error


def from_sqlite(team_id: str, error: sqlite3.Error) -> ProviderError:
    """Convert an SQLite error: to SearchTimeout, IndexDamaged or a retryable ProviderFailed."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_INTERRUPT":
        return SearchTimeout()
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return IndexDamaged(team_id, f"damaged: {error}")
    return ProviderFailed(f"The search index of {team_id} failed: {error}.", retryable=True)
