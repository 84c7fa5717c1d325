"""The embedded provider: the contract, and what its files promise besides."""

import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import tantivy

from svc_daemon.core.search.ranking import BEST, POOL
from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.provider.contract import Hit, IndexDocument, SearchProvider
from svc_daemon.provider.embedded import document_rows
from svc_daemon.provider.embedded.checks import IndexInspector
from svc_daemon.provider.embedded.files import IndexFiles
from svc_daemon.provider.embedded.packing import PIECE_CHARACTERS, SLICE_CHUNKS, pack
from svc_daemon.provider.embedded.provider import LIST_PAGE, EmbeddedProvider
from svc_daemon.provider.embedded.schema import MAX_ORDINAL, VERSION, prepare
from svc_daemon.provider.errors import IndexDamaged, ProviderError, ProviderFailed
from tests.acceptance.installations import wait_until
from tests.provider.contract_suite import ProviderContract
from tests.provider.samples import TEAM, found, make_document, put, put_each, search

#: Tables of which a deleted document must leave no row.
TABLES = ("documents", "texts", "chunks", "memberships", "vectors", "signs")
#: Share of the documents that is in each bucket.
BUCKET_SHARES = {"bkt_10": 0.1, "bkt_20": 0.2, "bkt_50": 0.5, "bkt_80": 0.8}
#: Half of what the log may have; the documents of the test are larger.
LOG_BOUND_BYTES = 32 * 1024 * 1024


class TestEmbedded(ProviderContract):
    def open(self, folder: Path) -> SearchProvider:
        return EmbeddedProvider(folder)


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / f"{TEAM}.db"


@pytest.fixture
def outside(provider: EmbeddedProvider, file: Path) -> Iterator[sqlite3.Connection]:
    """A connection of our own to the team's file, which holds one document."""
    put(provider, "src_0", "nothing of note", buckets=["bkt_0"])
    connection = sqlite3.connect(file, isolation_level=None)
    yield connection
    connection.close()


def count_rows(connection: sqlite3.Connection) -> dict[str, int]:
    return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


def data_version(connection: sqlite3.Connection) -> int:
    """Changes with every commit of another connection."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def check_index(file: Path) -> None:
    """Fails where the postings, the counts and the rows that they were made of differ. The provider must be closed."""
    assert IndexInspector(file.parent).check_index(TEAM, read_data=True) == []


def posted(folder: Path) -> set[str]:
    """All words in the postings of the team, also those of removed chunks."""
    (postings,) = folder.glob(f"{TEAM}.postings-*")
    searcher = tantivy.Index.open(str(postings)).searcher()
    return {term for field in ("words", "forms", "name") for term, _ in searcher.terms_with_prefix(field, "")}


def make_large(source_id: str, *, megabytes: int = 2) -> IndexDocument:
    """More chunks and more text than one transaction takes."""
    count = 2 * SLICE_CHUNKS + 10
    filler = "lorem ipsum dolor sit amet "
    filler *= megabytes * PIECE_CHARACTERS // count // len(filler)
    texts = [f"fox {number} {filler}" for number in range(count)]
    return make_document(source_id, *texts, title="large", buckets=["bkt_1"])


def leave_half_a_document(file: Path, source_id: str) -> None:
    """Write what a put would have written when it was killed in its middle."""
    document = pack(make_document(source_id, "fox", "fox", "fox", buckets=["bkt_1"]))
    file.parent.mkdir(exist_ok=True)
    database = SqliteDatabase(file, prepare=prepare)
    key = database.write(lambda connection: document_rows.create(connection, document, 1000, is_hidden=True))
    database.write(lambda connection: document_rows.add_pieces(connection, [(key, 0, document.pieces[0])]))
    database.write(lambda connection: document_rows.add_chunks(connection, key, 0, document.chunk_rows[:2]))
    database.close()


def bm25_of(hits: Iterable[Hit]) -> dict[str, float]:
    return {hit.chunk_id: hit.keyword.bm25 for hit in hits if hit.keyword}


def log_bytes(file: Path) -> int:
    return file.with_name(file.name + "-wal").stat().st_size


# Writes


def test_buckets_and_titles_that_are_so_already_are_not_written(
    provider: EmbeddedProvider, outside: sqlite3.Connection
) -> None:
    put(provider, "src_1", "fox", title="vulpes", buckets=["bkt_1", "bkt_2"])
    before = data_version(outside)
    provider.set_buckets(TEAM, "src_1", 1, ["bkt_2", "bkt_1", "bkt_2"])
    provider.set_title(TEAM, "src_1", "vulpes")
    provider.delete_document(TEAM, "src_unknown")
    assert data_version(outside) == before
    provider.set_buckets(TEAM, "src_1", 1, ["bkt_2"])
    assert data_version(outside) != before


def test_changes_leave_rows_and_postings_in_step(
    provider: EmbeddedProvider, file: Path, outside: sqlite3.Connection
) -> None:
    before = count_rows(outside)
    put(provider, "src_1", "fox", "dog", headings=("A", "B"), buckets=["bkt_1", "bkt_2"])
    put(provider, "src_1", "cat", generation=2, buckets=["bkt_1"])
    provider.set_buckets(TEAM, "src_1", 2, ["bkt_3", "bkt_4"])
    provider.set_title(TEAM, "src_1", "felis", ["pets"])
    assert found(provider, "pets") == found(provider, "felis") == ["src_1"]
    provider.delete_document(TEAM, "src_1")
    assert count_rows(outside) == before
    provider.delete_document(TEAM, "src_0")
    assert set(count_rows(outside).values()) == {0}
    provider.purge(TEAM)
    assert outside.execute("SELECT chunks, removed FROM totals").fetchall() == [(0, 0)]
    provider.close()
    check_index(file)


def test_a_deleted_text_can_not_be_read_in_the_file_nor_after_a_purge_its_words(
    provider: EmbeddedProvider, file: Path, outside: sqlite3.Connection
) -> None:
    secret, log = "correct horse battery staple ", file.with_name(f"{file.name}-wal")
    put(provider, "src_0", "kept")
    put(provider, "src_1", secret * 20, title="x", headings=("y",))
    provider.delete_document(TEAM, "src_1")
    outside.execute("PRAGMA wal_checkpoint").fetchall()
    assert secret.encode() not in file.read_bytes()
    assert {"horse", "batteri"} & posted(file.parent)
    assert provider.purge(TEAM)
    wait_until(lambda: log.stat().st_size == 0, "the log is empty")
    assert not [word for word in secret.split() if word[:4].encode() in file.read_bytes()]
    assert not [term for term in posted(file.parent) if term.startswith(("horse", "batter", "staple", "correct"))]


def test_a_large_index_is_made_anew_once_a_tenth_was_removed_or_something_a_day_ago(
    provider: EmbeddedProvider, outside: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_rows, "RENEW_MOST", 0)
    for number in range(1, 40):
        put(provider, f"src_{number}", "fox", title=f"number{number}")
    provider.delete_document(TEAM, "src_1")
    assert not provider.purge(TEAM)
    outside.execute("UPDATE totals SET removed_at = removed_at - 1.01")
    assert provider.purge(TEAM)
    assert not provider.purge(TEAM)
    for number in range(2, 7):
        provider.delete_document(TEAM, f"src_{number}")
    assert provider.purge(TEAM)
    assert len(found(provider, "fox", limit=50)) == 33


def test_a_put_that_fails_in_the_middle_leaves_whole_documents_and_can_be_repeated(
    provider: EmbeddedProvider, file: Path, outside: sqlite3.Connection
) -> None:
    wave = [make_document(f"src_{number}", "fox " * 2000, "dog", buckets=["bkt_1"]) for number in range(1, 200)]
    # Far enough from the first to be in another transaction.
    outside.execute(
        """
        CREATE TRIGGER refuse AFTER INSERT ON texts WHEN NEW.document_key > 150
        BEGIN SELECT raise(ABORT, 'refused'); END
        """
    )
    with pytest.raises(ProviderFailed, match="refused"):
        provider.put_documents(TEAM, wave)
    stored = [listed.source_id for listed in provider.list_documents(TEAM)]
    assert 0 < len(stored) < len(wave)
    assert {*found(provider, "fox", limit=500), "src_0"} == set(stored)
    outside.execute("DROP TRIGGER refuse")
    provider.put_documents(TEAM, wave)
    assert len(found(provider, "dog", "bkt_1", limit=500)) == len(wave)
    assert count_rows(outside)["documents"] == len(wave) + 1
    too_long = replace(wave[0], source_id="src_long", chunks=wave[0].chunks[:1] * (MAX_ORDINAL + 1))
    with pytest.raises(ProviderFailed, match="src_long has"):
        provider.put_documents(TEAM, [make_document("src_new", "owl"), too_long])
    assert found(provider, "owl") == []
    provider.close()
    check_index(file)


def test_half_a_surrogate_pair_becomes_a_question_mark(provider: EmbeddedProvider) -> None:
    put(provider, "src_1", "a\ud800 fox", title="t\ud800", headings=("h\ud800",))
    provider.set_title(TEAM, "src_1", "new\ud800")
    stored = provider.get_text(TEAM, "src_1")
    assert stored
    assert (stored.title, stored.text, stored.chunks[0].chunk.headings) == ("new?", "a? fox", ("h?",))


def test_every_document_is_listed_past_one_page(provider: EmbeddedProvider) -> None:
    names = [f"src_{number:04}" for number in range(LIST_PAGE + 1)]
    provider.put_documents(TEAM, [make_document(name, "fox") for name in names])
    assert [listed.source_id for listed in provider.list_documents(TEAM)] == names


# Large documents


def test_a_large_document_goes_through_every_change(
    provider: EmbeddedProvider, file: Path, outside: sqlite3.Connection
) -> None:
    before = count_rows(outside)
    document = make_large("src_1")
    provider.put_documents(TEAM, [document])
    provider.set_buckets(TEAM, "src_1", 1, ["bkt_2"])
    provider.set_title(TEAM, "src_1", "vulpes")
    stored = provider.get_text(TEAM, "src_1")
    assert stored is not None
    assert (stored.text, tuple(stored.chunk for stored in stored.chunks)) == (document.text, document.chunks)
    assert len(found(provider, "vulpes", "bkt_2", limit=5000)) == len(document.chunks)
    put(provider, "src_1", "owl", generation=2)
    assert count_rows(outside)["chunks"] == before["chunks"] + 1
    provider.put_documents(TEAM, [replace(document, generation=3)])
    provider.delete_document(TEAM, "src_1")
    assert count_rows(outside) == before
    provider.close()
    check_index(file)


def test_the_log_stays_small_under_large_documents(provider: EmbeddedProvider, file: Path) -> None:
    provider.put_documents(TEAM, [make_large("src_1", megabytes=20)])
    after_put = log_bytes(file)
    provider.delete_document(TEAM, "src_1")
    assert 0 < max(after_put, log_bytes(file)) < LOG_BOUND_BYTES


def test_what_a_put_is_writing_or_a_killed_one_left_is_never_seen_and_goes_at_the_next_start(
    folder: Path, file: Path
) -> None:
    provider = EmbeddedProvider(folder)
    put(provider, "src_0", "fox", buckets=["bkt_0"])
    leave_half_a_document(file, "src_1")
    assert found(provider, "fox") == found(provider, "fox", "bkt_0", "bkt_1") == ["src_0"]
    assert found(provider, "fox", "bkt_1") == found(provider, "fox", source_ids=["src_1"]) == []
    assert [listed.source_id for listed in provider.list_documents(TEAM)] == ["src_0"]
    provider.delete_document(TEAM, "src_0")
    provider.close()
    provider = EmbeddedProvider(folder)
    assert provider.get_document(TEAM, "src_1") is None
    put(provider, "src_1", "fox", buckets=["bkt_1"])
    assert found(provider, "fox", "bkt_1") == ["src_1"]
    provider.close()
    with closing(sqlite3.connect(file)) as connection:
        assert count_rows(connection)["chunks"] == 1
    check_index(file)


# Searching


def test_every_way_to_keep_within_buckets_finds_the_same(provider: EmbeddedProvider) -> None:
    chance = random.Random(3)
    words = ["fox", "dog", "cat", "cow", "hen", "pig"]
    documents = []
    for number in range(60):
        texts = [" ".join(chance.choices(words, k=6)) for _ in range(chance.randint(1, 4))]
        buckets = ["bkt_all", *(name for name, share in BUCKET_SHARES.items() if chance.random() < share)]
        documents.append(make_document(f"src_{number}", *texts, buckets=buckets))
    provider.put_documents(TEAM, documents)
    whole = search(provider, "fox hen", limit=500).hits
    for names in [[name] for name in BUCKET_SHARES] + [["bkt_all"], ["bkt_10", "bkt_80"], ["bkt_10", "bkt_20"]]:
        expected = bm25_of(hit for hit in whole if set(names) & set(hit.bucket_ids))
        assert bm25_of(search(provider, "fox hen", bucket_ids=names, limit=500).hits) == expected, names


def test_what_the_best_passages_share_moves_others_up(provider: EmbeddedProvider) -> None:
    """Of two that BM25 can't tell apart, the one on the subject comes before the one that was put first."""
    best = [f"src_best_{number}" for number in range(BEST)]
    put_each(provider, **dict.fromkeys(best, "mooring mooring mooring, rope and bollard"))
    put_each(provider, src_off="a mooring of wood, cheese and paper", src_on="a mooring of rope, bollard and anchor")
    more = {f"src_{number:02}": f"mooring number{number} and {'filler ' * 20}" for number in range(POOL - BEST - 2)}
    put_each(provider, **more)
    hits = search(provider, "mooring", limit=POOL).hits
    assert {hit.source_id for hit in hits[:5]} == {*best}
    assert [hit.source_id for hit in hits[5:7]] == ["src_on", "src_off"]
    feedback = {hit.source_id: hit.keyword.feedback or 0.0 for hit in hits if hit.keyword}
    assert feedback["src_off"] < 0.1 < feedback["src_on"] <= feedback["src_best_0"] == 1.0


def test_few_passages_keep_the_order_of_bm25(provider: EmbeddedProvider) -> None:
    put_each(provider, **{f"src_{number:02}": "mooring " + "filler " * number for number in range(POOL - 1)})
    hits = search(provider, "mooring", limit=POOL).hits
    assert [hit.source_id for hit in hits] == [f"src_{number:02}" for number in range(POOL - 1)]
    assert {hit.keyword.feedback for hit in hits if hit.keyword} == {None}


def test_pages_join_where_the_order_was_changed(provider: EmbeddedProvider) -> None:
    chance = random.Random(4)
    words = ["rope", "bollard", "wood", "cheese", "anchor"]
    texts = {f"src_{number}": "mooring " + " ".join(chance.choices(words, k=5)) for number in range(2 * POOL)}
    put_each(provider, **texts)
    whole = search(provider, "mooring wood", limit=3 * POOL)
    pages = [search(provider, "mooring wood", limit=15, offset=offset) for offset in range(0, 2 * POOL, 15)]
    assert [hit for page in pages for hit in page.hits] == list(whole.hits)
    assert len(whole.hits) == 2 * POOL


# Files


def test_a_team_id_that_is_no_file_name_is_refused(provider: EmbeddedProvider, folder: Path) -> None:
    calls: list[Callable[[str], object]] = [
        lambda team_id: put(provider, "src_1", "fox", team_id=team_id),
        lambda team_id: provider.get_document(team_id, "src_1"),
        lambda team_id: search(provider, "fox", team_id=team_id),
        provider.delete_team,
    ]
    for call, team_id in product(calls, ["", "..", "a/b", "../team", "a.db", "team\x00", "t" * 200, "team one"]):
        with pytest.raises(ProviderFailed, match="can't be the name"):
            pytest.fail(f"{team_id!r} is taken: {call(team_id)}")
    assert not folder.exists() or list(folder.iterdir()) == []


def test_neither_reading_nor_a_deleted_team_leaves_a_file(provider: EmbeddedProvider, folder: Path) -> None:
    search(provider, "fox")
    provider.get_document(TEAM, "src_1")
    list(provider.list_documents(TEAM))
    assert not folder.exists()
    put(provider, "src_1", "fox")
    provider.delete_team(TEAM)
    assert list(folder.iterdir()) == []


def test_a_file_that_is_no_index_of_this_version_fails_and_names_the_way_out(folder: Path, file: Path) -> None:
    folder.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    for words in (f"version {VERSION + 1}.*team rebuild", f"stored files.*svc-daemon team rebuild {TEAM}"):
        provider = EmbeddedProvider(folder)
        with pytest.raises(IndexDamaged, match=words):
            search(provider, "fox")
        provider.close()
        file.write_bytes(b"this is not a database" * 500)


def test_damage_is_reported_once_with_the_way_out_and_again_when_it_comes_back(folder: Path, file: Path) -> None:
    first = EmbeddedProvider(folder)
    for number in range(30):
        put(first, f"src_{number}", *["fox and dog"] * 20, buckets=["bkt_1"])
    first.close()
    whole = file.read_bytes()
    file.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    reported: list[str] = []
    provider = EmbeddedProvider(folder, on_damaged=reported.append)
    for _ in range(2):
        with pytest.raises(IndexDamaged, match=r"damaged.*rebuilt from the stored files"):
            search(provider, "fox")
    put(provider, "src_1", "fox", team_id="team_two")
    assert reported == [TEAM]
    provider.delete_team(TEAM)
    file.write_bytes(b"this is not a database" * 500)
    with pytest.raises(IndexDamaged):
        put(provider, "src_1", "fox", buckets=["bkt_1"])
    provider.delete_team(TEAM)
    put(provider, "src_1", "fox", buckets=["bkt_1"])
    assert (found(provider, "fox"), reported) == (["src_1"], [TEAM, TEAM])
    provider.close()


def test_damage_that_was_met_in_a_file_that_is_gone_is_not_reported(folder: Path) -> None:
    reported: list[str] = []
    files = IndexFiles(folder, on_broken=lambda _: None, on_damaged=reported.append)
    with pytest.raises(IndexDamaged), files.translated(TEAM):
        files.delete(TEAM)
        raise IndexDamaged(TEAM, "damaged")
    assert reported == []
    with pytest.raises(IndexDamaged), files.translated(TEAM):
        raise IndexDamaged(TEAM, "damaged")
    assert reported == [TEAM]


def test_after_close_nothing_is_opened_again(folder: Path) -> None:
    provider = EmbeddedProvider(folder)
    put(provider, "src_1", "fox")
    provider.close()
    provider.close()
    with pytest.raises(ProviderError, match="stopping"):
        search(provider, "fox")
