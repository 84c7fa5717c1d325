"""A real daemon rebuilds a team's search index on request, after damage, and when a bucket's chunking is changed."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.acceptance.calls import get_source, make_bucket, upload, wait_ended, wait_task
from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation

BUCKET = "shelf"
#: HTML, because each page is read by a child process of its own: this is slow enough for a kill to hit the rebuild.
TEXT = "<h1>Shelf</h1>\n<p>The umber binder leans on number {number}.</p>\n"
FILES = 60


def fill(client: httpx.Client, count: int) -> list[str]:
    """Upload `count` pages, wait until they are ready, and return their ids."""
    make_bucket(client, BUCKET)
    answers = [upload(client, BUCKET, f"{n}.html", TEXT.format(number=n).encode()) for n in range(count)]
    ids = [str(answer.json()["id"]) for answer in answers]
    assert all(wait_ended(client, source_id)["ready"] for source_id in ids)
    return ids


def search(client: httpx.Client, query: str = "binder") -> httpx.Response:
    return client.post("/v1/search", json={"query": query, "buckets": [BUCKET], "max_num_results": 50})


def found(client: httpx.Client, *numbers: int) -> set[str]:
    """Search for each of these files' numbers and return the ids of all sources found."""
    pages = [search(client, f"binder {number}").raise_for_status().json() for number in numbers]
    return {result["source_id"] for page in pages for result in page["data"]}


def counted(client: httpx.Client, task_id: str, least: int) -> int | None:
    """Return how many sources a running rebuild has read, if it is at least `least`."""
    task = client.get(f"/v1/knowledge/tasks/{task_id}").raise_for_status().json()
    has_looked = task["status"] in ("running", "succeeded") and task["progress"]["chunks_total"] is not None
    return int(task["progress"]["chunks_done"]) if has_looked and task["progress"]["chunks_done"] >= least else None


@pytest.mark.rule("team_store_maintenance")
def test_rebuild_resumes_after_kills_and_handles_sources_added_and_deleted_meanwhile(
    make_installation: MakeInstallation,
) -> None:
    # With one child process, a kill hits the rebuild before it is finished.
    installation = make_installation(**UNLIMITED, SVC_LIMIT_EXTRACT_CHILDREN="1").start()
    with installation.client() as client:
        ids = fill(client, FILES)
    before = installation.operate("team", "ls", "--json").json["teams"][0]
    asked = installation.operate("team", "rebuild", before["name"])
    assert asked.exit == 0, asked.stderr
    task_id, progress = asked.stdout.strip(), 0
    for least in (5, 25):
        with installation.client() as client:
            progress = wait_until(lambda: counted(client, task_id, least), f"{least} sources are read")  # noqa: B023
            refusal = search(client)
        installation.crash()
        with installation.client() as client:
            # Sources that were read before the kill are not read again.
            assert wait_until(lambda: counted(client, task_id, 1), "the rebuild continues") >= progress
    assert (refusal.status_code, refusal.json()["error"]["code"]) == (409, "team_store_maintenance")
    assert int(refusal.headers["Retry-After"]) == refusal.json()["error"]["details"]["retry_after_seconds"] >= 1
    assert progress < FILES
    with installation.client() as client:
        client.delete(f"/v1/sources/{ids[0]}").raise_for_status()
        fresh = str(upload(client, BUCKET, "fresh.html", TEXT.format(number=FILES).encode()).json()["id"])
        task = wait_task(client, task_id)
        assert (task["status"], task["attempt"]) == ("succeeded", 1)
        assert wait_ended(client, fresh)["ready"]
        kept = {*ids[1:], fresh}
        wait_until(lambda: found(client, *range(FILES + 1)) == kept, "exactly the remaining sources are found")
        assert all(get_source(client, source_id)["ready"] for source_id in kept)
    installation.assert_intact()


def test_rebuild_requested_while_the_daemon_is_stopped_runs_at_the_next_start(installation: Installation) -> None:
    with installation.client() as client:
        ids = fill(client, 3)
        team = client.get("/v1/buckets").json()["team_id"]
    assert installation.operate("team", "rebuild", "nobody/else", "--json").failure == (5, "not_found")
    installation.stop()
    task = installation.operate("team", "rebuild", team, "--json").json
    again = installation.operate("team", "rebuild", team, "--json").json
    assert (task["type"], task["status"], again["id"]) == ("store_rebuild", "queued", task["id"])
    with installation.start().client() as client:
        assert (wait_task(client, task["id"])["status"], found(client, 0)) == ("succeeded", set(ids))


def overwrite(index: Path) -> None:
    index.write_bytes(index.read_bytes()[:4096] + os.urandom(index.stat().st_size - 4096))


def downgrade(index: Path) -> None:
    with closing(sqlite3.connect(index)) as connection:
        connection.execute("PRAGMA user_version = 1")


def remove(index: Path) -> None:
    """With its folder."""
    shutil.rmtree(index.parent)


@pytest.mark.index_files
def test_unusable_index_is_rebuilt_at_start_and_searches_are_refused_until_then(installation: Installation) -> None:
    with installation.client() as client:
        ids = fill(client, 5)
    for spoil in (overwrite, downgrade, remove):
        assert installation.stop() == 0
        (index,) = installation.files.index.glob("*.db")
        spoil(index)
        installation.start()
        pid = installation.pid
        with installation.client() as client:

            def is_ready() -> bool:
                assert search(client).json().get("error", {}).get("code") in (None, "team_store_maintenance")
                return bool(get_source(client, ids[0])["ready"])

            wait_until(is_ready, "the index is rebuilt")
            assert found(client, 0) == set(ids)
        assert installation.pid == pid
    assert installation.files.log.read_text().count("is lost: it is rebuilt from the stored files") == 3


LONG_TEXT = "# Quays\n\n" + "The umber quay was built of grey stone. " * 120


def test_bucket_set_changes_the_chunking_and_splits_the_sources_again(shared_installation: Installation) -> None:
    svc = shared_installation.svc
    (shared_installation.root / "quays.md").write_text(LONG_TEXT)
    assert svc("upload", "quays.md", "-b", "inbox").exit == 0
    changed = svc("bucket", "set", "inbox", "--chunk-size", "250", "--name", "In")
    assert (changed.exit, changed.stdout) == (0, "changed inbox; 1 sources are being split again\n")
    wait_until(lambda: "to be split" not in svc("bucket", "show", "inbox").stdout, "the source is split again")
    shown = svc("bucket", "show", "inbox").stdout
    assert ("250" in shown, "In" in shown) == (True, True)


def test_bucket_set_rejects_invalid_chunking_and_keeps_the_old_values(shared_installation: Installation) -> None:
    svc = shared_installation.svc

    def chunking() -> dict[str, int]:
        return dict(svc("bucket", "show", "outbox", "--json").json["chunking"])

    svc("bucket", "create", "outbox", "--chunk-size", "500", "--chunk-overlap", "50")
    assert chunking() == {"target": 500, "min": 400, "max": 550, "overlap": 50}
    assert (svc("bucket", "set", "outbox").exit, svc("bucket", "set", "outbox", "--chunk-size", "9").exit) == (2, 2)
    overlapping = ("--chunk-size", "200", "--chunk-overlap", "150")
    assert svc("bucket", "set", "outbox", *overlapping, "--json").failure == (3, "invalid_request")
    assert svc("bucket", "set", "outbox", "--chunk-size", "200", "--dry-run").stdout == "would change outbox\n"
    assert svc("bucket", "set", "outbox", "--chunk-overlap", "10").exit == 0
    assert (chunking()["target"], chunking()["overlap"]) == (500, 10)
