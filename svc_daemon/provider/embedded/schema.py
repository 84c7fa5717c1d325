"""What is in an index file.

A document's chunks are numbered `document_key << 20 | ordinal`. So they lie together, their document is known without
a look-up, and a range of keys is a whole document. `chunk_index` holds postings only: its text is `indexed_chunks`,
a view, and both sides of every change of the index read that view, so that what is removed is exactly what was
added. A document's buckets are words of the column `buckets`, one for each, so that a small bucket is found by its
postings.

A vector is stored twice beside its chunk: whole in `vectors`, and in `signs` as one bit for each of its numbers, which
is what a search scans. A document's row names the model and the number of its vectors. Its `embedded_at` is unique
among all changes of vectors in this file, so that a search sees whether the ones it holds in memory are up to date.

A document is written hidden, then shown; it is hidden, then removed. No search sees a hidden one, and `totals` and
the chunks in `memberships` don't count it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: Grows with each change of the tables. An index can be made again, so there are no migrations.
VERSION = 3

#: The low bits of a chunk's key, which hold its ordinal; the view repeats the number.
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
    # The extracted text, cut into pieces so that no transaction has to hold all of a large one.
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
    # A key is never given twice, so that what one model left can't be taken for another's.
    """
    CREATE TABLE models (
        model_key INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        vector_bytes INTEGER NOT NULL
    ) STRICT
    """,
    # Vectors of a model that the document's row no longer names may be here until others replace them.
    """
    CREATE TABLE vectors (
        chunk_key INTEGER PRIMARY KEY,
        model_key INTEGER NOT NULL,
        vector BLOB NOT NULL
    ) STRICT
    """,
    # Apart from the vectors, since reading a column means reading the pages that hold the whole row.
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
    # Sizes of buckets are summed from this index alone.
    "CREATE INDEX memberships_by_bucket ON memberships (bucket_id, chunks)",
    # The revision changes with every change, so that counts can be kept between searches; that of the vectors with
    # each change of vectors alone, which are many while a model works through what was put.
    """
    CREATE TABLE totals (
        revision INTEGER NOT NULL,
        vector_revision INTEGER NOT NULL,
        chunks INTEGER NOT NULL,
        removed INTEGER NOT NULL
    ) STRICT
    """,
    "INSERT INTO totals (revision, vector_revision, chunks, removed) VALUES (0, 0, 0, 0)",
    # FTS5 refuses to read a view that uses a virtual table, and `json_each` is one: hence plain headings.
    # A bucket id in hexadecimal followed by a digit is one word for the tokenizer, and the stemmer leaves it alone.
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
    """The file was made by another release."""


def prepare(connection: sqlite3.Connection) -> None:
    """Make the tables in a new file. Raises WrongVersion where the file has another version's tables."""
    # Some builds of SQLite fill each freed page with zeros, which then goes through the log. A merge of postings may
    # free tens of megabytes at once, of words without order; documents' texts are overwritten where they are removed.
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
    """Whether the file has no tables yet: none was ever put in."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(version == 0 and tables == 0)


@contextmanager
def overwriting(connection: sqlite3.Connection) -> Iterator[None]:
    """What is deleted inside is filled with zeros in the file, so that a removed text can't be read there."""
    connection.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        connection.execute("PRAGMA secure_delete = FAST")


def bucket_word(bucket_id: str) -> str:
    """The word for a bucket in the column `buckets`; the view has the same rule in SQL."""
    return bucket_id.encode().hex() + "0"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys of chunks that lie together; both ends belong to it."""

    first: int
    last: int

    @classmethod
    def of_document(cls, document_key: int) -> "KeyRange":
        """Every key that a chunk of this document can have."""
        first = document_key << ORDINAL_BITS
        return cls(first, first | MAX_ORDINAL)

    @classmethod
    def of_chunks(cls, document_key: int, ordinal: int, count: int) -> "KeyRange":
        """The keys of `count` chunks of this document from `ordinal` on."""
        first = document_key << ORDINAL_BITS | ordinal
        return cls(first, first + count - 1)

    def parameters(self) -> dict[str, int]:
        return {"first": self.first, "last": self.last}
