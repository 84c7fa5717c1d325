"""Helpers for tests of workers: sources that change while they are indexed or synced, and rebuilds of an index."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from svc_daemon.operations.index.rebuilding import rebuild_store
from svc_daemon.operations.index.syncing import clean_detachments
from tests.api.answers import body_of
from tests.api.daemons import NOTES, Daemon
from tests.api.sites import Receiver, hosting, receiving

#: Long enough for several chunks.
LONG = b"# Quays\n\n" + b"The umber quay was built of grey stone. " * 120


@contextmanager
def adding(daemon: Daemon, data: bytes = NOTES, **options: Any) -> Iterator[str]:
    """Add a source, and hold its indexing at `put_documents` until the end of the block."""
    with daemon.provider.held("put_documents") as hold:
        source_id = daemon.add_source(data, **options)
        hold.wait_entered()
        yield source_id


def add_joining(daemon: Daemon, **options: Any) -> str:
    """Add a source that joins `second` while it is put into the index, so that its buckets have to be synced."""
    daemon.make_bucket("second")
    with adding(daemon, **options) as source_id:
        join(daemon, source_id)
    return source_id


@contextmanager
def joining(daemon: Daemon, **options: Any) -> Iterator[str]:
    """Add a source that joins another bucket, and hold its sync at `set_buckets` until the end of the block."""
    with daemon.provider.held("set_buckets") as hold:
        source_id = add_joining(daemon, **options)
        hold.wait_entered()
        yield source_id


def add_unsynced(daemon: Daemon) -> str:
    """Add a source that is indexed and whose only bucket is not synced yet, and stop the workers."""
    daemon.make_bucket("second")
    daemon.start("indexing")
    with adding(daemon, bucket="second") as source_id:
        join(daemon, source_id, "inbox")
        leave(daemon, source_id)
    daemon.wait_status(source_id, "active")
    daemon.stop()
    daemon.loop.run(clean_detachments(daemon.context))
    return source_id


def join(daemon: Daemon, source_id: str, bucket: str = "second") -> None:
    daemon.post(f"/v1/buckets/{bucket}/sources", json={"source_id": source_id})


def leave(daemon: Daemon, source_id: str, bucket: str = "second") -> None:
    daemon.delete(f"/v1/buckets/{bucket}/sources/{source_id}")


def delete(daemon: Daemon, source_id: str) -> None:
    daemon.delete(f"/v1/sources/{source_id}")


@contextmanager
def importing(daemon: Daemon) -> Iterator[tuple[str, Receiver]]:
    """Import a source from a URL. Yields its id and the receiver of the webhook that is called when it is ready."""
    with hosting() as site, receiving() as receiver:
        body = {"url": site.url("/notes.md"), "webhook": {"url": receiver.url}}
        yield daemon.post("/v1/buckets/inbox/files/import", 201, json=body)["id"], receiver


def begin(daemon: Daemon, team_id: str | None = None) -> str:
    """Queue a rebuild of the team's index, and return the id of its task."""
    return daemon.loop.run(rebuild_store(daemon.context, team_id or daemon.team_id)).id


def show(daemon: Daemon, task_id: str) -> dict[str, Any]:
    return daemon.show(f"/v1/knowledge/tasks/{task_id}")


def wait_rebuilt(daemon: Daemon, task_id: str) -> dict[str, Any]:
    """Wait until the task has ended, and return it."""
    daemon.wait(lambda: bool(show(daemon, task_id)["finished_at"]), f"the end of {task_id}")
    return show(daemon, task_id)


def contents(daemon: Daemon) -> dict[str, tuple[int, tuple[str, ...], int]]:
    """Return the generation, buckets and number of chunks of each document in the index."""
    listed = daemon.provider.list_documents(daemon.team_id)
    return {each.source_id: (each.generation, each.bucket_ids, each.chunks) for each in listed}


def wait_gone(daemon: Daemon, source_id: str) -> None:
    daemon.wait(lambda: source_id not in contents(daemon), f"the index has nothing of {source_id}")


def index_file(daemon: Daemon) -> Path:
    return daemon.files.index / f"{daemon.team_id}.db"


def chunk_ids(daemon: Daemon, query: str) -> list[str]:
    """Return the ids of the chunks that a search finds, best first."""
    return [result["chunk_id"] for result in body_of(daemon.search(query))["data"]]
