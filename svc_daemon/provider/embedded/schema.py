"""The schema of an index file.

The key of a chunk is `document_key << 20 | ordinal`. So the keys of a document's chunks are contiguous, and a chunk's
key contains its document's key. `chunk_index` contains only postings: which words occur in which chunks. Their text
comes from the view `indexed_chunks`, both to add and to remove postings, so that exactly what was added is removed.
Each of a document's buckets is a word in the column `buckets`, so that a small bucket can be found by its postings.

A chunk's vector is stored twice: in full in `vectors`, and in `signs` as one bit per component, which searches scan. A
document's row has the model and the number of its vectors. Its `embedded_at` is the vector revision at which its
vectors last changed, unique within the file, so that a search knows whether its cached signs are current.

A document is hidden while it is written, then made visible; it is hidden again before it is removed. Searches ignore
hidden documents, and the numbers of chunks in `totals` and `memberships` don't include them.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: Schema version, stored in the file as `user_version`; incremented with each change. There are no migrations, because
#: an index of another version is rebuilt.
VERSION = 3

#: The number of low bits of a chunk's key that contain its ordinal. The view `indexed_chunks` has the same number.
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
    # The extracted text, split into pieces, so that no transaction has to write a large text as a whole.
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
    # Keys are never reused, so that the vectors of a deleted model can't be taken for vectors of a later one.
    """
    CREATE TABLE models (
        model_key INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        vector_bytes INTEGER NOT NULL
    ) STRICT
    """,
    # Until a document is embedded again, its vectors here may be of an earlier model than its row in `documents` names.
    """
    CREATE TABLE vectors (
        chunk_key INTEGER PRIMARY KEY,
        model_key INTEGER NOT NULL,
        vector BLOB NOT NULL
    ) STRICT
    """,
    # Signs have their own table, so that reading all signs doesn't read the pages with the full vectors.
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
    # An index with all columns that are needed to add up the sizes of buckets.
    "CREATE INDEX memberships_by_bucket ON memberships (bucket_id, chunks)",
    # `revision` changes whenever documents change, so cached counts are valid while it stays the same.
    # `vector_revision` changes only when vectors change, which happens often while a model embeds new documents.
    """
    CREATE TABLE totals (
        revision INTEGER NOT NULL,
        vector_revision INTEGER NOT NULL,
        chunks INTEGER NOT NULL,
        removed INTEGER NOT NULL
    ) STRICT
    """,
    "INSERT INTO totals (revision, vector_revision, chunks, removed) VALUES (0, 0, 0, 0)",
    # FTS5 refuses to read a view that uses a virtual table such as `json_each`, so headings are stored as plain text. A
    # bucket is indexed as its id in hexadecimal and a digit, because the tokenizer treats this as one word and the
    # stemmer doesn't change it.
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
    """Raised if the file has the schema of another release."""


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables in a new file. Raises WrongVersion if the file has the schema of another release."""
    # Some builds of SQLite default to secure_delete = ON, which writes zeros over each freed page, and to the WAL too.
    # A merge of postings may free tens of megabytes; these need no zeros, because they contain only words without their
    # order. The texts of documents are overwritten explicitly when they are removed (`overwriting`).
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
    """Within the block, overwrite what is deleted with zeros, so that it can't be recovered from the file."""
    connection.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        connection.execute("PRAGMA secure_delete = FAST")


def bucket_word(bucket_id: str) -> str:
    """Return the word by which a bucket's chunks are indexed; the view `indexed_chunks` has the same rule in SQL."""
    return bucket_id.encode().hex() + "0"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A contiguous range of chunk keys, both ends inclusive."""

    first: int
    last: int

    @classmethod
    def of_document(cls, document_key: int) -> "KeyRange":
        """Return the range of all keys that chunks of this document can have."""
        first = document_key << ORDINAL_BITS
        return cls(first, first | MAX_ORDINAL)

    @classmethod
    def of_chunks(cls, document_key: int, ordinal: int, count: int) -> "KeyRange":
        """Return the keys of `count` chunks of this document, starting at `ordinal`."""
        first = document_key << ORDINAL_BITS | ordinal
        return cls(first, first + count - 1)

    def parameters(self) -> dict[str, int]:
        return {"first": self.first, "last": self.last}
