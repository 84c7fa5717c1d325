"""The schema of an index file, and the errors of its engine.

- The key of a chunk is `document_key << 20 | ordinal`, so the keys of a document's chunks are contiguous.
- `chunk_index` has only the postings (which words are in which chunks). Texts are read from the view `indexed_chunks`.
- The column `buckets` has a word for each bucket of a chunk, so that the chunks of a small bucket are found quickly.
- `vectors` has full vectors. `signs` has one bit per component of each vector. Searches scan `signs` first.
- `embedded_at` is the `vector_revision` of the index at which a document's vectors last changed.
- A document is hidden while it is written or removed. Searches and counts ignore hidden documents.
"""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from svc_daemon.errors import ShuttingDown, StorageError
from svc_daemon.provider.errors import IndexDamaged, ProviderError, ProviderFailed, SearchTimeout

#: Schema version. There are no migrations: an index of another version is rebuilt.
VERSION = 3

#: How many low bits of a chunk's key contain its ordinal, as in the view `indexed_chunks`.
ORDINAL_BITS = 20
MAX_ORDINAL = (1 << ORDINAL_BITS) - 1

STATEMENTS = (
    """
    CREATE TABLE documents (
        document_key INTEGER PRIMARY KEY,
        source_id TEXT NOT NULL,
        generation INTEGER NOT NULL,
        title TEXT NOT NULL,
        title_unspaced TEXT NOT NULL,
        chunks INTEGER NOT NULL,
        pieces INTEGER NOT NULL,
        hidden INTEGER NOT NULL,
        model_key INTEGER,
        embedded INTEGER NOT NULL DEFAULT 0,
        embedded_at INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """,
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
        text TEXT NOT NULL,
        unspaced TEXT NOT NULL
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
    # `revision` changes with the documents, `vector_revision` only with the vectors.
    """
    CREATE TABLE totals (
        revision INTEGER NOT NULL,
        vector_revision INTEGER NOT NULL,
        chunks INTEGER NOT NULL,
        removed INTEGER NOT NULL
    ) STRICT
    """,
    "INSERT INTO totals (revision, vector_revision, chunks, removed) VALUES (0, 0, 0, 0)",
    # FTS5 can't read a view with `json_each`, so headings are plain text. A bucket's id is indexed in hexadecimal with
    # a digit at the end, as one word that the stemmer doesn't change.
    """
    CREATE VIEW indexed_chunks AS
    SELECT chunk_key, title, headings, text, title_unspaced || ' ' || unspaced AS unspaced,
        (SELECT group_concat(hex(bucket_id) || '0', ' ') FROM memberships AS m
            WHERE m.document_key = d.document_key) AS buckets
    FROM chunks AS c JOIN documents AS d ON d.document_key = c.chunk_key >> 20
    """,
    """
    CREATE VIRTUAL TABLE chunk_index USING fts5(
        title, headings, text, unspaced, buckets,
        content = 'indexed_chunks', content_rowid = 'chunk_key', tokenize = 'porter unicode61'
    )
    """,
)


class WrongVersion(Exception):
    """The index file has the schema of another release."""


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables in a new file. Raises WrongVersion if the file has the schema of another release."""
    # The setting ON would also write zeros over the pages that FTS5 frees, tens of megabytes when it merges segments.
    # So only deleted texts are overwritten (see `overwriting`).
    connection.execute("PRAGMA secure_delete = FAST")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        connection.execute("BEGIN IMMEDIATE")
        for statement in STATEMENTS:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    elif version != VERSION:
        raise WrongVersion(f"it has version {version}, this program makes version {VERSION}")


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


def bucket_word(bucket_id: str) -> str:
    """Return the word by which a bucket is indexed, as in the view `indexed_chunks`."""
    return bucket_id.encode().hex() + "0"


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
