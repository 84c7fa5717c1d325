"""Clients that follow a real daemon's event log get each event once and in order, despite delays, cuts and kills."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.acceptance.calls import make_bucket
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.sync_folders import fill

BUCKET = "inbox"
STREAM = {"Accept": "text/event-stream"}


class Follower:
    """Follows all events in a thread, and reconnects whenever the stream ends."""

    def __init__(self, installation: Installation, *, pause_s: float = 0.0, cuts: int = 0, every: int = 1) -> None:
        """Pause for `pause_s` after each `every` events, and there cut the connection `cuts` times in all."""
        self._installation = installation
        self._pause_s = pause_s
        self._cuts = cuts
        self._every = every
        #: The ids of all events received.
        self.seen: list[str] = []
        #: The cursor of the last event.
        self._cursor: str | None = None
        self.connections = 0
        self._is_over = False
        threading.Thread(target=self._run, daemon=True).start()

    def finish(self, last: str, timeout_s: float) -> list[str]:
        """Wait until the event `last` was received, and return the ids of all events up to it."""
        wait_until(lambda: last in self.seen, "the last event", timeout_s)
        self._is_over = True
        return self.seen[: self.seen.index(last) + 1]

    def _run(self) -> None:
        while not self._is_over:
            # The daemon may be dead or stopping.
            with suppress(httpx.TransportError, httpx.HTTPStatusError, KeyError, OSError):
                self._follow()
            time.sleep(0.02)

    def _follow(self) -> None:
        resumed = {"Last-Event-ID": self._cursor} if self._cursor else {}
        taken = 0
        with self._installation.client(**STREAM, **resumed) as client, client.stream("GET", "/v1/events") as stream:
            stream.raise_for_status()
            self.connections += 1
            for self._cursor, event in events_of(stream):
                self.seen.append(event["id"])
                taken += 1
                if taken % self._every == 0:
                    time.sleep(self._pause_s)
                    if self._cuts:
                        self._cuts -= 1
                        return


def events_of(stream: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events as they arrive, each with its cursor. Assert that `event` lines agree with the data."""
    fields: dict[str, str] = {}
    for line in stream.iter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and "data" in fields:
            event = json.loads(fields["data"])
            assert (event["type"], event["id"] in fields["id"]) == (fields["event"], False)
            yield fields["id"], event
            fields = {}


def list_events(client: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    """Return all events of all pages."""
    found: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        page = client.get("/v1/events", params=query | after).raise_for_status().json()
        found += page["data"]
        if not page["has_more"]:
            return found
        after = {"after": page["last_id"]}


@pytest.mark.rule("log.after", "log.streams", "log.cursors", "log.slow")
def test_each_follower_gets_each_event_once_and_in_order(make_installation: Any, large: bool) -> None:
    files, kills, cuts, every = (25_000, 3, 50, 1500) if large else (100, 1, 10, 20)
    one: Installation = make_installation(
        SVC_LIMIT_CREATES_PER_SECOND="0", SVC_LIMIT_BYTES_PER_MINUTE="0", SVC_NO_AUTOSTART="1"
    ).start()
    folder = str(fill(one.root / "files", files))
    with one.client() as client:
        make_bucket(client, BUCKET)
    followers = [
        Follower(one),
        Follower(one, pause_s=0.05 if large else 0.02, every=100 if large else 5),
        Follower(one, cuts=cuts, every=every),
    ]
    sending = threading.Thread(target=lambda: send_all(one, folder))
    sending.start()
    for kill in range(kills):
        wait_until(lambda: len(followers[0].seen) > files * (kill + 1) // (kills + 1), "events", 600)  # noqa: B023
        one.crash()
    sending.join(1200)
    with one.client() as client:

        def are_ready() -> bool:
            return len({event["source_id"] for event in list_events(client, types="source.ready")}) == files

        wait_until(are_ready, "all sources are ready", 600, every_s=1.0 if large else 0.1)
        truth = list_events(client)
        wait_until(lambda: not client.get("/healthz").json()["queue"]["running"], "no task runs")
        truth = list_events(client)
    ids = [event["id"] for event in truth]
    for follower in followers:
        assert follower.finish(ids[-1], 300) == ids
    assert len(set(ids)) == len(ids) >= 4 * files
    assert (followers[2].connections >= cuts, followers[0].connections >= kills + 1) == (True, True)
    by_source: dict[str, list[str]] = {}
    for event in truth:
        if event["source_id"]:
            by_source.setdefault(event["source_id"], []).append(event["type"].removeprefix("source."))
    assert {(types[0], *types[-2:]) for types in by_source.values()} == {("queued", "active", "ready")}
    one.assert_intact()


def send_all(one: Installation, folder: str) -> None:
    """Run `svc upload` until it succeeds, even if the daemon is killed meanwhile."""
    while one.svc("upload", folder, "-b", BUCKET, "--wait", "accepted", timeout_s=900).exit != 0:
        time.sleep(0.2)


@pytest.mark.rule("log.slow")
def test_event_stream_ends_when_its_key_is_revoked_or_the_daemon_stops(installation: Installation) -> None:
    with installation.client() as client:
        made = client.post("/v1/keys", json={"name": "follower", "preset": "read"}).raise_for_status().json()
        revoked = {"Authorization": f"Bearer {made['key']}"}
        with (
            installation.client(**STREAM, **revoked) as following,
            following.stream("GET", "/v1/events", params={"after": "latest"}) as stream,
        ):
            client.delete(f"/v1/keys/{made['id']}").raise_for_status()
            assert list(events_of(stream)) == []
        with (
            installation.client(**STREAM) as following,
            following.stream("GET", "/v1/events", params={"after": "latest"}) as stream,
        ):
            lines = stream.iter_lines()
            assert next(lines).startswith(":")
            assert installation.stop() == 0
            assert list(lines) == [""]
