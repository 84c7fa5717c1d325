"""Converting file system events to hints about paths below the root."""

import os

import pytest
from watchdog.events import FileMovedEvent

from svc_cli.sync.watch.observers import EVERYTHING, Event, Handler, Hint, Kind, hints_of, hints_through

ROOT = "/users/ann/docs"


def hints(verb: str, path: str, target: str = "", *, is_folder: bool = False, fresh: str = "") -> list[Hint]:
    event = Event(verb, is_folder, f"{ROOT}/{path}", f"{ROOT}/{target}" if target else "")
    return list(hints_of(event, ROOT, lambda each: each == fresh))


W, C, G, M = Kind.WRITTEN, Kind.CLOSED, Kind.GONE, Kind.MOVED


def test_changes_of_a_file_are_hints_and_reading_it_is_not() -> None:
    for verb, kind in (("created", W), ("modified", W), ("closed", C), ("deleted", G)):
        assert hints(verb, "a/b.md") == [Hint("a/b.md", kind)]
    for verb in ("opened", "closed_no_write", "attrib"):
        assert hints(verb, "a.md") == []
    assert hints("created", "a", is_folder=True) == [Hint("a", W)]
    assert hints("modified", "a", is_folder=True) == [], "every new file modifies its folder"


def test_renaming_a_fresh_or_hidden_file_counts_as_writing_its_new_path() -> None:
    assert hints("moved", "a.md.tmp", "a.md", fresh="a.md.tmp") == [Hint("a.md.tmp", G), Hint("a.md", C)]
    assert hints("moved", ".a.md.swp", "a.md") == [Hint("a.md", C)]


@pytest.mark.parametrize("is_folder", (False, True))
def test_moving_a_settled_path_gives_hints_for_the_old_and_the_new_path(is_folder: bool) -> None:
    assert hints("moved", "a", "b", is_folder=is_folder) == [Hint("a", G), Hint("b", M)]


def test_hidden_paths_are_ignored_and_a_file_moved_to_one_is_gone() -> None:
    assert hints("moved", "a.md", ".trash/a.md") == [Hint("a.md", G)]
    for path in (".git/index", "a/.cache/b", ".hidden.md", ".git/.gitignore"):
        assert hints("closed", path) == []


def test_changed_ignore_file_is_a_hint_about_its_whole_folder() -> None:
    assert [*hints("closed", "a/.gitignore"), *hints("closed", ".svcignore")] == [Hint("a", W), Hint(EVERYTHING, W)]


def test_paths_of_windows_become_paths_with_slashes_also_through_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sep", "\\")
    found: list[Event] = []
    Handler(found.append).dispatch(FileMovedEvent(r"C:\docs\new\a.md", r"C:\docs\sub\b.md"))
    assert found == [Event("moved", False, "C:/docs/new/a.md", "C:/docs/sub/b.md")]
    hinted = list(hints_through(found[0], "C:/docs", {"link": "sub"}, lambda _: False))
    assert hinted == [Hint("new/a.md", G), Hint("sub/b.md", M), Hint("link/b.md", C)]


@pytest.mark.parametrize("path", (ROOT, f"{ROOT}-old/a.md"))
def test_events_of_the_root_and_of_its_siblings_are_ignored(path: str) -> None:
    assert list(hints_of(Event("deleted", False, path), ROOT, lambda _: False)) == []
