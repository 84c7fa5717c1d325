"""What the file system reports, and what it means for the files below the root."""

import pytest

from svc_cli.sync.watch.hints import EVERYTHING, Event, Hint, Kind, hints_of

ROOT = "/users/ann/docs"


def hints(verb: str, path: str, target: str = "", *, is_folder: bool = False, fresh: str = "") -> list[Hint]:
    event = Event(verb, is_folder, f"{ROOT}/{path}", f"{ROOT}/{target}" if target else "")
    return list(hints_of(event, ROOT, lambda each: each == fresh))


@pytest.mark.parametrize(
    ("verb", "kind"),
    [("created", Kind.WRITTEN), ("modified", Kind.WRITTEN), ("closed", Kind.CLOSED), ("deleted", Kind.GONE)],
)
def test_what_changes_a_file_is_a_hint(verb: str, kind: Kind) -> None:
    assert hints(verb, "a/b.md") == [Hint("a/b.md", kind)]


@pytest.mark.parametrize("verb", ["opened", "closed_no_write", "attrib"])
def test_reading_a_file_is_none(verb: str) -> None:
    assert hints(verb, "a.md") == []


def test_a_new_folder_is_looked_into_and_a_changed_one_is_not() -> None:
    assert hints("created", "a", is_folder=True) == [Hint("a", Kind.WRITTEN)]
    assert hints("modified", "a", is_folder=True) == []


def test_a_fresh_file_that_takes_the_place_of_another_is_its_new_content() -> None:
    moved = hints("moved", "a.md.tmp", "a.md", fresh="a.md.tmp")
    assert moved == [Hint("a.md.tmp", Kind.GONE), Hint("a.md", Kind.CLOSED)]


def test_a_hidden_file_that_takes_the_place_of_another_is_its_new_content() -> None:
    assert hints("moved", ".a.md.swp", "a.md") == [Hint("a.md", Kind.CLOSED)]


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_had_been_at_rest_is_looked_at_together_with_where_it_was(is_folder: bool) -> None:
    moved = hints("moved", "a", "b", is_folder=is_folder)
    assert moved == [Hint("a", Kind.GONE), Hint("b", Kind.MOVED)]


def test_a_file_that_becomes_hidden_is_gone() -> None:
    assert hints("moved", "a.md", ".trash/a.md") == [Hint("a.md", Kind.GONE)]


@pytest.mark.parametrize("path", [".git/index", "a/.cache/b", ".hidden.md"])
def test_nothing_hidden_counts(path: str) -> None:
    assert hints("closed", path) == []


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a/.gitignore", [Hint("a", Kind.WRITTEN)]),
        (".svcignore", [Hint(EVERYTHING, Kind.WRITTEN)]),
        (".git/.gitignore", []),
    ],
)
def test_other_rules_concern_the_whole_folder(path: str, found: list[Hint]) -> None:
    assert hints("closed", path) == found


def test_the_root_and_what_lies_beside_it_are_no_paths_below_it() -> None:
    for path in (ROOT, f"{ROOT}-old/a.md"):
        assert list(hints_of(Event("deleted", False, path), ROOT, lambda _: False)) == []
