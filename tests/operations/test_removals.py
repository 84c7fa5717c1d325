"""Tests removing buckets and teams with all that is in them, whatever fails or is killed."""

import asyncio
import json
import os
import random
import shutil
import sqlite3
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

import pytest

from svc_daemon.core.access.urls import AddressPolicy
from svc_daemon.core.ids import Ids
from svc_daemon.errors import ERRORS
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.offline.verify import verify_directory
from svc_daemon.operations.index.indexing import release_expired
from svc_daemon.operations.remove import bucket_deletions
from svc_daemon.operations.remove.team_removals import (
    claim_removal,
    delete_contents,
    delete_rows,
    queue_removal,
)
from svc_daemon.operations.shared.leases import park
from svc_daemon.paths import DataFiles
from svc_daemon.server.server import open_context
from svc_daemon.settings.limits import Limits
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.store.rows.teams import list_team_ids
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.workers.removing import RemovingWorker
from tests.acceptance.backups import run_killed
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.operations.directories import SampleDirectory
from tests.workers.rebuilds import join
from tests.workers.rebuilds import show as task


def delete(daemon: Daemon, bucket: str = "inbox") -> str:
    """Delete the bucket, and return the id of the task that empties it."""
    return str(daemon.delete(f"/v1/buckets/{bucket}", force="true")["deletion"]["task_id"])


def claim(daemon: Daemon) -> TaskRow:
    found = daemon.loop.run(bucket_deletions.claim_cascade(daemon.context))
    assert found is not None
    return found


def finish(daemon: Daemon, held: TaskRow) -> None:
    daemon.loop.run(bucket_deletions.finish_cascade(daemon.context, held))


def remove_sources(daemon: Daemon, held: TaskRow, *source_ids: str) -> None:
    daemon.loop.run(bucket_deletions.detach_members(daemon.context, held, source_ids))


def test_a_released_claim_changes_nothing_and_the_next_one_continues_its_work(daemon: Daemon) -> None:
    first, second = daemon.add_source(), daemon.add_source()
    task_id = delete(daemon)
    stale = claim(daemon)
    remove_sources(daemon, stale, first)
    daemon.advance(3600)
    assert daemon.loop.run(release_expired(daemon.context, daemon.context.clock.lease_s())) == 1
    assert task(daemon, task_id)["status"] == "queued"
    fresh = claim(daemon)
    remove_sources(daemon, stale, second)
    finish(daemon, stale)
    assert (daemon.count("sources"), task(daemon, task_id)["status"]) == (1, "running")
    assert [bucket_deletions.next_members(daemon.context, held) for held in (stale, fresh)] == [[], [second]]


def test_expired_leases_do_not_count_as_attempts_of_a_bucket_deletion(daemon: Daemon) -> None:
    daemon.add_source()
    delete(daemon)
    for _ in range(10):
        assert claim(daemon).attempt == 1
        daemon.loop.run(release_expired(daemon.context, float("inf")))
    assert daemon.ask("GET", "/v1/buckets/inbox").json()["status"] == "deleting"


def test_a_failed_deletion_is_retried_and_the_last_failure_restores_the_bucket(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    task_id = delete(daemon)
    for _ in range(3):
        held = claim(daemon)
        daemon.loop.run(bucket_deletions.give_back_cascade(daemon.context, held, "the disk is full", 0.0))
        assert task(daemon, task_id)["error"]["retryable"] is ERRORS[ErrorCode.INTERNAL_ERROR].retryable
        daemon.advance(100)
    ended, bucket = task(daemon, task_id), daemon.show("/v1/buckets/inbox")
    assert (ended["status"], ended["attempt"], daemon.source(source_id)["bucket_ids"]) == ("failed", 3, [bucket["id"]])
    reason = "1 of 1 sources could not be deleted: the disk is full"
    assert (bucket["status"], bucket["lastDeleteError"]) == ("active", reason)


def test_a_source_in_two_buckets_that_are_both_being_deleted_is_deleted(daemon: Daemon) -> None:
    source_id = daemon.add_source()
    daemon.make_bucket("second")
    join(daemon, source_id)
    tasks = [delete(daemon), delete(daemon, "second")]
    for _ in tasks:
        held = claim(daemon)
        for step in iter(lambda: bucket_deletions.next_members(daemon.context, held), []):  # noqa: B023
            remove_sources(daemon, held, *step)
        finish(daemon, held)
    assert [task(daemon, task_id)["deletion"]["deleted"] for task_id in tasks] == [1, 1]
    assert (daemon.count("sources"), daemon.count("buckets")) == (0, 0)


@pytest.mark.parametrize("slug", ["inbox", "second"])
def test_deleting_a_bucket_cancels_the_sessions_that_have_no_other_bucket(daemon: Daemon, slug: str) -> None:
    ids = {name: daemon.make_bucket(name) for name in ("inbox", "second")}
    fields = {"filename": "a.txt", "size_bytes": 3}
    lone, both = (daemon.post(f"/v1/buckets/{slug}/uploads", 201, json=fields) for _ in range(2))
    placed = {"ids": json.dumps(list(ids.values())), "id": both["session_id"]}
    daemon.write(lambda c: c.execute("UPDATE uploads SET bucket_ids = :ids WHERE id = :id", placed).rowcount)
    for session in (lone, both):
        daemon.ask("PUT", session["upload_url"], content=b"ab", headers={"Content-Range": "bytes 0-1/3"})
    delete(daemon, slug)
    daemon.loop.run(bucket_deletions.end_sessions(daemon.context, claim(daemon)))
    put: dict[str, Any] = {"content": b"c", "headers": {"Content-Range": "bytes 2-2/3"}}
    details_of(daemon.ask("PUT", lone["upload_url"], **put), "session_canceled")
    body_of(daemon.ask("PUT", both["upload_url"], **put))
    assert daemon.part_ids() == [both["session_id"]]


#: At how many lines a removal is killed; with --large, at every line.
KILLS = 4
COUNTED = (
    "operations/remove/team_removals.py",
    "workers/removing.py",
    "operations/remove/bucket_deletions.py",
    "operations/remove/sweeping.py",
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
    assert daemon.loop.run(delete_contents(daemon.context, team))
    daemon.loop.run(delete_rows(daemon.context, task))
    assert {table: daemon.count(table) for table in before} == before
    free = "UPDATE tasks SET status = 'queued', lease_until_s = NULL WHERE source_id = :id"
    daemon.write(lambda c: c.execute(free, {"id": source}))
    daemon.loop.run(park(daemon.context, task))
    daemon.run_worker(lambda: RemovingWorker(daemon.context))
    daemon.wait(lambda: daemon.count("teams") == 1, "the team is removed")
    assert (daemon.blob_names(), daemon.count("keys"), daemon.count("tasks")) == ([], 1, 0)
