"""`svc-daemon move` moves an installation into a cluster and back without changes, even if it is killed meanwhile."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from sqlite3 import OperationalError, connect
from typing import Any

import httpx
import psycopg
import pytest

from svc_daemon.cluster.s3.stores import open_objects
from svc_daemon.paths import DataFiles
from tests.acceptance import calls
from tests.acceptance.calls import get_source
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.sessions import Session
from tests.acceptance.test_events import list_events
from tests.cluster.milvus import PATIENT
from tests.cluster.nodes import RunningEngines
from tests.conftest import UNLIMITED, MakeInstallation

#: The number of uploaded files, and of kills in each direction.
SMALL, LARGE = (90, 3), (5000, 5)
#: The timeout of each step, at full size on a busy machine.
LONG_S = 3600.0


def begin_upload(client: httpx.Client, name: str) -> Session:
    """Open an upload session, and send the first half of its bytes."""
    data = b"The half sent quay. " * 20_000
    opened = client.post("/v1/buckets/inbox/uploads", json={"filename": name, "size_bytes": len(data)}).json()
    session = Session(opened["session_id"], opened["upload_url"], data)
    assert session.send(client.base_url.port or 0, 0, len(data) // 2) == len(data) // 2
    return session


def finish(client: httpx.Client, session: Session) -> None:
    """Send the other half, finalize the session, and assert that the source has all bytes."""
    half = len(session.data) // 2
    assert session.ask_offset(client.base_url.port or 0) == half
    session.send(client.base_url.port or 0, half)
    done = client.post(f"/v1/buckets/inbox/uploads/{session.id}/finalize").raise_for_status().json()
    assert get_source(client, done["id"])["sha256"] == sha256(session.data).hexdigest()


def upload(client: httpx.Client, content: bytes, name: str, key: str | None = None) -> str:
    return str(calls.upload(client, "inbox", name, content, key).raise_for_status().json()["id"])


def fill(home: Installation, files: int) -> None:
    """Upload small files with a unique word each, a large one, and sources of other kinds and states."""
    folder, numbers = home.root / "files", Random(13)
    folder.mkdir()
    for number in range(files):
        words = " ".join(numbers.choices(("grey", "stone", "quay", "bridge", "tower", "harbour"), k=40))
        (folder / f"{number}.md").write_text(f"# File {number}\n\nThe word{number} is here: {words}.\n")
    (folder / "large.txt").write_text("A large ochre file.\n" * 100_000)
    sent = home.svc("upload", str(folder), "-b", "inbox", "--json", timeout_s=LONG_S)
    assert sent.exit == 0, sent.stdout[-2000:] + sent.stderr
    with home.client() as client:
        client.put("/v1/buckets/other").raise_for_status()
        shared = upload(client, b"Shared by two buckets.\n", "shared.txt", "shared")
        client.post("/v1/buckets/other/sources", json={"source_id": shared}).raise_for_status()
        client.post("/v1/buckets/inbox/qa", json={"question": "Why?", "answer": "So."}).raise_for_status()
        upload(client, b"%PDF-1.4\nnothing", "broken.pdf")
        gone = upload(client, b"Soon gone.\n", "gone.txt")
        wait_until(lambda: is_settled(client), "all are indexed", LONG_S)
        client.delete(f"/v1/sources/{gone}").raise_for_status()


def list_sources(client: httpx.Client) -> dict[str, dict[str, Any]]:
    """Return each source in each bucket as the API shows it."""
    listed: dict[str, dict[str, Any]] = {}
    for bucket in ("inbox", "other"):
        page: dict[str, Any] = {"has_more": True, "last_id": ""}
        while page["has_more"]:
            query = {"limit": "100", "after": page["last_id"]}
            page = client.get(f"/v1/buckets/{bucket}/sources", params=query).json()
            listed |= {f"{bucket} {each['id']}": each for each in page["sources"]}
    return listed


def event_ids(client: httpx.Client) -> list[str]:
    """Return the ids of all events, oldest first."""
    return [str(event["id"]) for event in list_events(client)]


def status_of(client: httpx.Client, source_id: str) -> str | None:
    status: str | None = client.get(f"/v1/sources/{source_id}").json().get("status")
    return status


def search(client: httpx.Client, query: str) -> list[tuple[str, str]]:
    answer = client.post("/v1/search", json={"query": query, "buckets": ["inbox", "other"]})
    assert answer.status_code == 200, answer.text
    return [(hit["source_id"], hit["text"]) for hit in answer.json()["data"]]


def search_all(client: httpx.Client, files: int) -> dict[str, list[tuple[str, str]]]:
    """Return the best result of several searches, by query."""
    numbers = range(0, files, max(files // 40, 1))
    return {query: search(client, query)[:1] for query in ("shared buckets", *(f"word{number}" for number in numbers))}


def is_settled(client: httpx.Client) -> bool:
    """Whether the indexes are rebuilt and the queue is empty."""
    answer = client.post("/v1/search", json={"query": "stone", "buckets": ["inbox"]}).json()
    is_rebuilding = answer.get("error", {}).get("code") == "team_store_maintenance"
    return not is_rebuilding and not any(client.get("/healthz").json()["queue"].values())


@contextmanager
def serving(installation: Installation, key: Path | None = None) -> Iterator[httpx.Client]:
    """Run the installation, whose admin key is in the file `key`, and yield a client once its indexes are rebuilt."""
    if key is not None:
        installation.files.root.mkdir(parents=True, exist_ok=True)
        shutil.copy(key, installation.files.admin_key)
    installation.start()
    with installation.client() as client:
        wait_until(lambda: is_settled(client), "the indexes are rebuilt", LONG_S)
        yield client
    assert installation.stop() == 0


def contents(installation: Installation) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in installation.files.blobs.iterdir()}


def run_killed(mover: Installation, to: str, when: Callable[[], bool]) -> bool:
    """Kill the move once the condition is met, and return whether it was still running."""
    with mover.spawn("svc_daemon", "move", "--to", to, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: process.poll() is not None or when(), "the move's progress", LONG_S, 0.01)
        process.kill()
        return bool(process.wait() < 0)


def move(mover: Installation, to: str) -> dict[str, Any]:
    """Run the move, assert that it succeeds, and return its JSON output."""
    moved = mover.operate("move", "--to", to, "--json", timeout_s=LONG_S)
    assert moved.exit == 0, moved.stdout + moved.stderr
    return dict(moved.json)


def move_killed(mover: Installation, to: str, kills: int, files: int, count: Callable[[str], int]) -> int:
    """Kill the move at regular intervals of its bytes and its rows, then complete it; return the number of kills.

    `count` returns how many "blobs" or "memberships" the target has.
    """
    of_bytes = (kills + 1) // 2
    steps = [("blobs", files * step // (of_bytes + 1)) for step in range(1, of_bytes + 1)]
    steps += [("memberships", files * step // (kills - of_bytes + 1)) for step in range(1, kills - of_bytes + 1)]

    def has_come(what: str, most: int) -> bool:
        return count(what) >= most

    killed = sum(run_killed(mover, to, partial(has_come, what, most)) for what, most in steps)
    move(mover, to)
    return killed


def count_in_cluster(environ: dict[str, str], folder: Path, what: str) -> int:
    if what == "blobs":
        with ThreadPoolExecutor(1) as executor:
            return len(open_objects(environ["SVC_BLOBS_URL"], environ, folder, executor).blobs.list_ids())
    with psycopg.connect(environ["SVC_STATE_URL"]) as connection:
        try:
            (count,) = connection.execute("SELECT COUNT(*) FROM memberships").fetchone() or (0,)
        except psycopg.errors.UndefinedTable:
            return 0
    return int(count)


def count_in_folder(files: DataFiles, what: str) -> int:
    if what == "blobs":
        return len(list(files.blobs.iterdir())) if files.blobs.exists() else 0
    if not files.state.exists():
        return 0
    with closing(connect(f"file:{files.state}?mode=ro", uri=True)) as state:
        try:
            return int(state.execute("SELECT COUNT(*) FROM memberships").fetchone()[0])
        except OperationalError:
            return 0


@dataclass(frozen=True)
class Seen:
    """The sources, search results and webhook secret of an installation, as its clients see them."""

    files: int
    sources: dict[str, dict[str, Any]]
    results: dict[str, list[tuple[str, str]]]
    #: The secret of webhooks, which is derived from the installation's secret.
    secret: str

    @classmethod
    def by(cls, client: httpx.Client, files: int) -> "Seen":
        secret = client.get("/v1/webhooks/secret").json()["secret"]
        return cls(files, list_sources(client), search_all(client, files), secret)

    @property
    def shared(self) -> str:
        return self.results["shared buckets"][0][0]


@pytest.fixture
def home(make_installation: MakeInstallation) -> Installation:
    return make_installation("home", **UNLIMITED)


def test_move_into_a_cluster_and_back_keeps_everything_despite_kills(
    engines: RunningEngines, home: Installation, make_installation: MakeInstallation, tmp_path: Path, large: bool
) -> None:
    files, kills = LARGE if large else SMALL
    environ = engines.environ() | PATIENT
    node, back = make_installation("node", **UNLIMITED, **environ), make_installation("back", **UNLIMITED)
    mover = make_installation("home", **environ)
    home.start()
    fill(home, files)
    with home.client() as client:
        sessions = [begin_upload(client, name) for name in ("first.txt", "second.txt")]
        seen, events = Seen.by(client, files), event_ids(client)
    assert (all(seen.results.values()), len(seen.sources)) == (True, files + 4)
    assert home.stop() == 0
    stored = contents(home)
    count = partial(count_in_cluster, environ, tmp_path)
    killed = move_killed(mover, "cluster", kills, files, count)
    assert contents(home) == stored
    with serving(node, home.files.admin_key) as client:
        assert (Seen.by(client, files), event_ids(client)[: len(events)]) == (seen, events)
        again = upload(client, b"Shared by two buckets.\n", "shared.txt", "shared")
        assert again == seen.shared
        finish(client, sessions[0])
        wait_until(lambda: is_settled(client), "the upload is ready", LONG_S)
        assert node.operate("verify", "--read-data", timeout_s=LONG_S).exit == 0
        seen, events = Seen.by(client, files), event_ids(client)
    killed += move_killed(node, str(back.files.root), kills, files, partial(count_in_folder, back.files))
    assert killed == 2 * kills if large else killed > 0
    with serving(back, home.files.admin_key) as client:
        assert (Seen.by(client, files), event_ids(client)[: len(events)]) == (seen, events)
        finish(client, sessions[1])
    assert stored.items() <= contents(back).items()
    verified = back.operate("verify", "--read-data", timeout_s=LONG_S)
    assert verified.exit == 0, verified.stdout


def test_daemons_refuse_to_serve_a_partly_moved_or_moved_away_installation(
    engines: RunningEngines, home: Installation, make_installation: MakeInstallation, tmp_path: Path
) -> None:
    environ = engines.environ()
    mover, node = make_installation("home", **environ), make_installation("node", **UNLIMITED, **environ)
    home.start()
    fill(home, 40)
    # A running service can't be moved.
    assert mover.operate("move", "--to", "cluster", "--json").failure == (14, "svc_data_dir_locked")
    assert home.stop() == 0
    node.files.root.mkdir(parents=True)

    def refusals() -> list[str]:
        ended = [each.operate("serve") for each in (home, node)]
        assert [each.exit for each in ended] == [1, 1]
        return [each.stderr for each in ended]

    assert run_killed(mover, "cluster", lambda: count_in_cluster(environ, tmp_path, "blobs") > 2)
    left, half = refusals()
    assert ("is being moved to the cluster at 127.0.0.1" in left, "is being moved here" in half) == (True, True)
    assert home.operate("team", "create", "late", "--json").exit == 1
    assert node.verify("--json").failure == (2, "svc_data_dir_unreadable")
    move(mover, "cluster")
    assert "was moved to the cluster at" in home.operate("serve").stderr
    with serving(node, home.files.admin_key):
        # A cluster has no lock, so the move checks that no nodes are connected.
        refused = node.operate("move", "--to", str(tmp_path / "back"), "--json")
        assert (refused.failure, "1 node is connected" in refused.stdout) == ((3, "svc_move_refused"), True)
    # The refused move has left no trace.
    with serving(node, home.files.admin_key):
        pass


def test_move_is_refused_if_the_target_is_not_empty(
    engines: RunningEngines, home: Installation, make_installation: MakeInstallation
) -> None:
    environ = engines.environ()
    other = make_installation("other", **UNLIMITED)
    for installation in (home, other):
        with serving(installation) as client:
            client.put("/v1/buckets/inbox").raise_for_status()
            upload(client, b"The umber quay.\n", "quay.txt")
            wait_until(partial(is_settled, client), "the source is indexed")
    movers = {name: make_installation(name, **environ) for name in ("home", "other", "node")}
    movers["node"].root.mkdir()
    moved = move(movers["home"], "cluster")
    assert (moved["sources"], moved["copied_blobs"], moved["was_done"]) == (1, 1, False)
    assert move(movers["home"], "cluster")["was_done"]
    taken = (("other", "cluster"), ("node", str(other.files.root)), ("node", str(home.files.root)))
    for name, to in taken:
        refused = movers[name].operate("move", "--to", to, "--json")
        assert refused.failure == (3, "svc_move_refused"), refused.stdout
        assert "is not empty" in refused.stdout
    assert movers["node"].operate("move", "--to", "cluster", "--json").failure == (5, "svc_data_dir_not_found")
    # A refused move leaves the installation unchanged.
    with serving(other):
        pass


def test_move_stops_at_damaged_bytes_and_can_be_repeated_after_a_repair(
    engines: RunningEngines, home: Installation, make_installation: MakeInstallation
) -> None:
    with serving(home) as client:
        for bucket in ("inbox", "other"):
            client.put(f"/v1/buckets/{bucket}").raise_for_status()
        flipped, whole = (upload(client, f"The {word} quay.\n".encode(), f"{word}.txt") for word in ("umber", "teal"))
    path = home.files.blobs / flipped
    path.write_bytes(b"x" * path.stat().st_size)
    environ = engines.environ()
    mover, node = make_installation("home", **environ), make_installation("node", **UNLIMITED, **environ)
    refused = mover.operate("move", "--to", "cluster", "--json")
    assert (refused.failure, flipped in refused.stdout) == ((3, "svc_move_refused"), True)
    assert home.verify("--read-data", "--repair").exit == 0
    with serving(home) as client:
        later = upload(client, b"The ochre quay, which came later.\n", "ochre.txt")
        client.delete(f"/v1/sources/{whole}").raise_for_status()
    moved = move(mover, "cluster")
    assert (moved["sources"], moved["copied_blobs"]) == (2, 1)
    cancelled = mover.operate("move", "--to", "cluster", "--cancel", "--json")
    assert (cancelled.json["was_done"], "the other lacks" in cancelled.stderr) == (True, True)
    with serving(home) as client:
        assert [status_of(client, each) for each in (flipped, later, whole)] == ["failed", "active", None]
    with serving(node, home.files.admin_key) as client:
        assert [status_of(client, each) for each in (flipped, later, whole)] == ["failed", "active", None]
        assert [source_id for source_id, _ in search(client, "ochre")] == [later]
        assert node.verify("--read-data").exit == 0
