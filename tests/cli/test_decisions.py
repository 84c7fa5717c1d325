"""The action for each uploaded file, given the sources of the bucket, and the grouping of files into requests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from svc_cli.client.new_files import Description, decide
from svc_cli.transfer.contents import FileContent
from svc_cli.transfer.queues import BATCH_BYTES, LARGE_BYTES, Grouper, Mode
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.transfers import Transfer

OLD, NEW = "0" * 64, "1" * 64
MB = 1024 * 1024


def _source(id: str, sha256: str, status: str = "active", replaces: str | None = None) -> dict[str, Any]:
    return {"id": id, "sha256": sha256, "status": status, "ready": status == "active", "replaces": replaces}


def test_action_depends_on_known_sources_and_the_conflict_option() -> None:
    ready, other = [_source("a", NEW)], [_source("a", OLD)]
    pending, failed = [_source("a", NEW, "indexing")], [_source("a", NEW, "failed")]
    swapping_in = [*other, _source("b", NEW, "indexing", replaces="a")]
    swapping_out = [*ready, _source("b", OLD, "indexing", replaces="a")]
    replaced_or_not = {"ask": "conflict a", "replace": "replaced a"}
    cells: list[tuple[list[dict[str, Any]], dict[Any, str]]] = [
        ([], dict.fromkeys(("ask", "replace", "as_new"), "created None")),
        (ready, dict.fromkeys(("ask", "replace", "as_new"), "unchanged a")),
        (pending, {"ask": "unchanged a"}),
        (failed, {"ask": "retried a", "replace": "retried a"}),
        (other, {**replaced_or_not, "as_new": "created None"}),
        ([_source("a", OLD, "failed")], replaced_or_not),
        ([*failed, _source("b", NEW)], {"ask": "unchanged b"}),
        ([*other, _source("b", NEW)], {"ask": "unchanged b"}),
        (swapping_in, {"ask": "unchanged b", "replace": "unchanged b"}),
        (swapping_out, {"ask": "conflict b", "replace": "replaced a"}),
        ([*other, _source("b", NEW, "failed", replaces="a")], {"ask": "retried b"}),
        ([*ready, _source("b", OLD, "failed", replaces="a")], {"ask": "unchanged a"}),
    ]
    for known, decisions in cells:
        found = {on_conflict: decide(known, NEW, on_conflict) for on_conflict in decisions}
        shown = {name: f"{each.action} {each.source and each.source['id']}" for name, each in found.items()}
        assert shown == decisions, known


def _transfer(size_bytes: int) -> Transfer:
    content = FileContent(Path("a.md"), "0" * 64, size_bytes)
    return Transfer(ReportItem(path="a.md", action="created"), content, Description(filename="a.md", title="a.md"))


def _group(mode: Mode, *sizes: int) -> list[tuple[str, int]]:
    """Return the kind and the number of files of each group."""
    grouper = Grouper(mode)
    groups = [group for size in sizes for group in grouper.add(_transfer(size))]
    return [(each.kind, len(each.transfers)) for each in [*groups, *grouper.rest()]]


def test_files_are_grouped_by_mode_size_and_number() -> None:
    large = LARGE_BYTES + 1
    cells: list[tuple[Mode, list[int], list[tuple[str, int]]]] = [
        *(("auto", [1], [("one", 1)]), ("auto", [LARGE_BYTES], [("one", 1)]), ("auto", [large], [("session", 1)])),
        *(("auto", [1, 1], [("batch", 2)]), ("auto", [1, large, 1], [("session", 1), ("batch", 2)])),
        *(("auto", [1] * 100, [("batch", 100)]), ("auto", [1] * 101, [("batch", 100), ("one", 1)])),
        *(("auto", [8 * MB] * 40, [("batch", 32), ("batch", 8)]), ("auto", [], [])),
        *(("one", [1, large], [("one", 1), ("one", 1)]), ("session", [1, 1], [("session", 1), ("session", 1)])),
        *(("batch", [1], [("batch", 1)]), ("batch", [25 * MB] * 11, [("batch", 10), ("batch", 1)])),
    ]
    for mode, sizes, groups in cells:
        assert _group(mode, *sizes) == groups, (mode, sizes)


@pytest.mark.rule("export.metadata")
@pytest.mark.parametrize(("levels", "kind"), ((28, None), (29, "session"), (31, "session"), (32, "one")))
def test_file_with_deep_metadata_is_sent_by_the_first_kind_of_request_that_allows_it(
    levels: int, kind: str | None
) -> None:
    def deep(levels: int) -> dict[str, Any]:
        value: Any = 1
        for _ in range(levels - 1):
            value = [value]
        return {"a": value}

    grouper = Grouper("batch")
    plain = _transfer(1)
    transfer = replace(plain, description=replace(plain.description, metadata=deep(levels)))
    assert [each.kind for each in grouper.add(transfer)] == ([kind] if kind else [])


def test_small_files_come_first_within_their_own_group() -> None:
    grouper = Grouper("auto")
    transfers = [_transfer(size) for size in [3 * MB, 5, 9, 5, *[1] * 96, 2, 1]]
    (first,) = [group for transfer in transfers for group in grouper.add(transfer)]
    assert [each.size_bytes for each in first.transfers] == [*[1] * 96, 5, 5, 9, 3 * MB]
    fives = [each for each in first.transfers if each.size_bytes == 5]
    assert fives == [transfers[1], transfers[3]], "files of equal size keep their order"
    assert [each.size_bytes for each in next(grouper.rest()).transfers] == [1, 2]


def test_remaining_files_of_an_interrupted_run_form_the_same_groups() -> None:
    sizes = [3 * MB + number for number in range(300)]
    groups = _group("auto", *sizes)
    done = groups[0][1]
    assert sizes[0] * done <= BATCH_BYTES
    assert _group("auto", *sizes[done:]) == groups[1:]
