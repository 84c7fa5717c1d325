"""Every wait has an end: pauses that a service asks for, streams that are held back, and `--timeout`."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPMessage
from pathlib import Path
from typing import Any

import psutil
import pytest

from svc_cli.client import ApiError, BytesContent, Client, NetworkFailed, RetryPolicy, SvcError, WaitTimedOut
from svc_cli.client.events import RESYNC, EventFollower
from svc_cli.client.retries import refusal
from svc_cli.client.transport import Request
from svc_cli.daemon.process import Installation
from svc_cli.deadlines import GRACE_S, Deadline
from svc_cli.errors import BadAnswer, DaemonUnreachable
from svc_cli.exits import Exit
from svc_cli.transfer.transfers import stops_everything
from tests.acceptance.installations import PATIENCE_S, environment
from tests.cli.odd_servers import OddServer, Raw
from tests.cli.terminals import RunSvc
from tests.cli.test_client import new
from tests.conftest import MakeInstallation

HTML = b"<html>busy</html>"
DAY = {"Retry-After": "86400"}
BUSY = {"error": {"code": "upload_rate_limited", "message": "Slow down.", "retryable": True, "details": {}}}
#: Calls of each kind that a service or a proxy may put off, by the route that they use.
CALLS: dict[str, Callable[[Client], object]] = {
    "POST /v1/buckets/b/files": lambda client: client.upload("b", new("a", b"x")),
    "GET /v1/buckets": lambda client: client.buckets(),
    "POST /v1/buckets/b/batches/bat_1/finalize": lambda client: client.finalize_batch("b", "bat_1"),
    "POST /v1/search": lambda client: client.search("quay"),
    "POST /v1/responses": lambda client: client.ask("Where is the quay?"),
    "PUT /s/1": lambda client: client.send_bytes("/s/1", BytesContent(b"x")),
    "GET /v1/sources/src_1/content": lambda client: b"".join(client.source_content("src_1")),
}
PUT_OFF = [(status, body) for status in (429, 503) for body in (BUSY, HTML, b"")]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up streams that don't begin, and requests that are under way at the end, after half a second."""
    monkeypatch.setattr("svc_cli.client.events.BEGIN_S", 0.5)
    monkeypatch.setattr("svc_cli.client.events.POLL_S", 0.1)
    monkeypatch.setattr("svc_cli.deadlines.GRACE_S", 0.5)


@contextmanager
def lasting(least_s: float = 0.0, most_s: float = PATIENCE_S) -> Iterator[None]:
    """Assert that the block takes this long."""
    began_s = time.monotonic()
    yield
    assert least_s <= time.monotonic() - began_s < most_s


@pytest.mark.parametrize("route", CALLS)
def test_pause_of_a_day_ends_the_call_at_once_and_names_the_time(odd: OddServer, route: str) -> None:
    for status, body in PUT_OFF:
        odd.answers[route] = (status, body, DAY)
        odd.requests.clear()
        with Client(odd.url, "sk-test") as client, lasting(most_s=5), pytest.raises(SvcError) as ended:
            CALLS[route](client)
        assert (ended.value.exit, len(odd.requests)) == (Exit.TEMPORARY, 1), (status, body)
        assert "24 hours" in ended.value.message
        assert stops_everything(ended.value), "no other file is tried"


@pytest.mark.parametrize("route", CALLS)
def test_short_pause_is_followed_whoever_asks_for_it(odd: OddServer, route: str) -> None:
    for status, body in PUT_OFF:
        odd.answers[route] = [(status, body, {"Retry-After": "0.1"}), (200, {"status": "uploaded"}, {})]
        with Client(odd.url, "sk-test", policy=RetryPolicy(first_delay_s=0.001)) as client, lasting(0.1):
            CALLS[route](client)


def test_pause_beyond_what_is_left_is_not_begun(odd: OddServer) -> None:
    odd.answers["GET /v1/buckets"] = (503, HTML, {"Retry-After": "30"})
    with Client(odd.url, "sk-test") as client, lasting(most_s=5), pytest.raises(NetworkFailed, match="30 s"):
        client.deadline = Deadline(10)
        client.buckets()


def test_create_that_is_never_let_through_ends_with_the_time(odd: OddServer) -> None:
    odd.answers["POST /v1/buckets/b/files"] = (429, BUSY, {"Retry-After": "0.2"})
    with Client(odd.url, "sk-test") as client, lasting(1.0, 10), pytest.raises(WaitTimedOut):
        client.deadline = Deadline(1)
        client.upload("b", new("a", b"x"))
    assert len(odd.requests) > 2


def test_bytes_that_never_arrive_end_the_attempts_even_if_the_service_answers_questions(odd: OddServer) -> None:
    once: list[Any] = [(503, b"", {}), (308, b"", {})]
    odd.answers["PUT /s/1"] = once * 9
    with Client(odd.url, "sk-test", policy=RetryPolicy(first_delay_s=0.001)) as client, pytest.raises(NetworkFailed):
        client.send_bytes("/s/1", BytesContent(b"x"))
    assert len(odd.requests) < 18


@pytest.mark.parametrize("route", CALLS)
@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"])
def test_answer_that_trickles_or_never_comes_ends_with_the_time(odd: OddServer, route: str, start: bytes) -> None:
    odd.answers[route] = Raw(start, b"HTTP/1.1 100 Continue\r\n\r\n" if not start else b" ", 0.2)
    with Client(odd.url, "sk-test") as client, lasting(0.2, GRACE_S + 5), pytest.raises(WaitTimedOut):
        client.deadline = Deadline(0.2)
        CALLS[route](client)


def test_download_of_a_byte_now_and_then_is_refused(odd: OddServer) -> None:
    odd.answers["GET /v1/sources/src_1/content"] = Raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", 0.05
    )
    with Client(odd.url, "sk-test") as client, lasting(most_s=20), pytest.raises(BadAnswer, match="too slowly"):
        client._transport._policy = RetryPolicy(attempts=1)
        request = Request(method="GET", path="/v1/sources/src_1/content", silence_s=0.5)
        assert sum(map(len, client._transport.blocks(request))) < 1000


def test_after_the_end_nothing_is_sent(odd: OddServer) -> None:
    with Client(odd.url, "sk-test") as client:
        client.deadline = Deadline(0)
        for call in CALLS.values():
            with pytest.raises(WaitTimedOut):
                call(client)
    assert odd.requests == []


#: Streams of events as proxies spoil them: held back without and with a head, a login page, cut at once.
SPOILED: dict[str, Any] = {
    "no head": Raw(b"", b" ", PATIENCE_S),
    "head only": Raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", b" ", PATIENCE_S),
    "trickle": Raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", b":", 0.5),
    "page": (200, HTML, {"Content-Type": "text/html"}),
    "cut": (200, b": \n\n", {"Content-Type": "text/event-stream"}),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_stream_that_is_held_back_gives_way_to_polling(odd: OddServer, kind: str) -> None:
    events = [{"id": f"evt_{number}", "type": "source.ready", "data": {}} for number in range(3)]
    pages: list[Any] = [{"data": [], "last_id": "c0", "has_more": False}]
    pages += [{"data": [each], "last_id": each["id"], "has_more": False} for each in events]
    asked: list[str] = []

    def answer(query: str) -> Any:
        if odd.requests[-1][2]["Accept"] == "text/event-stream":
            return SPOILED[kind]
        asked.append(query)
        return 200, pages[len(asked) - 1] if len(asked) <= len(pages) else {**pages[0], "last_id": "evt_2"}, {}

    odd.answers["GET /v1/events"] = answer
    found: list[str] = []
    with (
        Client(odd.url, "sk-test") as client,
        client.follow_events({"types": "source"}) as follower,
        lasting(most_s=40),
    ):
        while len(found) < 3:
            found += [event["id"] for event in follower.take(PATIENCE_S) if event["type"] != RESYNC]
    assert found == ["evt_0", "evt_1", "evt_2"]
    assert ["after=latest" in asked[0], "after=c0" in asked[1], "after=evt_0" in asked[2]] == [True] * 3


@pytest.mark.parametrize("kind", ["no head", "head only", "trickle"])
def test_answer_that_is_streamed_too_slowly_ends_with_the_time(odd: OddServer, kind: str) -> None:
    odd.answers["POST /v1/responses"] = SPOILED[kind]
    with Client(odd.url, "sk-test") as client, lasting(1, 10), pytest.raises(WaitTimedOut):
        client.deadline = Deadline(1)
        list(client.ask_streaming("Where is the quay?"))


@pytest.mark.parametrize("words", [("search", "quay"), ("ask", "quay"), ("ask", "quay", "--json")])
def test_search_and_ask_end_with_their_timeout(
    svc: RunSvc, at_odd: RunSvc, odd: OddServer, words: tuple[str, ...]
) -> None:
    for path in ("search", "responses"):
        odd.answers[f"POST /v1/{path}"] = SPOILED["trickle"]
    with lasting(1, 20):
        late = svc(*words, "--timeout", "1s", "--base-url", odd.url)
    assert late.exit == Exit.TIMEOUT, late.stderr


def test_follower_of_a_service_that_is_away_fails() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with Client(url, "sk-test", policy=RetryPolicy(attempts=1)) as client, pytest.raises(NetworkFailed):
            EventFollower(client._transport, {}).__enter__()


def test_wait_ends_with_what_is_not_ready_even_if_the_service_falls_silent(odd: OddServer) -> None:
    odd.answers["GET /v1/events"] = odd.answers["GET /v1/sources"] = Raw(b"", b" ", PATIENCE_S)
    with Client(odd.url, "sk-test") as client, lasting(1, 10), pytest.raises(WaitTimedOut) as late:
        client.deadline = Deadline(1)
        client.wait_until_ready("src_1", timeout_s=client.deadline.left_s)
    assert late.value.details == {"source_ids": ["src_1"]}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_names_the_host_but_no_password_and_no_path(status: int) -> None:
    answered = HTTPMessage()
    answered["Location"] = "https://ann:s3cret@login.example:8443/token/abc?key=def"
    error = refusal("http://a", status, None, answered)
    assert "https://login.example:8443;" in error.message
    assert not any(secret in f"{error.message} {error.hint}" for secret in ("s3cret", "ann", "abc", "def"))


def test_upload_that_ran_out_of_time_counts_what_is_left_and_goes_on(
    make_installation: MakeInstallation,
) -> None:
    installation = make_installation(SVC_LIMIT_CREATES_PER_SECOND="3")
    installation.start()
    folder = installation.root / "docs"
    folder.mkdir()
    for number in range(12):
        folder.joinpath(f"{number}.md").write_text(f"words {number}")
    words = ("upload", "docs", "-b", "docs", "--mode", "one", "--json")
    late = installation.svc(*words, "--timeout", "2")
    error = late.json["error"]
    assert late.failure == (8, "svc_timeout")
    sent = len(late.json["items"])
    assert 0 < sent < 12
    assert (error["details"]["not_sent"], late.json["remaining"]) == (12 - sent, 12 - sent)
    assert "12" not in error["message"]
    assert f"{12 - sent} files not sent" in error["message"]
    again = installation.svc(*words)
    assert (again.exit, again.json["counts"]["created"] + again.json["counts"]["unchanged"]) == (0, 12)


def test_sync_that_ran_out_of_time_removes_nothing_and_goes_on(here: RunSvc) -> None:
    folder = Path("docs")
    folder.mkdir()
    folder.joinpath("gone.md").write_text("words that go")
    words = ("sync", "docs", "-b", "docs", "--prune", "delete", "--json")
    assert here(*words).exit == 0
    folder.joinpath("gone.md").unlink()
    for number in range(3):
        folder.joinpath(f"{number}.md").write_text(f"words {number}")
    late = here(*words, "--timeout", "0")
    assert late.failure == (8, "svc_timeout")
    listed = here("source", "ls", "-b", "docs", "--json").json["sources"]
    assert [source["title"] for source in listed] == ["gone.md"]
    again = here(*words)
    assert (again.exit, again.json["counts"]["created"], again.json["counts"]["deleted"]) == (0, 3, 1)


def test_deadline_counts_what_has_passed() -> None:
    none, some = Deadline(), Deadline(50)
    none.check()
    assert (none.within(None), none.within(3), none.timeout_s) == (None, 3, None)
    assert 49 < (some.within(None) or 0) <= 50
    assert (some.within(3), Deadline(0).left_s) == (3, 0)
    with pytest.raises(WaitTimedOut, match="0 s"):
        Deadline(0).check()


def test_refusal_without_a_pause_is_retried_as_before(odd: OddServer, tmp_path: Path) -> None:
    odd.answers["GET /v1/buckets"] = [(429, {"error": {"code": "x", "message": json.dumps(str(tmp_path))}}, {})] * 9
    with (
        Client(odd.url, "sk-test", policy=RetryPolicy(attempts=2, first_delay_s=0.001)) as client,
        pytest.raises(ApiError),
    ):
        client.buckets()
    assert len(odd.requests) == 2


class SlowInstallation(Installation):
    """An installation whose daemon takes a moment to begin."""

    def command(self, listen: str | None = None, faults: Path | None = None) -> list[str]:
        return ["sh", "-c", 'sleep 2; exec "$@"', "sh", *super().command(listen, faults)]


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # a daemon outlives its starter
@pytest.mark.parametrize("most_s", [None, 1])
def test_daemon_that_starts_slowly_is_waited_for_until_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_s: float | None
) -> None:
    # With a limit, a second daemon starts while the first may hold the lock without an answer for long.
    monkeypatch.setattr("svc_cli.daemon.process.START_TIMEOUT_S", 0.5 if most_s is None else PATIENCE_S)
    monkeypatch.setattr("svc_cli.daemon.process.STILL_STARTING_S", 0.5)
    slow = SlowInstallation(environment(tmp_path, {"SVC_LISTEN": "127.0.0.1:0"}))
    said: list[str] = []
    if most_s is not None:
        with pytest.raises(WaitTimedOut):
            slow.ensure_running(said.append, deadline=Deadline(most_s))
    try:
        daemon, _ = slow.ensure_running(said.append)
        slow.stop()
    finally:
        end_all_in(tmp_path)
    assert daemon.health.is_proven
    assert sum("still starting" in line for line in said) >= 2


def end_all_in(folder: Path) -> None:
    """End each process whose data is in this folder: one that was given up may begin when the other has stopped."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("SVC_DATA_DIR", "").startswith(str(folder)):
                process.kill()


class FailingInstallation(Installation):
    """An installation whose daemon takes a moment, and then ends without an answer."""

    end = ""

    def command(self, listen: str | None = None, faults: Path | None = None) -> list[str]:
        return ["sh", "-c", f"sleep 1; {self.end}"]


#: How the daemon ends, and what is shown of it.
ENDS = {
    "words": ("echo own words >&2; exit 3", ["own words"], 3),
    "log": ('echo \'{"msg": "own line"}\' >> LOG; exit 1', ['{"msg": "own line"}'], 1),
    "silent": ("exit 0", [], 0),
    "killed": ("kill -9 $$", [], -9),
}


@pytest.mark.parametrize("kind", ENDS)
def test_daemon_that_ends_while_it_is_waited_for_is_shown_with_its_own_lines_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("svc_cli.daemon.process.START_TIMEOUT_S", 0.1)
    installation = FailingInstallation(environment(tmp_path, {"SVC_LISTEN": "127.0.0.1:0"}))
    log = installation.files.log
    log.parent.mkdir(parents=True)
    log.write_text('{"msg": "older trouble"}\n')
    end, lines, exit_code = ENDS[kind]
    installation.end = end.replace("LOG", str(log))
    with lasting(1, 20), pytest.raises(DaemonUnreachable) as ended:
        installation.ensure_running(lambda _: None)
    assert ended.value.details == {"exit_code": exit_code, "log": lines}
    assert "older trouble" not in ended.value.message
