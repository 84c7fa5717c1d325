"""Selecting files and titles by path, and reading a consistent content within the size limit."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from gzip import compress
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from svc_cli.errors import FileRefused, PathMissing, UsageError
from svc_cli.transfer.contents import ATTEMPTS, KEPT_BYTES, STDIN, read
from svc_cli.transfer.rooted_files import Root
from svc_cli.transfer.selections import MOST_KEPT, expand, select
from svc_cli.transfer.skips import code_of, is_text
from svc_cli.transfer.snapshots import Filters
from tests.cli.terminals import write

POLICY = Filters(extensions=frozenset({".md", ".pdf"}), max_bytes=100)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, "docs/a.md", "docs/sub/b.md", "c.md")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _titles(*paths: str) -> list[str]:
    return [file.title for file in select(paths, POLICY).files]


def test_outside_of_a_repository_a_title_is_the_path_as_typed_or_begins_with_the_name_of_its_folder(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {"docs//sub": "docs/sub/b.md", "docs/*.md": "docs/a.md"}
    expected |= dict.fromkeys(("c.md", "./c.md", "c.md c.md ./c.md"), "c.md")
    expected |= dict.fromkeys(("docs", "docs/", "docs docs/a.md", "do?s"), "docs/a.md docs/sub/b.md")
    expected |= dict.fromkeys((f"{work}/docs", f"../{work.name}/docs"), "docs/a.md docs/sub/b.md")
    expected |= {"**/*.md": "c.md docs/a.md docs/sub/b.md", f"{work}/d*/*.md": f"{work.name}/docs/a.md"}
    expected |= {f"docs {work}/docs/sub {work}/docs/a.md": "docs/a.md docs/sub/b.md", f"{work}/c.md": "c.md"}
    expected["."] = " ".join(f"{work.name}/{title}" for title in ("c.md", "docs/a.md", "docs/sub/b.md"))
    for paths, titles in expected.items():
        assert _titles(*paths.split()) == titles.split(), paths
    write(work, "[x].md")
    assert _titles("[x].md") == ["[x].md"], "brackets do not change"
    monkeypatch.chdir(work / "docs")
    assert [_titles(path) for path in (".", "..//docs", "sub", "../c.md")] == [
        *[["docs/a.md", "docs/sub/b.md"]] * 2,
        ["sub/b.md"],
        ["c.md"],
    ]


def test_in_a_folder_entered_by_a_link_a_title_begins_with_the_name_of_the_link(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "current").symlink_to(work / "docs")
    expected = ["current/a.md", "current/sub/b.md"]
    assert _titles("current") == expected
    monkeypatch.chdir(work / "current")
    assert _titles(".") == ["docs/a.md", "docs/sub/b.md"]
    for shell in (f"{work}/current", f"{work}/current/"):
        monkeypatch.setenv("PWD", shell)
        assert [_titles(path) for path in (".", shell)] == [expected] * 2
        assert _titles("sub/..") == expected
    monkeypatch.setenv("PWD", f"{work}/docs/sub")
    assert _titles(".") == ["docs/a.md", "docs/sub/b.md"], "not where the shell is"


@pytest.mark.parametrize("mark", [".git", "svc.toml"])
def test_in_a_repository_a_title_is_the_path_from_its_root_from_wherever_it_is_named(
    work: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    (work / mark).mkdir()
    (work.parent / f"way{mark}").symlink_to(work / "docs")
    whole = ["docs/a.md", "docs/sub/b.md"]
    for folder, paths in {
        work: ("docs", "./docs/", f"{work}/docs", "docs/*", "docs/**/*.md", f"../{work.name}/docs"),
        work / "docs": (".", "*", "../docs", "a.md ../docs/sub", f"{work}/docs/*"),
        work / "docs" / "sub": ("..", "../a.md .", f"{work}/docs/*.md b.md"),
        work.parent: (f"{work.name}/docs", f"way{mark}"),
    }.items():
        monkeypatch.chdir(folder)
        for given in paths:
            assert _titles(*given.split()) == whole, (folder, given)
    monkeypatch.chdir(work)
    assert _titles(".") == ["c.md", *whole]


def test_two_files_of_one_title_are_refused_and_both_are_named(work: Path) -> None:
    write(work, "one/docs/a.md", "two/docs/a.md")
    with pytest.raises(UsageError, match=r"one/docs/a\.md and .*two/docs/a\.md would get the same title"):
        select([f"{work}/one/docs", f"{work}/two/docs"], POLICY)
    assert _titles("*/docs") == ["one/docs/a.md", "two/docs/a.md"]
    (work / "one/.git").mkdir()
    assert _titles("one", "two") == ["docs/a.md", "two/docs/a.md"]


def test_pattern_finds_what_a_shell_finds_but_enters_no_link(work: Path) -> None:
    write(work, "docs/sub/.hidden.md", "docs/.git/x.md", "docs/b.md/c.md")
    (work / "out").symlink_to("docs")
    found = {
        "docs/*": "docs/a.md docs/b.md docs/sub",
        "docs/*/": "docs/b.md docs/sub",
        "docs/**/*.md": "docs/a.md docs/b.md docs/b.md/c.md docs/sub/b.md",
        "./docs/[!a]*/?.md": "docs/b.md/c.md docs/sub/b.md",
        "docs/*/.h*": "docs/sub/.hidden.md",
        "docs/s*/**": "docs/sub docs/sub/b.md",
        "out/?.md": "out/a.md out/b.md",
        "o*/sub/b.md": "out",
        "**/sub/*": "docs/sub/b.md",
        f"{work}/d*/a.md": f"{work}/docs/a.md",
    }
    assert {given: " ".join(str(each.path) for each in expand([given])) for given in found} == found


def test_pattern_lists_each_folder_once_even_if_links_lead_back(work: Path) -> None:
    for name in ("one", "two"):
        (work / name).symlink_to(".")
    assert _titles("**/*.md") == ["c.md", "docs/a.md", "docs/sub/b.md"]


def test_link_that_a_pattern_finds_is_skipped_unlike_one_that_the_user_named(work: Path) -> None:
    write(work / "foreign", "f.md", "sub/g.md")
    for name, target in {"docs/out": "../foreign", "docs/l.md": "../c.md", "named": "foreign"}.items():
        (work / name).symlink_to(target)
    skipped = {"docs/*.md": {"docs/l.md"}, "docs/*/*.md": {"docs/out/"}, "docs/*": {"docs/l.md", "docs/out/"}}
    for pattern, links in skipped.items():
        selection = select([pattern], POLICY)
        assert {skip.path for skip in selection.skips if skip.reason == "link"} == links, pattern
        assert not any("out" in file.title for file in selection.files), pattern
    assert _titles("named/*.md", "named", "docs/l.md") == ["named/f.md", "named/sub/g.md", "docs/l.md"]


def test_folders_are_not_all_kept_open(work: Path) -> None:
    names = [f"many/{number}" for number in range(MOST_KEPT + 1)]
    write(work, *(f"{name}/a.md" for name in names))
    before = sum(1 for _ in Path("/dev/fd").iterdir())
    selection = select(names, POLICY)
    assert len(selection.files) == len(names)
    assert sum(1 for _ in Path("/dev/fd").iterdir()) == before
    assert read(selection.files[0].path, 100, root=selection.files[0].root).data == b"text"


def test_file_named_like_standard_input_is_read_in_a_folder(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(work / "odd", "-")
    monkeypatch.chdir(work / "odd")
    (file,) = select(["."], Filters(extensions=frozenset(), max_bytes=100)).files
    assert file.title == "odd/-"
    assert read(file.path, 100, root=file.root).data == b"text"


@pytest.mark.parametrize("path", ("missing.md", "missing/", "*.nothing"))
def test_path_without_a_file_is_named_in_the_error(path: str, work: Path) -> None:
    with pytest.raises(PathMissing) as refused:
        select([path], POLICY)
    assert refused.value.details == {"path": path}


def test_explicitly_named_file_is_selected_even_if_its_folder_would_skip_it(work: Path) -> None:
    write(work, ".hidden.md", "picture.png", data=b"\x89PNG\0")
    write(work, "empty.md", data=b"")
    (work / "link.md").symlink_to("c.md")
    named = [".hidden.md", "empty.md", "picture.png", "link.md"]
    assert _titles(*named) == named
    assert not set(named) & set(_titles("."))


def test_pictures_in_folders_are_left_out_unless_they_are_asked_for(work: Path) -> None:
    write(work / "docs", "plan.PNG", "fax.tiff", data=b"\x89PNG\0")
    extensions = frozenset({".md", ".png", ".tiff"})
    reads = Filters(extensions=extensions, max_bytes=100)
    asked = [each.title for each in select(["docs"], reads).files]
    assert asked == ["docs/a.md", "docs/fax.tiff", "docs/plan.PNG", "docs/sub/b.md"]
    selection = select(["docs", "docs/fax.tiff"], replace(reads, pictures=frozenset({".png", ".tiff"})))
    assert [each.title for each in selection.files] == ["docs/a.md", "docs/sub/b.md", "docs/fax.tiff"]
    assert [(skip.path, code_of(skip.reason)) for skip in selection.skips] == [("docs/plan.PNG", "picture")]
    # A service that reads none says so, as of every other type.
    (skip, *_) = select(["docs"], replace(reads, extensions=frozenset({".md"}))).skips
    assert code_of(skip.reason) == "type_unreadable"


def test_document_or_text_that_no_extension_tells_is_selected_by_its_first_bytes(work: Path) -> None:
    for number, start in enumerate((b"[Content_Types].xml", b"mimetypeapplication/epub+zip", b"word/document.xml")):
        write(work / "found", f"package{number}", data=b"PK\x03\x04" + bytes(26) + start)
        write(work / "found", f"package{number}.zip", data=b"PK\x03\x04" + bytes(26) + start)
    write(work / "found", "archive", data=b"PK\x03\x04" + bytes(26) + b"a.txt")
    write(work / "found", "scan", data=b"%PDF-1.7\n\0")
    write(work / "found", "film.srt", data="Größe 5 für alle".encode("cp1252"))
    found = [each.title for each in select(["found"], POLICY).files]
    assert found == ["found/film.srt", *(f"found/package{number}" for number in range(3)), "found/scan"]


def test_compressed_file_is_selected_with_an_accepted_inner_suffix_or_text_in_it(work: Path) -> None:
    write(work / "packed", "a.txt.gz", "A.MD.GZ", "a.tar.gz", "a.gz", data=b"\x1f\x8b\x08\x00\xff")
    for name, data in (("README.gz", b"words"), ("b.tar.gz", b"a.txt" + bytes(507)), ("c.gz", b"%PDF-1.7\n")):
        write(work / "packed", name, data=compress(data))
    write(work / "packed", "NEWS.Debian.gz", data=compress(os.urandom(9_000).hex().encode()))
    write(work / "packed", "cut.gz", "empty.gz", data=compress(b"")[:10])
    selection = select(("packed",), Filters(extensions=frozenset({".txt.gz", ".md.gz"}), max_bytes=100_000))
    expected = ["packed/A.MD.GZ", "packed/NEWS.Debian.gz", "packed/README.gz", "packed/a.txt.gz"]
    assert [each.title for each in selection.files] == expected


def test_folders_nested_deeper_than_the_recursion_limit_are_walked_completely(work: Path) -> None:
    # With a low limit, since the time grows with the square of the depth.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    depth = 310
    for _ in range(depth):
        Path("d").mkdir()
        os.chdir("d")
    Path("deep.md").write_text("text")
    os.chdir(work)
    try:
        for given in ("d", "d/**/*.md"):
            assert _titles(given) == [f"{'d/' * depth}deep.md"], given
    finally:
        sys.setrecursionlimit(limit)
        # Pytest removes the folders of tests recursively, which fails for deep ones.
        subprocess.run(["rm", "-r", "d"], check=True)


def test_title_is_for_a_single_file_and_standard_input_requires_one(work: Path) -> None:
    assert [file.title for file in select(["c.md"], POLICY, "Chapter C").files] == ["Chapter C"]
    assert [file.title for file in select(["c.md", "docs/a.md"], POLICY, "").files] == ["c.md", "docs/a.md"]
    with pytest.raises(UsageError):
        select(["c.md", "docs/a.md"], POLICY, "Both")
    for title in (None, ""):
        with pytest.raises(UsageError, match="no name"):
            select(["-"], POLICY, title)
    assert select(["-"], POLICY, "notes.md").files[0].path == Path(STDIN)


def test_is_text_tells_text_from_binary_data() -> None:
    cut = "ü".encode()[:1]
    cells = {b"plain": True, "ü".encode(): True, b"a\0b": False, b"\xff\xfe": False}
    cells |= {b"x" * 8191 + cut: True, b"x" * 100 + cut: True, "Größe 5 für alle\r\n".encode("cp1252"): True}
    cells |= {bytes(range(128, 256)): False, b"x" * 100 + b"\x01\x02\xfc": False, b"\x80\x81ab": False}
    assert {start: is_text(start) for start in cells} == cells


def test_missing_empty_too_large_or_special_file_is_refused_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "large").write_bytes(b"x" * 101)
    os.mkfifo(tmp_path / "pipe")
    codes = {"empty": "empty_file", "large": "file_too_large", "pipe": "svc_not_a_file", "none": "svc_file_unreadable"}
    for name, code in codes.items():
        with pytest.raises(FileRefused) as refused:
            read(tmp_path / name, 100)
        assert refused.value.code == code
    for size, code in ((0, "empty_file"), (101, "file_too_large")):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"x" * size)))
        with pytest.raises(FileRefused) as refused:
            read(Path(STDIN), 100)
        assert refused.value.code == code
    assert read(tmp_path / "large", 101).size_bytes == 101, "a file of exactly the limit is read"
    with pytest.raises(FileRefused, match="it has 101 bytes, the limit is 100"):
        read(tmp_path / "large", 100)


FSTAT = os.fstat


def _write_while_read(monkeypatch: pytest.MonkeyPatch, path: Path, changes: int) -> None:
    """Append to the file between the two `fstat` calls of each of the first `changes` reads."""
    path.write_bytes(b"start")
    looks: list[int] = []

    def fstat(descriptor: int) -> os.stat_result:
        facts = FSTAT(descriptor)
        if sys._getframe(1).f_code.co_filename.endswith("rooted_files.py"):
            return facts
        looks.append(facts.st_size)
        if len(looks) % 2 and len(looks) < 2 * changes:
            with path.open("ab") as file:
                file.write(b"+")
        return facts

    monkeypatch.setattr("svc_cli.transfer.contents.os.fstat", fstat)


def test_changing_file_is_read_again_until_it_is_stable_or_attempts_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pauses = tmp_path / "busy.log", list[float]()
    _write_while_read(monkeypatch, path, changes=1)
    assert read(path, 1000, pauses.append).data == b"start+"
    assert len(pauses) == 1
    _write_while_read(monkeypatch, path, changes=99)
    with pytest.raises(FileRefused) as refused:
        read(path, 1000, pauses.append)
    assert (refused.value.code, refused.value.retryable, refused.value.exit) == ("svc_file_unstable", True, 7)
    assert len(pauses) == ATTEMPTS


def test_large_file_is_read_again_from_any_offset(tmp_path: Path) -> None:
    path, data = tmp_path / "large.bin", os.urandom(KEPT_BYTES * 40)
    path.write_bytes(data)
    content = read(path, len(data))
    assert content.data is None
    assert content.sha256 == hashlib.sha256(data).hexdigest()
    assert content.whole() == data
    assert b"".join(content.blocks(1_000_000)) == data[1_000_000:]


@pytest.mark.parametrize("change", ["grown", "replaced", "gone", "linked", "folder linked"])
def test_a_file_that_changed_between_hashing_and_sending_is_refused(tmp_path: Path, change: str) -> None:
    path, data = tmp_path / "docs" / "large.bin", os.urandom(KEPT_BYTES * 2)
    write(tmp_path, "docs/large.bin", data=data)
    content = read(Path("docs/large.bin"), len(data), root=Root(tmp_path))
    if change == "linked":
        path.rename(tmp_path / "same.bin")
        path.symlink_to(tmp_path / "same.bin")
    elif change == "folder linked":
        path.parent.rename(tmp_path / "same")
        path.parent.symlink_to("same")
    elif change == "grown":
        path.write_bytes(data + b"more")
    elif change == "replaced":
        (tmp_path / "new").write_bytes(data)
        (tmp_path / "new").replace(path)
    else:
        path.unlink()
    with pytest.raises(FileRefused) as refused:
        content.whole()
    assert refused.value.code == ("svc_file_unstable" if change in ("grown", "replaced") else "svc_file_unreadable")
