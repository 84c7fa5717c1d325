"""A daemon whose state is on PostgreSQL: outages of the server, NUL characters, and planned upgrades."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from svc_daemon.cluster.migrations import migrate_shared
from svc_daemon.cluster.postgres.database import PostgresDatabase
from svc_daemon.databases.contract import Connection, Database
from svc_daemon.errors import UNAVAILABLE_RETRY_S, NotFound
from svc_daemon.extract.extractors import Extractor
from svc_daemon.offline.upgrading import upgrade_cluster
from svc_daemon.paths import DataFiles
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.store import migrations
from svc_daemon.store.migrations import MIGRATIONS
from tests.api.answers import body_of, details_of
from tests.api.daemons import NOTES, Daemon, OpenState
from tests.api.fixtures import extractor, loop
from tests.api.loops import Loop
from tests.cluster.postgres import PostgresEngine

__all__ = ["extractor", "loop"]


@pytest.fixture
def working(engine: PostgresEngine, loop: Loop, extractor: Extractor, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with a bucket `inbox` on its own database and with all workers running."""
    url = engine.make_database()

    def open_there(files: DataFiles, on_broken: Callable[[Exception], None]) -> Database:
        return PostgresDatabase(url, prepare=migrate_shared)

    class PostgresDaemon(Daemon):
        open_state: ClassVar[OpenState] = staticmethod(open_there)

    daemon = PostgresDaemon(loop, tmp_path / "data", extractor)
    daemon.make_bucket()
    daemon.start()
    yield daemon
    daemon.close()


@pytest.mark.rule("cluster.health")
def test_requests_are_refused_and_tasks_wait_while_the_server_is_unavailable(
    working: Daemon, engine: PostgresEngine
) -> None:
    first = working.add_ready(NOTES)
    waiting = working.add_source(b"# Second\n\nThe ochre bridge.\n", filename="b.md")
    engine.stop()
    for method, path in (("GET", "/v1/buckets"), ("GET", f"/v1/sources/{first}"), ("PUT", "/v1/buckets/other")):
        answer = working.ask(method, path)
        details_of(answer, "storage_full")
        assert int(answer.headers["Retry-After"]) == UNAVAILABLE_RETRY_S
    # The process is running, but a load balancer doesn't send requests to it.
    health = working.show("/healthz", key="")
    assert (health["status"], health["queue"]) == ("unavailable", None)
    details_of(working.ask("GET", "/healthz?ready=true", key=""), "storage_full")
    blobs = set(working.files.blobs.iterdir())
    details_of(working.ask("POST", "/v1/buckets/inbox/files", files={"file": ("c.md", NOTES)}), "storage_full")
    assert set(working.files.blobs.iterdir()) == blobs
    working.wake()
    working.wait(lambda: working.context.shortages.now is not None, "a worker reports the shortage")
    engine.start(engine.is_ready)
    working.wait(
        lambda: working.ask("GET", "/healthz?ready=true", key="").status_code == 200, "the service is available again"
    )
    working.wait_ready(waiting, working.add_source(b"# Third\n\nThe teal tower.\n", filename="d.md"))
    assert body_of(working.ask("GET", f"/v1/sources/{waiting}"))["status"] == "active"
    attempts = working.read(lambda c: [row[0] for row in c.execute("SELECT attempt FROM tasks").fetchall()])
    assert set(attempts) == {1}


def test_dry_run_of_an_upgrade_shows_the_migrations_without_applying_them(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def add_colours(connection: Connection) -> None:
        """Add the colours."""
        connection.execute("ALTER TABLE teams ADD COLUMN colour TEXT")

    url, files = engine.make_database(empty=True), DataFiles(tmp_path)
    cluster = ClusterSettings(state_url=url, blobs_url="s3://none/", index_url="http://127.0.0.1:9")
    with pytest.raises(NotFound):
        upgrade_cluster(cluster, {}, files, dry_run=True)
    PostgresDatabase(url, prepare=migrate_shared).close()
    monkeypatch.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, "m999_colours": add_colours})
    for dry_run in (True, True, False):
        report = upgrade_cluster(cluster, {}, files, dry_run=dry_run)
        assert [each.purpose for each in report.pending] == ["Add the colours."], dry_run
        assert (report.is_done, report.copy, report.nodes) == (not dry_run, None, 0)
    assert upgrade_cluster(cluster, {}, files, dry_run=False).pending == []
