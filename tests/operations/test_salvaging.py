"""Stored bytes that the state has lost are taken in again where a team's index knows them, and never deleted."""

import sqlite3
from contextlib import closing

import pytest

from svc_daemon.databases.sqlite import SqliteDatabase
from svc_daemon.errors import StorageError
from svc_daemon.offline_verify import Verdict
from svc_daemon.operations.setting_aside import sort_leftovers
from svc_daemon.operations.sweeping import reconcile_index
from svc_daemon.store.migrations import migrate
from tests.api.fixtures import MakeDaemon
from tests.operations.directories import Whole

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]


def _forget_all(whole: Whole) -> None:
    """As a state that was made before everything but teams and keys."""
    tables = ("memberships", "tasks", "deliveries", "delivery_attempts", "uploads", "sources", "buckets", "idempotency")
    whole.sql("PRAGMA foreign_keys = OFF", *(f"DELETE FROM {table}" for table in tables))


def _stored(whole: Whole) -> set[bytes]:
    """The contents of all files of bytes, wherever they lie."""
    folders = (whole.files.blobs, whole.files.parts, whole.files.aside)
    return {path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


def _repaired(whole: Whole) -> Verdict:
    verdict = whole.verify(repair=True)
    assert verdict.is_whole, list(verdict.lines())
    return verdict


@pytest.mark.index_files
@pytest.mark.parametrize("has_started", [False, True])
def test_a_repair_takes_in_again_what_an_index_knows_and_moves_the_rest_aside(
    whole: Whole, make_daemon: MakeDaemon, has_started: bool
) -> None:
    stored = _stored(whole)
    _forget_all(whole)
    if has_started:
        daemon = make_daemon("data")
        daemon.loop.run(sort_leftovers(daemon.context))
        daemon.loop.run(reconcile_index(daemon.context))
        daemon.close()
        assert list(whole.files.blobs.iterdir()) == []
    known = {whole.source, whole.shared, whole.imported}
    problems = whole.verify().findings.problems
    assert {problem.about["source_id"] for problem in problems if problem.repair == "recover"} == known
    verdict = _repaired(whole)
    assert {path.name for path in whole.files.blobs.iterdir()} == known
    aside = verdict.findings.aside
    assert {each.name for each in aside} >= {whole.question, whole.failed, whole.queued, whole.session}
    assert f"set aside: {aside[0].place} ({aside[0].size_bytes} bytes)" in verdict.lines()
    assert _stored(whole) == stored
    daemon = make_daemon("data")
    daemon.loop.run(sort_leftovers(daemon.context))
    daemon.start()
    daemon.wait_ready(*known)
    assert whole.source in daemon.found("umber quay paragraph", bucket_ids=[whole.bucket])
    shown = (daemon.source(whole.source)["title"], daemon.source(whole.shared)["bucket_ids"])
    assert shown == ("notes.md", sorted([whole.bucket, whole.other]))
    daemon.close()
    assert whole.verify(read_data=True).is_whole


def test_bytes_of_a_team_that_the_state_does_not_know_are_taken_in_under_its_id(whole: Whole) -> None:
    _forget_all(whole)
    whole.sql(*(f"DELETE FROM {table}" for table in ("keys", "usage", "webhook_secrets", "teams")))
    whole.sql("INSERT INTO teams VALUES ('team_new', 'default', '')", "UPDATE agents SET team_id = 'team_new'")
    _repaired(whole)
    with closing(sqlite3.connect(whole.files.state)) as state:
        assert {row[0] for row in state.execute("SELECT DISTINCT team_id FROM sources")} == {whole.team}


def test_what_is_wrong_in_an_index_is_rebuilt_after_it_has_reported_what_it_knows(whole: Whole) -> None:
    stored = _stored(whole)
    _forget_all(whole)
    whole.change_index("UPDATE totals SET chunks = 99")
    _repaired(whole)
    assert {path.name for path in whole.files.blobs.iterdir()} == {whole.source, whole.shared, whole.imported}
    assert _stored(whole) == stored


def test_of_several_contents_none_is_taken_in(whole: Whole) -> None:
    _forget_all(whole)
    second = whole.files.blobs / f"{whole.source}_{'0' * 26}"
    second.write_bytes(b"Fetched later.\n")
    assert {whole.source, second.name} <= {each.name for each in whole.verify(repair=True).findings.aside}


def test_many_files_that_lie_aside_are_a_warning_that_names_the_setting(whole: Whole) -> None:
    def warnings() -> list[str]:
        verdict = whole.verify()
        assert verdict.is_whole
        return [line for line in verdict.lines() if line.startswith("warning: ")]

    day = whole.files.aside / "2026-01-01"
    day.mkdir(parents=True)
    for number in range(10):
        assert warnings() == []
        (day / f"src_{number:026}").write_bytes(b"x")
    (warning,) = warnings()
    assert warning.startswith("warning: 10 files are set aside") and "SVC_LIMIT_SET_ASIDE_DAYS" in warning


def test_bytes_that_lie_aside_are_no_loss_to_their_source(whole: Whole) -> None:
    day = whole.files.aside / "2026-01-01"
    day.mkdir(parents=True)
    (whole.files.blobs / whole.source).rename(day / whole.source)
    assert whole.verify(read_data=True, repair=True).is_whole
    assert (day / whole.source).exists()


@pytest.mark.parametrize("state", ["missing", "empty", "new"])
def test_a_lost_database_is_reported_with_the_way_out_and_nothing_is_removed(whole: Whole, state: str) -> None:
    before = _stored(whole)
    whole.files.state.unlink()
    if state == "new":
        # As an earlier release left it, which made the database before it refused.
        SqliteDatabase(whole.files.state, prepare=migrate).close()
        report = "I10: the state database is new, and knows none of the 7 stored files"
        assert next(whole.verify(repair=True).lines()).startswith(report)
    else:
        if state == "empty":
            whole.files.state.touch()
        refused = r"has 7 stored files; nothing was changed. Restore a copy of state.db"
        with pytest.raises(StorageError, match=refused):
            whole.verify(repair=True)
    assert _stored(whole) == before
