"""A daemon whose bytes are on S3: outages of the store, and objects that the sweeper deletes."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from svc_daemon.extract.extractors import Extractor
from svc_daemon.operations.remove.sweeping import expire_sessions, sweep_objects
from tests.api import sessions
from tests.api.answers import details_of
from tests.api.daemons import NOTES, Daemon, OpenBytes
from tests.api.fixtures import extractor, loop
from tests.api.loops import Loop
from tests.cluster.object_store import ObjectStore
from tests.store.byte_suite import Node, new_session

__all__ = ["extractor", "loop"]

DAY_S = 86400


@pytest.fixture
def daemon(store: ObjectStore, loop: Loop, extractor: Extractor, tmp_path: Path) -> Iterator[Daemon]:
    class DaemonOnS3(Daemon):
        open_bytes: ClassVar[OpenBytes] = staticmethod(store.open_bytes)

    daemon = DaemonOnS3(loop, tmp_path / "data", extractor)
    daemon.make_bucket()
    yield daemon
    daemon.close()


def sweep(daemon: Daemon) -> None:
    """Run the sweeper over all objects."""
    after: str | None = ""
    while after is not None:
        after = daemon.loop.run(sweep_objects(daemon.context, after))


def test_uploads_are_refused_and_documents_wait_while_the_store_is_unavailable(
    store: ObjectStore, daemon: Daemon
) -> None:
    source_id, session = daemon.add_source(), sessions.open_session(daemon)
    assert sessions.part_kept(sessions.put_part(daemon, session, NOTES, 0, 9)) == "bytes=0-9"
    path = f"/v1/sources/{source_id}/content"
    store.proxy.stop()
    refused = [daemon.upload(), sessions.put(daemon, session, NOTES[10:], f"bytes 10-{len(NOTES) - 1}/{len(NOTES)}")]
    refused += [daemon.ask("GET", path), sessions.finalize(daemon, session)]
    for answer in refused:
        assert details_of(answer, "storage_full")["retry_after_seconds"] == int(answer.headers["Retry-After"]) == 5
    assert daemon.count("sources") == daemon.count("tasks") == 1
    daemon.start("indexing", "syncing", "shortages")
    daemon.wait(lambda: (daemon.show("/healthz")["shortage"] or {}).get("lack") == "store", "the shortage is noticed")
    store.start()
    daemon.wait_ready(source_id)
    assert daemon.task(source_id)["attempt"] == 1, "the outage was counted as an attempt"
    assert daemon.ask("GET", path).content == NOTES
    rest = sessions.put(daemon, session, NOTES[10:], f"bytes 10-{len(NOTES) - 1}/{len(NOTES)}")
    assert rest.json()["sha256"] == sessions.sha256_of(NOTES)


def test_sweeper_deletes_only_old_objects_without_a_row(daemon: Daemon) -> None:
    node, ended = Node(daemon.context.blobs, daemon.context.parts), new_session()
    source_id, session = daemon.add_source(), sessions.open_session(daemon)
    sessions.put_part(daemon, session, NOTES, 0, 9)
    stray = daemon.loop.run(node.keep(b"stored by a node that was killed before the commit"))
    daemon.loop.run(node.send({ended: 4}, b"sent"))
    everything = ({source_id, stray}, {session["session_id"], ended})

    def left() -> tuple[set[str], set[str]]:
        return set(daemon.blob_names()), set(daemon.part_ids())

    sweep(daemon)
    assert left() == everything, "the sweeper has deleted bytes whose rows may follow"
    daemon.advance(2 * DAY_S)
    sweep(daemon)
    assert left() == ({source_id, stray}, {session["session_id"]})
    daemon.advance(30 * DAY_S)
    daemon.loop.run(expire_sessions(daemon.context))
    sweep(daemon)
    assert left() == ({source_id}, set())
    assert daemon.read_blob(source_id) == NOTES
    assert list(daemon.files.blobs.iterdir()) == []
