"""The postings of the embedded provider: made from the rows whenever they are lost, and checked before they answer."""

import sqlite3
import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from svc_daemon.provider.embedded import packing
from svc_daemon.provider.embedded import postings as postings_module
from svc_daemon.provider.embedded.checks import IndexInspector
from svc_daemon.provider.embedded.postings import Posting, Postings, PostingsDamaged, check_files, read_meta
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from svc_daemon.provider.errors import IndexBuilding, ProviderFailed
from tests.acceptance.installations import wait_until
from tests.provider.samples import TEAM, found, make_document, put, put_each, search, settled


def folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(f"{TEAM}.postings-*"))


def the_folder(folder: Path) -> Path:
    (path,) = folder.glob(f"{TEAM}.postings-*")
    return path


# Rebuilt


def test_while_postings_are_made_searches_are_refused_and_writes_are_not(
    folder: Path, reopened: Callable[[], EmbeddedProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reopened()
    put_each(first, **{f"src_{number:02}": "fox" for number in range(30)})
    first.close()
    monkeypatch.setattr(packing, "COMMIT_CHUNKS", 10)
    may_go_on, commit = threading.Event(), Postings.commit

    def wait_and_commit(postings: Postings) -> None:
        assert may_go_on.wait(60)
        commit(postings)

    monkeypatch.setattr(Postings, "commit", wait_and_commit)
    for path in the_folder(folder).glob("*.idx"):
        path.unlink()
    provider = reopened()
    with pytest.raises(IndexBuilding, match="0 of"):
        search(provider, "fox")
    put(provider, "src_30", "fox")
    put(provider, "src_00", "owl", generation=2)
    provider.set_title(TEAM, "src_01", "vulpes")
    provider.delete_document(TEAM, "src_02")
    assert provider.get_document(TEAM, "src_30") is not None
    may_go_on.set()
    settled(provider)
    assert sorted(found(provider, "fox", limit=50)) == [f"src_{n:02}" for n in range(1, 31) if n != 2]
    assert (found(provider, "owl"), found(provider, "vulpes")) == (["src_00"], ["src_01"])
    wait_until(lambda: len(folders(folder)) == 1, "the former folder is removed")


def test_a_build_that_was_cut_short_goes_on(
    folder: Path, reopened: Callable[[], EmbeddedProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reopened()
    put_each(first, **{f"src_{number:02}": "fox" for number in range(30)})
    first.close()
    monkeypatch.setattr(packing, "COMMIT_CHUNKS", 10)
    (the_folder(folder) / "meta.json").unlink()
    commits, commit, add = [0], Postings.commit, Postings.add
    added: list[Posting] = []

    def commit_once(postings: Postings) -> None:
        commits[0] += 1
        if commits[0] > 1:
            raise OSError("the disk is full")
        commit(postings)

    monkeypatch.setattr(Postings, "commit", commit_once)
    stopped = reopened()
    with pytest.raises(IndexBuilding):
        search(stopped, "fox")
    wait_until(lambda: commits[0] > 1, "the second commit")
    stopped.close()
    monkeypatch.setattr(Postings, "commit", commit)

    def note_and_add(postings: Postings, more: Iterable[Posting]) -> None:
        added.extend(more := [*more])
        add(postings, more)

    monkeypatch.setattr(Postings, "add", note_and_add)
    provider = settled(reopened())
    assert (len(found(provider, "fox", limit=50)), len(added)) == (30, 20)
    wait_until(lambda: len(folders(folder)) == 1, "the former folder is removed")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no folder": lambda path: path.rename(path.with_name("gone")),
    "no list of files": lambda path: (path / "meta.json").unlink(),
    "a list that is no JSON": lambda path: (path / "meta.json").write_text("{"),
    "a list of another shape": lambda path: (path / "meta.json").write_text('{"segments": [1]}'),
    "a missing file": lambda path: next(path.glob("*.term")).unlink(),
    "an empty file": lambda path: next(path.glob("*.idx")).write_bytes(b""),
    "a file that is cut short": lambda path: _change(next(path.glob("*.pos")), lambda data: data[:-40]),
    "a flipped bit": lambda path: _change(next(path.glob("*.term")), lambda data: bytes([data[0] ^ 1]) + data[1:]),
    "a folder in place of a file": lambda path: _moved(next(path.glob("*.fast"))).mkdir(),
}


def _moved(path: Path) -> Path:
    path.rename(path.with_name("gone"))
    return path


def _change(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_postings_are_noticed_before_they_answer_and_made_anew(
    folder: Path, reopened: Callable[[], EmbeddedProvider], damage: str
) -> None:
    provider = reopened()
    put_each(provider, src_1="fox", src_2="owl")
    provider.close()
    DAMAGES[damage](the_folder(folder))
    if the_folder_exists := bool(folders(folder)):
        with pytest.raises(PostingsDamaged):
            check_files(the_folder(folder))
    provider = settled(reopened())
    assert (found(provider, "fox"), found(provider, "owl")) == (["src_1"], ["src_2"])
    assert the_folder_exists or damage == "no folder"


def test_postings_of_a_later_state_of_the_rows_are_made_anew(
    folder: Path, reopened: Callable[[], EmbeddedProvider]
) -> None:
    """As after a restore of the file alone: documents to come would get numbers that others have in the postings."""
    provider = reopened()
    put(provider, "src_1", "fox")
    provider.close()
    earlier = (folder / f"{TEAM}.db").read_bytes()
    provider = reopened()
    put_each(provider, src_2="ghost", src_3="ghost")
    provider.close()
    (folder / f"{TEAM}.db").write_bytes(earlier)
    provider = settled(reopened())
    for first in range(2, 600, 20):
        provider.put_documents(TEAM, [make_document(f"src_{first + more}", "owl") for more in range(20)])
    assert (found(provider, "fox"), found(provider, "ghost")) == (["src_1"], [])
    assert len(found(provider, "owl", limit=1000)) == 600


def test_postings_that_lack_a_document_are_made_anew(folder: Path, reopened: Callable[[], EmbeddedProvider]) -> None:
    provider = reopened()
    put_each(provider, src_1="fox", src_2="owl")
    provider.close()
    with closing(sqlite3.connect(folder / f"{TEAM}.db", isolation_level=None)) as connection:
        connection.execute("UPDATE documents SET posted_as = 1000 WHERE source_id = 'src_1'")
    assert found(settled(reopened()), "fox") == ["src_1"]


# What a crash leaves


def test_postings_without_a_document_are_found_by_no_search_and_removed(
    folder: Path, reopened: Callable[[], EmbeddedProvider]
) -> None:
    """As if the process had died after the postings' commit, before that of the row."""
    provider = reopened()
    put(provider, "src_1", "fox", buckets=["bkt_1"])
    provider.close()
    postings = Postings(the_folder(folder))
    postings.add([Posting(77 << 20, "bkt_1", "fox ghost", "", "ghost", "ghost")])
    postings.commit()
    postings.close()
    provider = reopened()
    assert (found(provider, "fox"), found(provider, "ghost"), found(provider, "fox", "bkt_1")) == (
        ["src_1"],
        [],
        ["src_1"],
    )
    assert search(provider, "ghots").suggestions == ()
    provider.delete_document(TEAM, "src_1")
    provider.purge(TEAM)
    provider.close()
    postings = Postings(the_folder(folder))
    assert postings.count_documents() == {}
    postings.close()


def test_files_that_the_list_does_not_name_are_removed_on_opening(
    folder: Path, reopened: Callable[[], EmbeddedProvider]
) -> None:
    provider = reopened()
    put(provider, "src_1", "fox")
    provider.close()
    path = the_folder(folder)
    for name in (".tmpAbCdEf", "0123456789abcdef0123456789abcdef.idx", "notes"):
        (path / name).write_bytes(b"left")
    (folder / f"{TEAM}.postings-99").mkdir()
    provider = reopened()
    assert found(provider, "fox") == ["src_1"]
    assert {each.name for each in path.iterdir()} <= {*read_meta(path), "meta.json", ".managed.json"} | {
        ".tantivy-meta.lock",
        ".tantivy-writer.lock",
    }
    assert folders(folder) == [path.name]


def test_a_write_whose_postings_fail_changes_nothing_and_can_be_repeated(
    provider: EmbeddedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(provider, "src_1", "fox", title="first")
    commit = Postings.commit

    def fail(_: Postings) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(Postings, "commit", fail)
    writes: list[Callable[[], object]] = [
        lambda: put(provider, "src_1", "owl", generation=2),
        lambda: put(provider, "src_2", *["owl"] * 600),
        lambda: provider.set_buckets(TEAM, "src_1", 1, ["bkt_1"]),
        lambda: provider.set_title(TEAM, "src_1", "second"),
    ]
    for write in writes:
        with pytest.raises(ProviderFailed, match="disk is full"):
            write()
        assert (found(provider, "fox"), found(provider, "owl"), found(provider, "second")) == (["src_1"], [], [])
    monkeypatch.setattr(Postings, "commit", commit)
    for write in writes[1:]:
        write()
    assert (found(provider, "fox", "bkt_1"), found(provider, "second")) == (["src_1"], ["src_1"])
    assert found(provider, "owl", limit=1000) == ["src_2"] * 600


def test_a_failed_write_leaves_the_folder_to_the_next_one(
    provider: EmbeddedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while its error is kept, with all that its traceback names."""
    put(provider, "src_1", "fox")

    def fail(_: Path) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(postings_module, "sync_folder", fail)
        with pytest.raises(ProviderFailed, match="disk is gone") as kept:
            put(provider, "src_2", "fox")
    put(provider, "src_2", "fox")
    assert (sorted(found(provider, "fox")), kept.type) == (["src_1", "src_2"], ProviderFailed)


def test_what_was_removed_gives_its_room_back(provider: EmbeddedProvider, folder: Path) -> None:
    def size_bytes() -> int:
        return sum(path.stat().st_size for each in folder.glob("*.postings-*") for path in each.iterdir())

    chance, documents = Random(1), []
    for number in range(1, 31):
        texts = [" ".join(f"word{chance.randrange(10**6)}" for _ in range(120)) for _ in range(12)]
        documents.append(make_document(f"src_{number}", *texts, buckets=["bkt_1"]))
    provider.put_documents(TEAM, documents)
    full = size_bytes()
    for number in range(1, 29):
        provider.delete_document(TEAM, f"src_{number}")
    assert provider.purge(TEAM)
    assert size_bytes() < full / 2
    assert len(search(provider, "lorem").hits) == 0
    provider.close()
    assert IndexInspector(folder).check_index(TEAM, read_data=True) == []


# Words


def test_a_word_that_stands_nowhere_gets_one_that_does_within_what_is_searched(provider: EmbeddedProvider) -> None:
    put(provider, "src_1", "a mooring for boats", buckets=["bkt_1"])
    put(provider, "src_2", "a harbour", buckets=["bkt_2"])
    put(provider, "src_3", "a lighthouse", buckets=["bkt_1"])
    provider.delete_document(TEAM, "src_3")

    def suggested(query: str, *buckets: str) -> list[tuple[str, str]]:
        return [
            (word, instead) for word, instead in search(provider, query, bucket_ids=list(buckets) or None).suggestions
        ]

    assert suggested("moorng boats") == [("moorng", "mooring")]
    assert (suggested("lighth"), suggested("moor"), suggested("moo")) == ([], [], [])
    put(provider, "src_4", "die Betriebskostenvorauszahlung", buckets=["bkt_1"])
    wanted = [("betriebskosten", "betriebskostenvorauszahlung")]
    assert (suggested("Betriebskosten"), suggested("Betriebskosten", "bkt_2")) == (wanted, [])
    # Nothing of other buckets, or of what was deleted, is told.
    assert (suggested("harbuor", "bkt_1"), suggested("harbuor", "bkt_2")) == ([], [("harbuor", "harbour")])
    assert suggested("lighthuose") == []
    assert (suggested("mooring"), suggested("12345"), suggested("zzzzzz")) == ([], [], [])


def test_a_document_that_a_query_names_comes_first_and_in_it_the_passage_that_is_meant(
    provider: EmbeddedProvider,
) -> None:
    for number in range(1, 40):
        title = f"peps/pep-{number:04}.rst"
        others = f"line length, as in PEP {number % 7} and PEP 8, PEP 8, PEP 8 " * 3
        put(provider, f"src_{number}", "Author: somebody", f"about {number}: {others}", title=title)
    put(provider, "src_8", "Author: nobody", "the line length is 79", generation=2, title="peps/pep-0008.rst")
    for query in ("PEP 8", "what does PEP 8 say about line length", "who is the author of pep 8"):
        assert found(provider, query)[0] == "src_8", query
    (hit, *_) = search(provider, "what does PEP 8 say about line length").hits
    assert (hit.chunk.text, hit.is_named) == ("the line length is 79", True)
    assert not any(hit.is_named for hit in search(provider, "line length").hits)


def test_tags_and_the_title_in_the_text_are_names(provider: EmbeddedProvider) -> None:
    put_each(provider, src_1="fox", src_2="fox")
    provider.set_title(TEAM, "src_1", "a", ["quarterly"])
    assert found(provider, "quarterly") == ["src_1"]
    provider.set_title(TEAM, "src_1", "b", [])
    assert found(provider, "quarterly") == []


def test_a_hit_tells_in_which_parts_its_words_are_and_where_in_the_text(provider: EmbeddedProvider) -> None:
    put(provider, "src_1", "A fox. Foxes, and a dog!", title="fox", buckets=["bkt_1"])
    (hit,) = search(provider, "dog fox unicorn", explain=True).hits
    assert [(match.term, match.parts) for match in hit.matches] == [("dog", ("text",)), ("fox", ("title", "text"))]
    assert [hit.chunk.text[slice(*span)] for span in hit.highlights] == ["fox", "Foxes", "dog"]


def test_a_date_as_a_whole_comes_before_its_parts(provider: EmbeddedProvider) -> None:
    put(provider, "src_1", "July 2024: 26 boats, and 26 more in July 2024")
    put(provider, "src_2", "avant le 26 juillet 2024, " + "quelques mots de plus " * 20)
    for query in ("July 26, 2024", "26 July 2024", "2024-07-26"):
        assert found(provider, query)[0] == "src_2", query


def test_what_is_found_joined_or_apart_or_without_its_zeros_is_shown_and_counted(provider: EmbeddedProvider) -> None:
    put(provider, "src_1", "a Node.js service", title="notes")
    put(provider, "src_2", "the data base", title="RE-2024-01190.txt")
    for query, places in (("nodejs", ["Node.js"]), ("database", ["data base"]), ("RE-2024-1190", [])):
        (hit,) = search(provider, query).hits
        assert (hit.score, [hit.chunk.text[slice(*span)] for span in hit.highlights]) == (1.0, places), query


def test_a_word_without_spaces_around_it_is_listed_with_the_parts_that_have_it(provider: EmbeddedProvider) -> None:
    put(provider, "src_1", "東京都に住む人", "駅の人", title="東京の案内", buckets=["bkt_1"])
    hits = search(provider, "東京 住む", explain=True).hits
    parts = [{match.term: match.parts for match in hit.matches} for hit in hits]
    assert parts == [{"東京": ("title", "text"), "住む": ("text",)}, {"東京": ("title",)}]


# Words side by side


@pytest.mark.parametrize(
    ("query", "text", "other"),
    (
        (
            "new york state",
            "They like New York State, and more.",
            "York is new. A state of the new. York said: new York.",
        ),
        ("war and peace", "It is War and Peace that they read.", "Peace or war, war or peace, war over peace and war."),
        ("quick-start guide", "Read the quick-start guide.", "Start quick. Guide the quick to the start, quick guide."),
        ("to be or not to be", "Say: to be, or not to be.", "Not to or be. To or be not. To be to be, not or not to."),
    ),
)
def test_what_has_the_query_as_it_is_comes_first(provider: EmbeddedProvider, query: str, text: str, other: str) -> None:
    put(provider, "src_run", f"{text} {'More words about other things. ' * 20}")
    put(provider, "src_other", other)
    assert found(provider, query) == ["src_run", "src_other"]


def test_what_a_commit_has_removed_is_not_looked_at_with_each_later_one(
    folder: Path, reopened: Callable[[], EmbeddedProvider]
) -> None:
    provider = reopened()
    put_each(provider, src_1="fox", src_2="owl")
    for number in range(20):
        provider.set_title(TEAM, "src_1", f"t{number}")
        provider.set_title(TEAM, "src_2", f"t{number}")
    assert (found(provider, "t18"), sorted(found(provider, "t19"))) == ([], ["src_1", "src_2"])
    assert found(reopened(), "fox") == ["src_1"]
    with closing(sqlite3.connect(folder / f"{TEAM}.db")) as connection:
        # Those of the last change are removed with the next commit.
        assert connection.execute("SELECT count(*) FROM removed_postings").fetchone()[0] < 10
