"""The order by BM25 is the same, whether every chunk of the query is scored or only those with a rare word."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from svc_daemon.databases.sqlite import open_connection
from svc_daemon.provider.embedded.bm25 import any_of, rank
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from svc_daemon.provider.embedded.scopes import Scope
from tests.provider.samples import TEAM, make_document

CHUNKS = 5000
#: The share of the chunks that have a word, up to five times.
SHARES = {"fog": 0.9, "ice": 0.5, "oak": 0.22, "owl": 0.05, "elk": 0.03, "yew": 0.002}
EVERY = Scope(source_ids=("src_1",))


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    folder: Path = tmp_path_factory.mktemp("bm25")
    provider = EmbeddedProvider(folder)
    chance = Random(8)
    texts = [" ".join(_words(chance)) for _ in range(CHUNKS)]
    provider.put_documents(TEAM, [make_document("src_1", *texts)])
    provider.close()
    connection = open_connection(folder / f"{TEAM}.db")
    yield connection
    connection.close()


def _words(chance: Random) -> list[str]:
    words = [word for word, share in SHARES.items() if chance.random() < share for _ in range(chance.randint(1, 5))]
    return words + ["moss"] * chance.randint(5, 60)


def _having(connection: sqlite3.Connection, query: str) -> dict[str, int]:
    count = "SELECT count(*) FROM chunk_index WHERE chunk_index MATCH ?"
    return {word: connection.execute(count, (any_of([word]),)).fetchone()[0] for word in query.split()}


#: Query, limit, and whether the chunks with a rare word are enough.
QUERIES = [
    *(("fog owl", 50, True), ("owl fog elk", 50, True), ("ice fog elk owl", 100, True)),
    # Too few chunks have the rare word to fill a page.
    ("yew fog", 50, False),
    # They are enough, but the last of them may score less than one with the common word.
    ("owl oak", 240, False),
    *(("fog", 50, False), ("fog ice", 50, False)),
]


def test_scoring_chunks_with_a_rare_word_alone_changes_nothing(connection: sqlite3.Connection) -> None:
    for query, limit, is_enough in QUERIES:
        having = _having(connection, query)
        # Where sources are named, every chunk is scored.
        scored = rank(connection, having, EVERY, CHUNKS, limit)
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        ranked = rank(connection, having, Scope(), CHUNKS, limit)
        connection.set_trace_callback(None)
        assert ranked == scored, query
        every = any_of(sorted(having, key=having.__getitem__))
        assert any(every in statement for statement in statements) is not is_enough, query
