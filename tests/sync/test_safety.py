"""When a sync keeps the sources of deleted files: causes for all files, causes for one file, and `--max-delete`."""

from typing import Any

import pytest

from svc_cli.errors import ApiError, FileRefused, NetworkFailed, SafetyStop, UsageError
from svc_cli.sync.safety import (
    Cause,
    Findings,
    MaxDelete,
    Removal,
    Replacements,
    Withheld,
    causes_of_all,
    refuse_new_way,
)
from svc_cli.transfer.contents import changed
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.rooted_files import Way

BROKEN = {"code": "document_unreadable", "message": "it is no document.", "retryable": False}
EXHAUSTED = {"code": "max_attempts_exhausted", "message": "it was tried often.", "retryable": True}
UNREADABLE = FileRefused("it can't be read.", code="svc_file_unreadable")
REFUSED = ApiError(400, {"code": "invalid_request", "message": "its name is refused."})
#: The bucket has `known.md` with the bytes "old".
KNOWN: dict[str, Any] = {"paths": {"known.md"}, "hashes": {"old"}}


def ready(path: str, sha256: str = "new") -> ReportItem:
    return ReportItem(path=path, action="created", source_id="src_1", status="active", ready=True, sha256=sha256)


def pending(path: str, sha256: str) -> ReportItem:
    return ReportItem(path=path, action="created", source_id="src_1", status="queued", sha256=sha256)


def failed(path: str, sha256: str, error: dict[str, Any] | None = None) -> ReportItem:
    """Return the result of a file that was uploaded and could not be indexed."""
    item = ReportItem(path=path, action="created", source_id="src_1", status="failed", sha256=sha256)
    item.fail(error or BROKEN)
    return item


def refused(path: str, error: Any, sha256: str | None = "new", source_id: str | None = None) -> ReportItem:
    """Return the result of a file that was not uploaded, or of a moved file whose source could not be changed."""
    item = ReportItem(path=path, action="created", sha256=sha256, source_id=source_id, size_bytes=7)
    item.refuse(error)
    return item


def causes(*items: ReportItem, **facts: Any) -> list[Cause]:
    return list(causes_of_all(Findings(items=items, **KNOWN, **facts)))


@pytest.mark.parametrize(
    "item",
    (
        *(ready("a.md"), failed("known.md", "old"), failed("known.md", "old", EXHAUSTED), failed("copy.md", "old")),
        *(pending("known.md", "old"), refused("b.md", REFUSED), refused("b.md", UNREADABLE, sha256=None)),
        *(refused("b.md", changed()), ReportItem(path="c.gz", action="skipped", reason="type can't be read")),
    ),
)
def test_problem_of_one_file_does_not_keep_the_sources_of_other_files(item: ReportItem) -> None:
    assert causes(item, is_late=True) == []


def test_file_that_was_not_sent_or_indexed_is_a_cause_to_keep_all_sources() -> None:
    full = ApiError(503, {"code": "storage_full"})
    for item, cause in (
        (failed("known.md", "new"), Cause.NEWLY_FAILED),
        (failed("new.md", "new", EXHAUSTED), Cause.NEWLY_FAILED),
        (pending("new.md", "new"), Cause.NOT_INDEXED),
        (refused("new.md", NetworkFailed("the line broke.")), Cause.NOT_SENT),
        (refused("new.md", ApiError(503, {"code": "storage_full", "retryable": True})), Cause.NOT_SENT),
        (refused("new.md", ApiError(500, {"code": "internal_error"})), Cause.NOT_SENT),
        (refused("new.md", ApiError(400, {"code": "checksum_mismatch"})), Cause.NOT_SENT),
        (refused("known.md", full, "old", "src_1"), Cause.NOT_SENT),
        (refused("moved.md", full, "old", "src_1"), Cause.MOVE_NOT_SENT),
        (refused("moved.md", ApiError(404, {"code": "source_not_found"}), "old", "src_1"), Cause.MOVE_NOT_SENT),
    ):
        found = Findings(items=[ready("a.md"), item], is_late=True, **KNOWN)
        assert causes_of_all(found) == {cause: (item.path,)}, item


def test_unreadable_replaced_or_changing_folder_is_a_cause_to_keep_all_sources() -> None:
    doubts = [causes(is_complete=False), causes(is_moved=True), causes(is_restless=True)]
    assert doubts == [[Cause.FOLDER_UNREADABLE], [Cause.FOLDER_REPLACED], [Cause.JUST_DELETED]]


def test_all_causes_are_returned_with_their_paths() -> None:
    unlisted = refused("sub/", UNREADABLE, sha256=None)
    unlisted.size_bytes = None
    found = Findings(items=[unlisted, failed("b.md", "new")], is_complete=False, is_moved=True, **KNOWN)
    named = {Cause.FOLDER_UNREADABLE: ("sub/",), Cause.FOLDER_REPLACED: (), Cause.NEWLY_FAILED: ("b.md",)}
    assert causes_of_all(found) == named


def test_pending_file_is_no_cause_if_the_sync_did_not_wait_for_indexing() -> None:
    assert causes(pending("new.md", "new")) == []


@pytest.mark.parametrize(
    ("removal", "item", "cause"),
    (
        (Removal("a.md", "src_1", "x", 9), failed("b.md", "x"), Cause.REPLACEMENT_NOT_READY),
        (Removal("a.md", "src_1", "x", 9), pending("b.md", "x"), Cause.REPLACEMENT_NOT_READY),
        (Removal("a.md", "src_1", "x", 9), ready("b.md", "x"), None),
        (Removal("a.md", "src_1", "x", 9, is_silent=True), failed("b.md", "x"), None),
        (Removal("a.md", "src_1", "x", 9), failed("b.md", "y"), None),
        (Removal("a.md", "src_1", "x", 9), failed("a.md", "y"), Cause.REPLACEMENT_NOT_READY),
        (Removal("a.md", "src_1", "x", 7), refused("b.md", UNREADABLE, sha256=None), Cause.MAY_HAVE_MOVED),
        (Removal("a.md", "src_1", "x", 7), refused("b.md", changed(), sha256="y"), Cause.MAY_HAVE_MOVED),
        (Removal("a.md", "src_1", "x", 0), refused("b.md", UNREADABLE, sha256=None), Cause.MAY_HAVE_MOVED),
        (Removal("a.md", "src_1", "x", 9), refused("b.md", UNREADABLE, sha256=None), None),
        (Removal("a.md", "src_1", "x", 7), refused("b.md", REFUSED, sha256="y"), None),
    ),
)
def test_source_is_kept_if_another_file_may_be_the_same_document(
    removal: Removal, item: ReportItem, cause: Cause | None
) -> None:
    found = Replacements([ready("c.md", "x"), item]).find(removal)
    assert found == (cause and (cause, item.path))


def test_each_cause_is_reported_with_its_code_and_a_message() -> None:
    for cause in set(Cause) - {Cause.ENDED_EARLY}:
        shown = Withheld(cause, 3, tuple("abcde")).as_json()
        assert shown["code"] == cause.value
        assert shown["files"] == 3
        assert shown["because"] == list("abcde")
        assert shown["message"].startswith("3 files are gone from the folder, but still in the bucket: "), cause
        assert shown["message"].endswith(" (a, b, c and 2 more)."), cause
    early = Withheld(Cause.ENDED_EARLY, None, tuple("abcde")).as_json()
    expected = {"code": Cause.ENDED_EARLY.value, "files": None, "message": "nothing was pruned: the sync ended early."}
    assert expected.items() <= early.items()


def test_max_delete_is_a_number_or_a_percentage() -> None:
    cases = [
        *(("25%", 25, 100, True), ("25%", 26, 100, False), ("25%", 10, 10, True), ("25%", 11, 11, False)),
        *(("0%", 10, 1000, True), ("0%", 11, 1000, False), ("100%", 500, 500, True)),
        *(("5", 5, 5, True), ("5", 6, 1000, False), ("0", 1, 1000, False)),
    ]
    for limit, gone, owned, is_allowed in cases:
        assert MaxDelete.parse(limit).allows(gone, owned) is is_allowed, (limit, gone, owned)


def test_max_delete_of_an_untrusted_file_can_only_be_less() -> None:
    cases = [
        *(("25%", "100%", 100, 25, "100%"), ("25%", "10%", 1000, 100, None), ("25%", "25%", 100, 25, None)),
        *(("25%", "1000", 100, 25, "1000"), ("25%", "1000", 9999, 1000, None), ("25%", "5", 100, 5, None)),
        *(("5%", "20%", 1000, 50, "20%"), ("50", "100%", 1000, 50, "100%"), ("50", "1%", 1000, 10, None)),
    ]
    for own, asked, owned, most, withheld in cases:
        limit = MaxDelete.parse(own, asked)
        assert limit.for_mapping(owned).most(owned) == most, (own, asked, owned)
        assert limit.withheld(owned) == ({"max_delete": withheld} if withheld else {}), (own, asked, owned)
    with pytest.raises(UsageError, match="--max-delete"):
        MaxDelete.parse("25%", "ten")


@pytest.mark.parametrize("text", ("", "%", "-1", "101%", "ten", "1.5", "٣"))
def test_max_delete_that_is_neither_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--max-delete"):
        pytest.fail(f"{text!r} is read as {MaxDelete.parse(text)}")


LINKED = Way(1, ("/srv/current",), (1,))


@pytest.mark.parametrize(
    ("before", "now", "refusal"),
    [
        (None, LINKED, None),
        (Way(1), Way(1), None),
        (LINKED, LINKED, None),
        (LINKED, Way(1), None),
        (Way(1, ("/srv", "/srv/current"), (0, 1)), Way(1, ("/srv",), (0,)), None),
        (Way(1), LINKED, "/srv/current has become a symbolic link"),
        (LINKED, Way(1, ("/srv/current", "/srv/current/docs"), (1,)), "/srv/current/docs has become a symbolic link"),
        (Way(1), Way(2), "/srv/current/docs belongs to the user 2 now, and not to 1"),
        (LINKED, LINKED._replace(owner=0), "belongs to the user 0 now"),
        (LINKED, LINKED._replace(link_owners=(1, 2)), "a symbolic link that leads to /srv/current/docs belongs"),
        (Way(1, ("/srv/current",), (0,)), LINKED, None),
    ],
)
def test_new_link_or_owner_of_the_folder_stops_the_sync(before: Way | None, now: Way, refusal: str | None) -> None:
    if refusal is None:
        refuse_new_way("docs", "/srv/current/docs", before, now)
    else:
        with pytest.raises(SafetyStop, match=refusal):
            refuse_new_way("docs", "/srv/current/docs", before, now)
