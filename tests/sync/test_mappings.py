"""Mappings: names that survive a clone, tables of svc.toml, and what contradicts itself."""

from pathlib import Path
from typing import Any

import pytest

from svc_cli.errors import SyncRunning, UsageError
from svc_cli.sync.index import hold
from svc_cli.sync.mappings import Mapping, find_mapping, name_of, read_mappings

FILE = Path("/srv/project/svc.toml")


def read(*tables: dict[str, Any], bucket: str | None = "handbook") -> list[Mapping]:
    return read_mappings(tables, FILE, bucket)


def test_a_mapping_of_a_repository_is_named_by_its_path_in_it(tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    assert name_of(tmp_path / "repo" / "docs" / "guide") == "docs/guide"
    assert name_of(tmp_path / "repo") == "repo"
    assert name_of(tmp_path / "elsewhere") == "elsewhere"
    assert name_of(Path("/")) == "root"


def test_a_table_is_read_with_the_files_folder_and_bucket_behind_it() -> None:
    (mapping,) = read({"dir": "docs", "exclude": ["drafts"], "tags": ["a"], "prune": "detach"})
    assert mapping == Mapping(
        name="docs",
        folder=Path("/srv/project/docs"),
        bucket="handbook",
        exclude=("drafts",),
        tags=("a",),
        prune="detach",
        is_named=False,
    )
    assert read({"dir": "docs", "name": "n"})[0].is_named
    assert read({"dir": "../notes/", "name": "n", "bucket": "b"})[0].folder == Path("/srv/notes")


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([{"dir": "a", "colour": 1}], r"svc\.toml: \[\[map\]\] 1: unknown setting `colour`"),
        ([{"bucket": "b"}], "`dir` is missing"),
        ([{"dir": 1}], "`dir` takes a text"),
        ([{"dir": "a", "tags": "x"}], "`tags` takes a list of texts"),
        ([{"dir": "a", "tags": [1]}], "`tags` takes a list of texts"),
        ([{"dir": "a", "prune": "all"}], "`prune` is one of none, detach, delete"),
        ([{"dir": "a"}, {"dir": "b", "name": "a"}], "two mappings into handbook are named 'a'"),
        ([{"dir": "a"}, {"dir": "a/b"}], "'a' and 'a/b' into handbook overlap|overlap"),
        ([{"dir": "a/b"}, {"dir": "a"}], "overlap"),
        ([{"dir": "a", "name": "x"}, {"dir": "a", "name": "y"}], "overlap"),
    ],
)
def test_what_contradicts_itself_is_told(tables: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(*tables)


DOCS = {"dir": "docs", "name": "d"}
PUBLIC = {"dir": "docs", "name": "p", "bucket": "public"}
NOTES = {"dir": "notes", "name": "n"}


@pytest.mark.parametrize(
    ("folder", "name", "bucket", "found"),
    [
        ("docs", None, "public", "p"),
        ("docs", "d", None, "d"),
        ("notes", None, None, "n"),
        (None, "n", None, "n"),
        ("notes", "d", None, None),
        ("notes", None, "public", None),
        ("elsewhere", None, None, None),
    ],
)
def test_a_mapping_is_found_by_all_that_is_given(
    folder: str | None, name: str | None, bucket: str | None, found: str | None
) -> None:
    at = None if folder is None else FILE.parent / folder
    mapping = find_mapping(read(DOCS, PUBLIC, NOTES), at, name, bucket)
    assert (mapping.name if mapping else None) == found


def test_a_folder_of_two_mappings_does_not_choose_one_by_itself() -> None:
    with pytest.raises(UsageError, match="d into handbook, p into public"):
        find_mapping(read(DOCS, PUBLIC, NOTES), FILE.parent / "docs", None, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a\nb"},
        {"name": " "},
        {"name": "12345678901"},
        {"tags": ("a", "b", "c")},
        {"tags": ("",)},
        {"tags": ("four!",)},
        {"tags": ("a\t",)},
    ],
)
def test_what_no_source_could_carry_is_told_before_anything_is_sent(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        Mapping(**{"name": "a", "folder": Path("/srv"), "bucket": "b", **fields}).check(10, 2, 4)
    assert refused.value.hint
    Mapping(name="ten or few", folder=Path("/srv"), bucket="b", tags=("a", "four", "a")).check(10, 2, 4)


def test_a_mapping_needs_a_bucket_from_somewhere() -> None:
    with pytest.raises(UsageError, match="`bucket` is missing"):
        read({"dir": "docs"}, bucket=None)


def test_one_folder_may_go_into_two_buckets() -> None:
    assert [each.bucket for each in read({"dir": "a"}, {"dir": "a", "bucket": "other"})] == ["handbook", "other"]


def test_each_service_bucket_folder_and_name_has_an_index_of_its_own(tmp_path: Path) -> None:
    mapping = Mapping(name="n", folder=Path("/a"), bucket="b")
    others = [
        Mapping(name="m", folder=Path("/a"), bucket="b"),
        Mapping(name="n", folder=Path("/c"), bucket="b"),
        Mapping(name="n", folder=Path("/a"), bucket="d"),
        Mapping(name="n", folder=Path("/latin-\udce9"), bucket="b"),
    ]
    paths = {each.index_path(tmp_path, "http://one") for each in (mapping, *others)}
    assert len(paths | {mapping.index_path(tmp_path, "http://two")}) == 6


def test_two_syncs_of_a_mapping_do_not_meet(tmp_path: Path) -> None:
    with hold(tmp_path / "x.db", "docs"):
        with pytest.raises(SyncRunning, match="Another sync of docs is running"), hold(tmp_path / "x.db", "docs"):
            pass
        with hold(tmp_path / "y.db", "notes"):
            pass
    with hold(tmp_path / "x.db", "docs"):
        pass
