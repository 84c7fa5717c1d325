"""What tests of rebuilds share."""

from pathlib import Path
from typing import Any

from svc_daemon.operations.rebuilding import rebuild_store
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.holds import PATIENCE_S


def begin(daemon: Daemon, team_id: str | None = None) -> str:
    """Ask for a rebuild; the task's id."""
    return daemon.loop.run(rebuild_store(daemon.context, team_id or daemon.team_id)).id


def show(daemon: Daemon, task_id: str) -> dict[str, Any]:
    return body_of(daemon.ask("GET", f"/v1/knowledge/tasks/{task_id}"))


def wait_rebuilt(daemon: Daemon, task_id: str) -> dict[str, Any]:
    """The task once it has ended."""

    def ended() -> dict[str, Any] | None:
        task = show(daemon, task_id)
        return task if task["finished_at"] else None

    return wait_until(ended, f"the end of {task_id}", PATIENCE_S)


def contents(daemon: Daemon) -> dict[str, tuple[int, tuple[str, ...], int]]:
    """Generation, buckets and number of chunks of each document in the index."""
    listed = daemon.provider.list_documents(daemon.team_id)
    return {each.source_id: (each.generation, each.bucket_ids, each.chunks) for each in listed}


def index_file(daemon: Daemon) -> Path:
    return daemon.files.index / f"{daemon.team_id}.db"


def chunk_ids(daemon: Daemon, query: str) -> list[str]:
    """Of what a search finds, best first."""
    return [result["chunk_id"] for result in body_of(daemon.search(query))["data"]]
