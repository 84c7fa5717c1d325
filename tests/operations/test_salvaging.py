"""Tests that `verify --repair` recovers stored bytes that the state has lost if an index knows them."""

import sqlite3
from contextlib import closing

import pytest

from svc_daemon.offline.verify import Verdict
from svc_daemon.operations.remove.setting_aside import sort_leftovers
from svc_daemon.operations.remove.sweeping import reconcile_index
from tests.api.fixtures import MakeDaemon
from tests.operations.directories import SampleDirectory

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]


def _forget_all(directory: SampleDirectory) -> None:
    """Delete all rows but those of teams and keys, as in a state that was restored from a very old copy."""
    tables = ("memberships", "tasks", "deliveries", "delivery_attempts", "uploads", "sources", "buckets", "idempotency")
    directory.sql("PRAGMA foreign_keys = OFF", *(f"DELETE FROM {table}" for table in tables))


def _repaired(directory: SampleDirectory) -> Verdict:
    verdict = directory.verify(repair=True)
    assert verdict.is_whole, list(verdict.lines())
    return verdict


@pytest.mark.index_files
@pytest.mark.parametrize("has_started", [False, True])
def test_a_repair_recovers_sources_that_an_index_knows_and_sets_the_other_bytes_aside(
    directory: SampleDirectory, make_daemon: MakeDaemon, has_started: bool
) -> None:
    stored = directory.stored()
    _forget_all(directory)
    if has_started:
        daemon = make_daemon("data")
        daemon.loop.run(sort_leftovers(daemon.context))
        daemon.loop.run(reconcile_index(daemon.context))
        daemon.close()
        assert list(directory.files.blobs.iterdir()) == []
    known = {directory.source, directory.shared, directory.imported}
    problems = directory.verify().findings.problems
    assert {problem.about["source_id"] for problem in problems if problem.repair == "recover"} == known
    verdict = _repaired(directory)
    assert {path.name for path in directory.files.blobs.iterdir()} == known
    aside = verdict.findings.aside
    assert {each.name for each in aside} >= {directory.question, directory.failed, directory.queued, directory.session}
    assert f"set aside: {aside[0].place} ({aside[0].size_bytes} bytes)" in verdict.lines()
    assert directory.stored() == stored
    daemon = make_daemon("data")
    daemon.loop.run(sort_leftovers(daemon.context))
    daemon.start()
    daemon.wait_ready(*known)
    assert directory.source in daemon.found("umber quay paragraph", bucket_ids=[directory.bucket])
    shown = (daemon.source(directory.source)["title"], daemon.source(directory.shared)["bucket_ids"])
    assert shown == ("notes.md", sorted([directory.bucket, directory.other]))
    daemon.close()
    assert directory.verify(read_data=True).is_whole


def test_a_repair_recovers_sources_of_an_unknown_team_under_the_id_of_that_team(directory: SampleDirectory) -> None:
    _forget_all(directory)
    directory.sql(*(f"DELETE FROM {table}" for table in ("keys", "usage", "webhook_secrets", "teams")))
    directory.sql("INSERT INTO teams VALUES ('team_new', 'default', '')", "UPDATE agents SET team_id = 'team_new'")
    _repaired(directory)
    with closing(sqlite3.connect(directory.files.state)) as state:
        assert {row[0] for row in state.execute("SELECT DISTINCT team_id FROM sources")} == {directory.team}


def test_a_repair_recovers_sources_from_an_index_that_has_problems_itself(directory: SampleDirectory) -> None:
    stored = directory.stored()
    _forget_all(directory)
    directory.change_index("UPDATE totals SET chunks = 99")
    _repaired(directory)
    assert {path.name for path in directory.files.blobs.iterdir()} == {
        directory.source,
        directory.shared,
        directory.imported,
    }
    assert directory.stored() == stored


def test_a_source_with_several_stored_contents_is_set_aside_and_not_recovered(directory: SampleDirectory) -> None:
    _forget_all(directory)
    second = directory.files.blobs / f"{directory.source}_{'0' * 26}"
    second.write_bytes(b"Fetched later.\n")
    assert {directory.source, second.name} <= {each.name for each in directory.verify(repair=True).findings.aside}


def test_many_set_aside_files_cause_a_warning_that_names_the_setting(directory: SampleDirectory) -> None:
    def warnings() -> list[str]:
        verdict = directory.verify()
        assert verdict.is_whole
        return [line for line in verdict.lines() if line.startswith("warning: ")]

    day = directory.files.aside / "2026-01-01"
    day.mkdir(parents=True)
    for number in range(9):
        (day / f"src_{number:026}").write_bytes(b"x")
    assert warnings() == []
    (day / f"src_{9:026}").write_bytes(b"x")
    (warning,) = warnings()
    assert warning.startswith("warning: 10 files are set aside") and "SVC_LIMIT_SET_ASIDE_DAYS" in warning


def test_a_source_whose_bytes_are_set_aside_is_no_problem(directory: SampleDirectory) -> None:
    day = directory.files.aside / "2026-01-01"
    day.mkdir(parents=True)
    (directory.files.blobs / directory.source).rename(day / directory.source)
    assert directory.verify(read_data=True, repair=True).is_whole
    assert (day / directory.source).exists()
