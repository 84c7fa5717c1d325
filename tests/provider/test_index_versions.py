"""Index files of earlier versions: searched at once, and found by all that this version finds."""

import gzip
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from svc_daemon.core.text import terms
from svc_daemon.provider.embedded.checks import IndexInspector
from svc_daemon.provider.embedded.postings import Postings
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.acceptance.installations import wait_until
from tests.provider.samples import MODEL, TEAM, found, near, put, put_each, search, settled

#: An index of version 3, whose postings are in tables of FTS5.
VERSION_3 = Path(__file__).with_name("index_v3.db.gz")


def test_an_index_of_the_version_before_is_found_by_its_words_again_and_keeps_its_vectors(
    folder: Path, reopened: Callable[[], EmbeddedProvider]
) -> None:
    folder.mkdir()
    (folder / f"{TEAM}.db").write_bytes(gzip.decompress(VERSION_3.read_bytes()))
    assert IndexInspector(folder).check_index(TEAM, read_data=True) == []
    provider = settled(reopened())
    (hit,) = search(provider, "foxes", bucket_ids=["bkt_1"]).hits
    assert (hit.chunk_id, hit.bucket_ids, hit.chunk.page) == ("chk_1_1_0", ("bkt_1", "bkt_2"), 3)
    assert found(provider, "契约", "bkt_2") == ["src_2"]
    assert found(provider, "gone") == []
    assert len(found(provider, "large one", limit=500)) == 300
    assert [each.chunk_id for each in near(provider, "x", 0, 1).hits] == ["chk_1_1_1"]
    assert provider.count_unembedded(TEAM, MODEL, ["bkt_1"]).missing == 0
    put(provider, "src_1", "cat", generation=2)
    assert (found(provider, "fox"), found(reopened(), "cat")) == ([], ["src_1"])


def test_an_index_of_version_4_is_searched_while_its_numbers_and_dates_get_their_other_spellings(
    folder: Path, reopened: Callable[[], EmbeddedProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reopened()
    with monkeypatch.context() as before:
        before.setattr(terms, "spellings_in", lambda text: ())
        put_each(first, src_1="call +49 30 1234567", src_2="of 5 March 2024")
        assert found(first, "0301234567") == []
    first.close()
    with closing(sqlite3.connect(folder / f"{TEAM}.db")) as connection:
        connection.execute("PRAGMA user_version = 4")
    may_go_on, commit = threading.Event(), Postings.commit

    def wait_and_commit(postings: Postings) -> None:
        assert may_go_on.wait(60)
        commit(postings)

    monkeypatch.setattr(Postings, "commit", wait_and_commit)
    provider = reopened()
    assert (found(provider, "call"), found(provider, "0301234567")) == (["src_1"], [])
    may_go_on.set()
    wait_until(lambda: found(provider, "0301234567") == ["src_1"], "the new postings are used")
    assert (found(provider, "5.3.2024"), found(provider, "call")) == (["src_2"], ["src_1"])
    wait_until(lambda: len([*folder.glob("*.postings-*")]) == 1, "the former folder is removed")
    assert IndexInspector(folder).check_index(TEAM, read_data=True) == []
