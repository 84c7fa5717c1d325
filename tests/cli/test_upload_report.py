"""The report at the end of an upload: counts, exit code and errors."""

import pytest

from svc_cli.commands.reports import render_report, render_summary
from svc_cli.errors import ApiError, FileRefused, SvcError, WaitTimedOut
from svc_cli.exits import Exit
from svc_cli.progress import Plain
from svc_cli.sync.run_state import SyncReport
from svc_cli.transfer.reports import Report, ReportItem
from tests.cli.terminals import MakeConsole

UNREADABLE = "type can't be read"


def _item(path: str, action: str = "created", source: dict[str, object] | None = None) -> ReportItem:
    item = ReportItem(path=path, action=action)
    if source:
        item.follow(source)
    return item


def _skipped(path: str, reason: str = UNREADABLE) -> ReportItem:
    return ReportItem(path=path, action="skipped", reason=reason)


def _refused(code: str, exit: Exit) -> ReportItem:
    item, error = _item("r.md"), FileRefused("refused.", code=code)
    error.exit = exit
    item.refuse(error)
    return item


READY = _item("a.md", source={"id": "src_1", "status": "active", "ready": True, "warnings": ["Page 2 has no text."]})
QUEUED = _item("q.md", source={"id": "src_2", "status": "queued", "ready": False})
FAILED = {"id": "src_3", "status": "failed", "ready": False, "error": {"code": "document_unreadable", "message": "bad"}}
BROKEN = _item("f.pdf", source=FAILED)
TITLE_TAKEN = {"code": "svc_title_conflict", "message": "m"}
CONFLICT = ReportItem(path="c.md", action="conflict", exit=Exit.CONFLICT, error=TITLE_TAKEN)


def _summary(*items: ReportItem, strict: bool = False, stopped_by: SvcError | None = None) -> Report:
    return Report(
        bucket="b", items={item.path: item for item in items}, duration_ms=1, is_strict=strict, stopped_by=stopped_by
    )


@pytest.mark.parametrize(("is_named", "action"), [(True, "failed"), (False, "skipped")])
def test_a_picture_without_text_fails_only_where_it_was_named(is_named: bool, action: str) -> None:
    item = ReportItem(path="docs/photo.jpg", action="created", is_named=is_named)
    item.follow({**FAILED, "error": {"code": "no_extractable_text", "message": "none"}})
    assert (item.action, item.is_pending, item.exit) == (action, False, Exit.FAILED if is_named else Exit.DONE)
    other = ReportItem(path="docs/scan.pdf", action="created", is_named=False)
    other.follow({**FAILED, "error": {"code": "no_extractable_text", "message": "none"}})
    assert other.action == "failed"


@pytest.mark.parametrize(
    ("summary", "exit_code", "code"),
    (
        *((_summary(), Exit.DONE, None), (_summary(READY), Exit.DONE, None)),
        (_summary(READY, _skipped("s")), Exit.DONE, None),
        (_summary(READY, _skipped("s"), strict=True), Exit.FAILED, "svc_some_skipped"),
        (_summary(BROKEN), Exit.FAILED, "document_unreadable"),
        (_summary(READY, BROKEN), Exit.FAILED, "document_unreadable"),
        (_summary(CONFLICT), Exit.CONFLICT, "svc_title_conflict"),
        (_summary(CONFLICT, BROKEN), Exit.FAILED, "svc_some_failed"),
        (_summary(_refused("svc_network_failed", Exit.TEMPORARY)), Exit.TEMPORARY, "svc_network_failed"),
        (_summary(_refused("empty_file", Exit.FAILED)), Exit.FAILED, "empty_file"),
        (_summary(QUEUED, stopped_by=WaitTimedOut("late")), Exit.TIMEOUT, "svc_timeout"),
    ),
)
def test_the_exit_code_and_the_error_follow_from_the_items(summary: Report, exit_code: Exit, code: str | None) -> None:
    value = summary.as_json()
    found = (summary.exit, value["exit_code"], value.get("error", {}).get("code"))
    assert found == (exit_code, int(exit_code), code), summary.items


def test_counts_of_actions_add_up_to_the_number_of_items() -> None:
    summary = _summary(READY, QUEUED, BROKEN, CONFLICT, _skipped("s"))
    counts = summary.counts
    assert sum(counts[action] for action in summary.ACTIONS) == len(summary.items)
    assert counts["ready"] == 1
    assert counts["pending"] == 1
    assert counts["failed"] == 1


def test_an_indexed_source_that_is_not_yet_in_its_bucket_is_pending() -> None:
    assert _item("a", source={"id": "src_1", "status": "active", "ready": False}).is_pending


def test_the_report_names_failures_skips_and_warnings(make_console: MakeConsole) -> None:
    text = render_summary(make_console().console, _summary(READY, BROKEN, _skipped("s.png")))
    for words in ("3 files", "f.pdf", "document_unreadable", "s.png", UNREADABLE, "Page 2 has no text."):
        assert words in text


def test_a_name_with_a_line_break_forges_no_line_of_the_report(make_console: MakeConsole) -> None:
    console, odd = make_console().console, _item("a\nready  500", source=FAILED)
    for summary in (_summary(odd), _summary(odd, READY)):
        assert "\nready  500" not in render_summary(console, summary)


def test_unreadable_files_of_one_type_are_one_row_unless_verbose(make_console: MakeConsole) -> None:
    summary = _summary(*(_skipped(f"a/{number}.gz") for number in range(40)), _skipped("b.bin"))
    console = make_console().console
    assert f"40 \N{MULTIPLICATION SIGN} .gz  {UNREADABLE}" in render_summary(console, summary)
    console.is_verbose = True
    assert all(f"a/{number}.gz" in render_summary(console, summary) for number in range(40))


def test_error_shared_by_many_files_is_shown_once_with_every_file(make_console: MakeConsole) -> None:
    text = render_summary(make_console().console, _summary(*(_item(f"{n}.pdf", source=FAILED) for n in range(5))))
    assert text.count("document_unreadable") == 1
    assert all(f"  {number}.pdf" in text for number in range(5))


def test_a_skipped_file_has_a_code_for_its_reason() -> None:
    codes = {"dotfile": "dotfile", UNREADABLE: "type_unreadable"}
    codes |= {"can't be read: Permission denied": "unreadable", "something that is new": "something_that_is_new"}
    assert {reason: _skipped("a", reason).as_json()["reason_code"] for reason in codes} == codes
    assert _item("a").as_json()["reason_code"] is None


def test_many_skipped_files_are_counted_instead_of_listed(make_console: MakeConsole) -> None:
    items = [_skipped(f"{number}.png", "ignored") for number in range(500)]
    text = render_summary(make_console().console, _summary(*items))
    assert "500 files, such as 0.png  ignored" in text
    assert len(text.splitlines()) < 30


def test_head_of_a_sync_counts_the_files_of_the_folder_alone(make_console: MakeConsole) -> None:
    report = SyncReport(mapping="docs", bucket="b", unchanged=2)
    items = [_item("a.md"), _item("old.md", "gone"), _item("older.md", "detached"), _skipped("drafts/")]
    report.items = {item.path: item for item in items}
    assert render_report(make_console().console, report).startswith("3 files, docs to bucket b")


def test_progress_before_the_first_phase_shows_what_was_sent(make_console: MakeConsole) -> None:
    made, times = make_console(), iter((0.0, 20.0))
    Plain(made.console, lambda: next(times)).update(0, "155.3 MB")
    assert made.err.getvalue() == "sending: 155.3 MB\n"


def test_error_of_an_item_has_all_fields_including_the_request_id() -> None:
    for error in ({"code": "no_text_found", "message": "m"}, {"code": "x", "message": "m", "details": {"a": 1}}):
        item = _item("a.pdf")
        item.fail(error)
        summary = _summary(item).as_json()
        fields = {"retryable": False, "details": {}, "hint": None, "request_id": None} | error
        assert summary["items"][0]["error"] == summary["error"] == fields
    item.refuse(ApiError(413, {"code": "file_too_large", "message": "m"}, "req_1"))
    refused = item.as_json()["error"]
    assert refused["request_id"] == "req_1"
    assert refused["hint"] == "split the file, or leave out parts that don't have to be searchable."
