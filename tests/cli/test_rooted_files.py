"""Files are opened inside a folder, and never through a link, also on a system that opens no folders."""

import itertools
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svc_cli.errors import UsageError
from svc_cli.given_files import absolute
from svc_cli.mcp.folders import Folders, PathRefused
from svc_cli.transfer.rooted_files import MOST_LINKS, Root, Way, open_named
from tests.cli.terminals import write

ME = os.geteuid()

pytestmark = pytest.mark.usefixtures("opens_folders")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with files, next to the folder `foreign`, which has the same names."""
    write(tmp_path / "docs", "a.md", "sub/b.md", data=b"own")
    write(tmp_path / "foreign", "a.md", "sub/b.md", data=b"foreign")
    return tmp_path / "docs"


def text(root: Root, place: str) -> str:
    with os.fdopen(root.open(place)) as file:
        return file.read()


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("replaced", ["a.md", "sub", "sub/b.md"])
def test_link_in_the_place_of_a_file_or_folder_is_not_opened(docs: Path, replaced: str, is_kept: bool) -> None:
    root = Root(docs, is_kept=is_kept)
    assert (text(root, "a.md"), text(root, "sub/b.md")) == ("own", "own")
    (docs / replaced).rename(docs / "away")
    (docs / replaced).symlink_to(docs.parent / "foreign" / replaced)
    place = "sub/b.md" if replaced == "sub" else replaced
    with pytest.raises(OSError, match="a link or another file has taken its place"):
        text(root, place)
    with pytest.raises(OSError, match="a link"), root.enter("sub"):
        os.close(root.open(place))
    assert (docs / place).read_bytes() == b"foreign", "the link can be followed"


@pytest.mark.parametrize("place", ["..", "../foreign/a.md", "sub/../../foreign/a.md"])
def test_place_that_leads_upwards_is_not_opened(docs: Path, place: str) -> None:
    with pytest.raises(OSError, match="leads out"):
        Root(docs).open(place)


def swap_by_link(docs: Path) -> None:
    docs.rename(docs.with_name("old"))
    docs.symlink_to("foreign")


def swap_by_folder(docs: Path) -> None:
    docs.rename(docs.with_name("old"))
    docs.with_name("foreign").rename(docs)


@pytest.mark.parametrize("swap", [swap_by_link, swap_by_folder])
def test_root_stays_the_folder_that_was_opened_or_is_no_longer_read(
    docs: Path, swap: Callable[[Path], None], opens_folders: bool
) -> None:
    kept, reopened = Root(docs), Root(docs, is_kept=False)
    assert (kept.is_in_place, kept.identity) == (True, reopened.identity)
    swap(docs)
    assert (kept.is_in_place, Root(docs).is_in_place) == (False, True)
    if opens_folders:
        assert text(kept, "sub/b.md") == "own"
    for root in (reopened, *(() if opens_folders else (kept,))):
        with pytest.raises(OSError, match="its folder was replaced"):
            text(root, "a.md")


@pytest.mark.parametrize("replaced", ["sub", "sub/b.md"])
def test_link_that_is_there_for_any_moment_while_a_file_is_opened_by_path_is_not_followed(
    docs: Path, replaced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set[Callable[..., Any]]())
    root, place, away, calls = Root(docs), docs / replaced, docs / "away", itertools.count()
    turns: tuple[int, ...] = ()

    def watch(name: str) -> None:
        call = getattr(os, name)

        def watched(*given: Any, **options: Any) -> Any:
            if next(calls) in turns:
                if away.exists():
                    place.unlink()
                    away.rename(place)
                else:
                    place.rename(away)
                    place.symlink_to(docs.parent / "foreign" / replaced)
            return call(*given, **options)

        monkeypatch.setattr(os, name, watched)

    for name in ("lstat", "stat", "open", "fstat"):
        watch(name)
    refusals = set()
    for turns in itertools.combinations(range(12), 2):
        calls = itertools.count()
        try:
            assert text(root, "sub/b.md") == "own", turns
        except OSError:
            refusals.add(turns)
        if away.exists():
            place.unlink()
            away.rename(place)
    assert len(refusals) > 10


JUNCTION = {"st_mode": stat.S_IFDIR, "st_file_attributes": 0x410, "st_reparse_tag": 0xA0000003}
IN_A_CLOUD = {"st_mode": stat.S_IFREG, "st_file_attributes": 0x420, "st_reparse_tag": 0x9000001A}


@pytest.mark.parametrize(("there", "is_read"), [(JUNCTION, False), (IN_A_CLOUD, True)])
def test_junction_of_windows_is_a_link_and_a_file_in_a_cloud_is_none(
    docs: Path, there: dict[str, int], is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set[Callable[..., Any]]())
    looked, name = os.lstat, "sub" if there is JUNCTION else "sub/b.md"

    def look(path: Any) -> Any:
        facts = looked(path)
        if Path(path) != docs / name:
            return facts
        return SimpleNamespace(**{each: getattr(facts, each) for each in ("st_ino", "st_dev", "st_uid")}, **there)

    monkeypatch.setattr(os, "lstat", look)
    root = Root(docs)
    if is_read:
        assert text(root, "sub/b.md") == "own"
        return
    for read in (lambda: text(root, "sub/b.md"), lambda: root.stat("sub/b.md")):
        with pytest.raises(OSError, match="a link or another file has taken its place"):
            read()
    assert Root(docs / "sub").way.links == (str(docs / "sub"),)


def test_way_has_the_links_in_the_path_and_follows_links_in_their_targets(docs: Path, opens_folders: bool) -> None:
    base = docs.parent
    for name, target in {"current": "stage", "stage": str(docs), "up": "docs/sub/..", "self": "self"}.items():
        (base / name).symlink_to(target)
    assert Root(docs).way == Way(ME)
    assert Root(base / "current").way == Way(ME, (str(base / "current"),), (ME,))
    assert Root(base / "current" / "sub").way == Way(ME, (str(base / "current"),), (ME,))
    for path in (base / "current", base / "up"):
        assert (text(Root(path), "sub/b.md"), Root(path).identity) == ("own", Root(docs).identity)
        assert Root(path).real == Path(os.path.realpath(docs))
    for number in range(MOST_LINKS):
        (base / f"{number + 1}").symlink_to(str(number) if number else "docs")
    assert Root(base / str(MOST_LINKS)).identity == Root(docs).identity
    (base / "many").symlink_to(str(MOST_LINKS))
    for name in ("self", *(["many"] if opens_folders else []), "docs/a.md", "nowhere"):
        with pytest.raises(OSError, match=r"Too many levels|No such file|Not a directory"):
            Root(base / name)


def test_relative_paths_and_folders_that_may_not_be_listed_are_opened(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(docs)
    for path in (".", "sub/..", "../docs"):
        root = Root(Path(path))
        assert (text(root, "sub/b.md"), root.path, root.real) == ("own", docs, Path(os.path.realpath(docs)))
    (docs / "sub").chmod(0o311)
    assert text(Root(docs), "sub/b.md") == "own"


def test_links_are_resolved_to_places_inside_the_root_or_to_none(docs: Path) -> None:
    links = {"in": "sub", "in.md": str(docs / "a.md"), "here": ".", "out": "../foreign", "out.md": "/etc/hostname"}
    for name, target in links.items():
        (docs / name).symlink_to(target)
    root = Root(docs)
    found = {path: root.find(path) for path in ("a.md", "in/b.md", *links, "dead/x", "out/a.md", "..")}
    inside = {"a.md": "a.md", "in/b.md": "sub/b.md", "in": "sub", "in.md": "a.md", "here": "", "dead/x": "dead/x"}
    assert found == inside | dict.fromkeys(("out", "out.md", "out/a.md", ".."))


def test_absolute_path_keeps_links_but_resolves_what_leads_upwards(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (docs / "link").symlink_to("../foreign/sub")
    monkeypatch.chdir(docs)
    base = docs.parent
    paths = {"link": docs / "link", "link/..": base / "foreign", "link/../link": base / "foreign" / "link"}
    paths |= {".": docs, "../docs/link": docs / "link", str(docs / "link"): docs / "link"}
    assert {path: absolute(Path(path)) for path in paths} == paths


def test_named_link_out_of_a_repository_is_neither_opened_nor_allowed_to_tools(docs: Path) -> None:
    base = docs.parent
    (base / "clone" / ".git").mkdir(parents=True)
    (base / "clone" / "out").symlink_to(docs)
    for path in (base / "clone" / "out", base / "clone" / "out" / "sub", base / "clone" / "out" / ".." / "docs"):
        assert Root(path).way_out is not None
        with pytest.raises(UsageError) as refused:
            Folders([path])
        assert str(Path(os.path.realpath(path))) in str(refused.value.hint)
    with pytest.raises(OSError, match="leads out of the link's repository"):
        open_named(base / "clone" / "out" / "a.md")
    os.close(open_named(docs / "a.md"))
    tools = Folders([docs])
    assert tools.read("sub/b.md", 100) == ("b.md", b"own")
    (docs / "out.md").symlink_to(base / "foreign" / "a.md")
    with pytest.raises(PathRefused):
        tools.read("out.md", 100)
