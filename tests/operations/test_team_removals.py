"""Tests that removing a team deletes all of its data, even after kills, and nothing of another team."""

import asyncio
import os
import random
import shutil
import sqlite3
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import pytest

from svc_daemon.core.access.addresses import AddressPolicy
from svc_daemon.core.ids import Ids
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.offline_verify import verify_directory
from svc_daemon.operations.indexing import release_expired
from svc_daemon.operations.team_removals import (
    claim_removal,
    park_removal,
    queue_removal,
    remove_contents,
    remove_rows,
)
from svc_daemon.paths import DataFiles
from svc_daemon.server import open_context
from svc_daemon.settings.limits import Limits
from svc_daemon.store.teams import list_team_ids
from svc_daemon.workers.removing_teams import RemovingWorker
from tests.acceptance.backups import run_killed
from tests.api.answers import details_of
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.operations.directories import SampleDirectory

#: At how many lines a removal is killed; with --large, at every line.
KILLS = 4
COUNTED = (
    "operations/team_removals.py",
    "workers/removing_teams.py",
    "operations/bucket_deletions.py",
    "operations/sweeping.py",
)
IDS = Ids(now=lambda: datetime.now(UTC), random=os.urandom)


def remove(files: DataFiles, team: str) -> None:
    """Remove the team as the daemon of this data directory does, and return when it is removed."""
    asyncio.run(_remove(files, team))


async def _remove(files: DataFiles, team: str) -> None:
    async with AsyncExitStack() as stack:
        context = open_context(stack, Limits(), files, Fetcher(AddressPolicy()), lambda _: None)
        await release_expired(context, inf)
        if team in context.read(list_team_ids):
            await context.write(lambda connection: queue_removal(connection, IDS, team))
            await RemovingWorker(context).work()


def traces(files: DataFiles, *ids: str) -> list[str]:
    """Return all rows and files that contain one of these ids."""
    with closing(sqlite3.connect(files.state)) as state:
        lines = list(state.iterdump())
    folders = (files.blobs, files.parts, files.aside, files.index)
    lines += [str(path) for folder in folders if folder.exists() for path in folder.rglob("*")]
    return [line for line in lines if any(each in line for each in ids)]


@pytest.fixture
def two_teams(directory: SampleDirectory, make_daemon: MakeDaemon) -> tuple[SampleDirectory, str]:
    """The sample directory with a second team and its source, and with a set-aside file of the first team."""
    daemon = make_daemon(directory.files.root.name)
    daemon.start()
    key = daemon.add_team()
    daemon.make_bucket("inbox", key=key)
    other = daemon.add_source(key=key)
    daemon.wait(lambda: daemon.source(other, key)["ready"], "the other team's source is ready")
    daemon.stop()
    daemon.close()
    name = directory.source
    for table in ("memberships", "tasks", "deliveries"):
        directory.sql(f"DELETE FROM {table} WHERE source_id = '{name}'")
    directory.sql("DELETE FROM idempotency", f"DELETE FROM sources WHERE id = '{name}'")
    day = directory.files.aside / datetime.now(UTC).date().isoformat()
    day.mkdir(parents=True)
    (directory.files.blobs / name).rename(day / name)
    return directory, other


@pytest.mark.rule("team.removed")
@pytest.mark.sqlite
@pytest.mark.folders
@pytest.mark.index_files
def test_a_removal_that_is_killed_anywhere_ends_without_a_trace_of_the_team(
    two_teams: tuple[SampleDirectory, str], tmp_path: Path, large: bool
) -> None:
    directory, other = two_teams
    its = [
        directory.team,
        directory.bucket,
        directory.other,
        directory.source,
        directory.shared,
        directory.failed,
        directory.imported,
    ]
    its += [directory.unreadable, directory.question, directory.queued, directory.session]
    assert all(traces(directory.files, each) for each in its)
    place = DataFiles(tmp_path / "killed")

    def fresh() -> None:
        shutil.rmtree(place.root, ignore_errors=True)
        shutil.copytree(directory.files.root, place.root)

    fresh()
    lines = run_killed(lambda: remove(place, directory.team), 0, COUNTED)
    assert lines > 100
    for line in (0, *(range(1, lines) if large else random.Random(3).sample(range(1, lines), KILLS))):
        fresh()
        run_killed(lambda: remove(place, directory.team), line, COUNTED)
        # The index knows the set-aside file until both are deleted. The bytes of an ended session are left to the next
        # start.
        problems = verify_directory(place.root, read_data=True, repair=False).findings.problems
        mine = (directory.source, "has no open session")
        assert [each for each in problems if not any(word in each.message for word in mine)] == [], line
        remove(place, directory.team)
        assert traces(place, *its) == [], line
        verdict = verify_directory(place.root, read_data=True, repair=False)
        assert (list(verdict.lines())[:-1], verdict.findings.counts["sources"]) == ([], 1), line
        assert traces(place, other), line


@pytest.mark.rule("team.keys")
def test_removing_a_team_disables_its_keys_at_once_and_waits_for_running_tasks(
    daemon: Daemon,
) -> None:
    key = daemon.add_team()
    daemon.make_bucket("inbox", key=key)
    source = daemon.add_source(key=key)
    (team,) = [each for each in daemon.read(list_team_ids) if each != daemon.team_id]
    # Another worker has claimed the document, and is about to put it into the index.
    daemon.write(
        lambda c: c.execute(
            "UPDATE tasks SET status = 'running', token = token + 1, lease_until_s = :until WHERE source_id = :id",
            {"id": source, "until": daemon.context.clock.lease_s() + 3600},
        )
    )
    asked = [daemon.ask("DELETE", f"/admin/teams/{name}", key=daemon.operator_token) for name in ("another", team)]
    assert [(answer.json()["id"], answer.json()["status"]) for answer in asked] == [(team, "removing")] * 2
    details_of(daemon.ask("GET", "/v1/buckets", key=key), "invalid_project_key")
    made = daemon.ask("POST", "/admin/keys", key=daemon.operator_token, json={"team": "another", "preset": "read"})
    details_of(made, "not_found")
    task = daemon.loop.run(claim_removal(daemon.context))
    assert task is not None
    before = {table: daemon.count(table) for table in ("sources", "buckets", "agents", "keys", "tasks")}
    assert daemon.loop.run(remove_contents(daemon.context, team))
    daemon.loop.run(remove_rows(daemon.context, task))
    assert {table: daemon.count(table) for table in before} == before
    free = "UPDATE tasks SET status = 'queued', lease_until_s = NULL WHERE source_id = :id"
    daemon.write(lambda c: c.execute(free, {"id": source}))
    daemon.loop.run(park_removal(daemon.context, task))
    daemon.run_worker(lambda: RemovingWorker(daemon.context))
    daemon.wait(lambda: daemon.count("teams") == 1, "the team is removed")
    assert (daemon.blob_names(), daemon.count("keys"), daemon.count("tasks")) == ([], 1, 0)


@pytest.mark.rule("team.rm")
def test_removing_the_only_team_or_an_unknown_team_is_refused(daemon: Daemon) -> None:
    with pytest.raises(ServiceError, match="only team"):
        daemon.write(lambda connection: queue_removal(connection, IDS, "default"))
    daemon.add_team()
    with pytest.raises(NotFound, match="no team 'green'"):
        daemon.write(lambda connection: queue_removal(connection, IDS, "green"))
    daemon.write(lambda connection: queue_removal(connection, IDS, "another"))
    with pytest.raises(ServiceError, match="only team"):
        daemon.write(lambda connection: queue_removal(connection, IDS, "default"))
