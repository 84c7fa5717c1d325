"""Mappings: default names, tables of svc.toml, validation, look-up, the path of the index, and stored ones."""

from pathlib import Path
from typing import Any

import pytest

from svc_cli.errors import UsageError
from svc_cli.sync.mappings import MOST_MAPPINGS, Added, Mapping, Ownership, find_mapping, name_of, read_mappings

FILE = Path("/srv/project/svc.toml")


def read(*tables: dict[str, Any], bucket: str | None = "handbook") -> list[Mapping]:
    return read_mappings(tables, FILE, bucket)


def test_folder_in_a_repository_is_named_by_its_path_in_the_repository(tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    names = {tmp_path / "repo" / "docs" / "guide": "docs/guide", tmp_path / "repo": "repo", Path("/"): "root"}
    names[tmp_path / "elsewhere"] = "elsewhere"
    assert {path: name_of(path) for path in names} == names


def test_table_is_read_relative_to_its_file_and_with_the_default_bucket() -> None:
    (mapping,) = read({"dir": "docs", "exclude": ["drafts"], "tags": ["a"], "prune": "detach"})
    fields: dict[str, Any] = {"name": "docs", "folder": Path("/srv/project/docs"), "bucket": "handbook"}
    assert mapping == Mapping(**fields, exclude=("drafts",), tags=("a",), prune="detach", ownership=Ownership.SEEN)
    assert read({"dir": "docs", "name": "n"})[0].ownership is Ownership.NAMED
    assert read({"dir": "../notes/", "name": "n", "bucket": "b"})[0].folder == Path("/srv/notes")


def test_invalid_or_overlapping_tables_are_refused() -> None:
    cases: list[tuple[list[dict[str, Any]], str]] = [
        ([{"dir": "a", "colour": 1}], r"svc\.toml: \[\[map\]\] 1: unknown setting `colour`"),
        ([{"bucket": "b"}], "`dir` is missing"),
        ([{"dir": "docs"}], "`bucket` is missing"),
        ([{"dir": 1}], "`dir` takes a string"),
        ([{"dir": "a\0b"}], "`dir` is a path"),
        ([{"dir": "a/" * 100_000}], "`dir` is a path"),
        ([{"dir": "a", "tags": "x"}], "`tags` takes a list of strings"),
        ([{"dir": "a", "tags": [1]}], "`tags` takes a list of strings"),
        ([{"dir": "a", "prune": "all"}], "`prune` is one of none, detach, delete"),
        ([{"dir": "a"}, {"dir": "b", "name": "a"}], "two mappings into handbook are named 'a'"),
        ([{"dir": "a"}, {"dir": "a/b"}], "'a' and 'b' into handbook overlap"),
        ([{"dir": "a/b"}, {"dir": "a"}], "overlap"),
        ([{"dir": "a", "name": "x"}, {"dir": "a", "name": "y"}], "overlap"),
        (
            [{"dir": "a"}, {"dir": "a!"}, {"dir": "a-"}, {"dir": "a/z"}, {"dir": "a.b"}],
            "'a' and 'z' into handbook overlap",
        ),
        ([{"dir": "."}, {"dir": "z"}], "overlap"),
        ([{"dir": "/", "name": "all"}, {"dir": "z"}], "'all' and 'z' into handbook overlap"),
    ]
    for tables, message in cases:
        with pytest.raises(UsageError, match=message):
            pytest.fail(f"{tables} are {read(*tables, bucket=None if '`bucket`' in message else 'handbook')}")


def test_many_mappings_are_read_and_too_many_are_refused() -> None:
    tables = [{"dir": f"{number:x}"} for number in range(MOST_MAPPINGS - 1)]
    assert len(read(*tables)) == len(tables)
    with pytest.raises(UsageError, match=f"has {2 * len(tables)} mappings"):
        read(*tables, *tables)
    with pytest.raises(UsageError, match="'0' and 'inner' into handbook overlap"):
        read(*tables, {"dir": "0/a", "name": "inner"})
    with pytest.raises(UsageError, match="'0': that of /srv/project/0, and that of /srv/project/other"):
        read(*tables, {"dir": "other", "name": "0"})


DOCS = {"dir": "docs", "name": "d"}
PUBLIC = {"dir": "docs", "name": "p", "bucket": "public"}
NOTES = {"dir": "notes", "name": "n"}


def test_found_mapping_matches_the_given_folder_name_and_bucket() -> None:
    cases = [
        *(("docs", None, "public", "p"), ("docs", "d", None, "d"), ("notes", None, None, "n"), (None, "n", None, "n")),
        *(("notes", "d", None, None), ("notes", None, "public", None), ("elsewhere", None, None, None)),
    ]
    for folder, name, bucket, found in cases:
        at = None if folder is None else FILE.parent / folder
        mapping = find_mapping(read(DOCS, PUBLIC, NOTES), at, name, bucket)
        assert (mapping.name if mapping else None) == found, (folder, name, bucket)


def test_name_and_tags_that_the_service_would_refuse_are_refused() -> None:
    names: list[dict[str, Any]] = [{"name": name} for name in ("a\nb", " ", "12345678901")]
    for fields in [*names, *({"tags": tags} for tags in [("a", "b", "c"), ("",), ("four!",), ("a\t",)])]:
        given: dict[str, Any] = {"name": "a", "folder": Path("/srv"), "bucket": "b", **fields}
        with pytest.raises(UsageError) as refused:
            Mapping(**given).check(10, 2, 4)
        assert refused.value.hint
    Mapping(name="ten or few", folder=Path("/srv"), bucket="b", tags=("a", "four", "a")).check(10, 2, 4)


def test_each_combination_of_service_bucket_folder_and_name_has_its_own_index(tmp_path: Path) -> None:
    cases = [("n", "/a", "b"), ("m", "/a", "b"), ("n", "/c", "b"), ("n", "/a", "d"), ("n", "/latin-\udce9", "b")]
    mappings = [Mapping(name=name, folder=Path(folder), bucket=bucket) for name, folder, bucket in cases]
    paths = {each.index_path(tmp_path, "http://one") for each in mappings}
    assert len(paths | {mappings[0].index_path(tmp_path, "http://two")}) == 6


def test_folders_that_overlap_through_a_link_are_refused(tmp_path: Path) -> None:
    (tmp_path / "docs" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("docs/sub")
    with pytest.raises(UsageError, match="'docs' and 'link' into handbook overlap"):
        read_mappings([{"dir": "docs"}, {"dir": "link"}], tmp_path / "svc.toml", "handbook")


ODD = 'a "quoted" \\ name\x7f, déjà\nvu'


def test_written_mappings_are_read_back_unchanged(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"name": "docs", "folder": tmp_path / "sub" / "docs", "bucket": "one"}
    rules: dict[str, Any] = {"include": ("*.md", ODD), "exclude": ("drafts/",), "tags": ("x",), "prune": "detach"}
    added = Added(tmp_path / "config" / "watch.toml")
    assert added.read() == []
    for claim in (Ownership.NAMED, Ownership.SEEN):
        mappings = [Mapping(**fields, **rules, ownership=claim)]
        mappings.append(Mapping(name=ODD, folder=tmp_path / "two", bucket="two"))
        added.write(mappings)
        assert added.read() == mappings
