"""What the file system reports, and what it means for the files below the root."""

from svc_cli.sync.watch.file_events import EVERYTHING, Event, Hint, Kind, hints_of

ROOT = "/users/ann/docs"


def hints(verb: str, path: str, target: str = "", *, is_folder: bool = False, fresh: str = "") -> list[Hint]:
    event = Event(verb, is_folder, f"{ROOT}/{path}", f"{ROOT}/{target}" if target else "")
    return list(hints_of(event, ROOT, lambda each: each == fresh))


W, C, G, M = Kind.WRITTEN, Kind.CLOSED, Kind.GONE, Kind.MOVED


def test_what_changes_a_file_is_a_hint_and_reading_it_is_none() -> None:
    for verb, kind in (("created", W), ("modified", W), ("closed", C), ("deleted", G)):
        assert hints(verb, "a/b.md") == [Hint("a/b.md", kind)]
    for verb in ("opened", "closed_no_write", "attrib"):
        assert hints(verb, "a.md") == []
    assert hints("created", "a", is_folder=True) == [Hint("a", W)]
    assert hints("modified", "a", is_folder=True) == [], "a folder changes with each file in it"


def test_a_fresh_or_hidden_file_that_takes_the_place_of_another_is_its_new_content() -> None:
    assert hints("moved", "a.md.tmp", "a.md", fresh="a.md.tmp") == [Hint("a.md.tmp", G), Hint("a.md", C)]
    assert hints("moved", ".a.md.swp", "a.md") == [Hint("a.md", C)]


def test_what_had_been_at_rest_is_looked_at_together_with_where_it_was() -> None:
    for is_folder in (False, True):
        assert hints("moved", "a", "b", is_folder=is_folder) == [Hint("a", G), Hint("b", M)]


def test_nothing_hidden_counts_and_a_file_that_becomes_hidden_is_gone() -> None:
    assert hints("moved", "a.md", ".trash/a.md") == [Hint("a.md", G)]
    for path in (".git/index", "a/.cache/b", ".hidden.md", ".git/.gitignore"):
        assert hints("closed", path) == []


def test_other_rules_concern_the_whole_folder() -> None:
    assert [*hints("closed", "a/.gitignore"), *hints("closed", ".svcignore")] == [Hint("a", W), Hint(EVERYTHING, W)]


def test_the_root_and_what_lies_beside_it_are_no_paths_below_it() -> None:
    for path in (ROOT, f"{ROOT}-old/a.md"):
        assert list(hints_of(Event("deleted", False, path), ROOT, lambda _: False)) == []
