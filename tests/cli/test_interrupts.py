"""Ctrl-C: an interrupt is raised at once, or at the end of a shielded block that holds locks of threads."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from svc_cli.client.api import Client
from svc_cli.client.new_files import Description
from svc_cli.errors import Interrupted
from svc_cli.interrupts import ENDING, InterruptHandler, listen, shielded
from svc_cli.progress import Silent
from svc_cli.transfer.contents import read
from svc_cli.transfer.queues import TransferQueue
from svc_cli.transfer.reports import Report, ReportItem
from svc_cli.transfer.runs import ThreadPool, TransferRun, take
from svc_cli.transfer.transfers import Transfer
from tests.acceptance.installations import PATIENCE_S, environment
from tests.cli.odd_servers import OddServer

#: Sends a signal when the command imports its own modules.
_PRESSES_WHILE_LOADING = """
import os, signal, sys

class Presser:
    def find_spec(self, name, path=None, target=None):
        if name == "svc_cli.exits":
            os.kill(os.getpid(), int(os.environ["PRESSED"]))

sys.meta_path.insert(0, Presser())
"""


@pytest.fixture(autouse=True)
def _listening() -> Iterator[None]:
    before, hook = {number: signal.getsignal(number) for number in ENDING}, sys.unraisablehook
    listen()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    sys.unraisablehook = hook


@pytest.mark.parametrize("wakes", [True, False], ids=["", "on Windows, at the end of a short wait"])
def test_interrupt_dropped_in_a_destructor_is_raised_again(
    wakes: bool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not wakes:
        monkeypatch.delattr(signal, "pthread_kill")

    def items() -> Iterator[int]:
        try:
            yield 1
        finally:
            signal.raise_signal(signal.SIGINT)

    taken = threading.Lock()
    taken.acquire()
    with pytest.raises(KeyboardInterrupt):
        next(items())  # destroys the generator, and Python drops the interrupt that is raised then
        for _ in range(1 if wakes else 100):
            taken.acquire(timeout=PATIENCE_S if wakes else PATIENCE_S / 100)
    assert "ignored" not in capfd.readouterr().err


@pytest.mark.parametrize("number", ENDING)
def test_each_ending_signal_raises_its_number_once(number: int) -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        signal.raise_signal(number)
    assert raised.value.args == (number,)
    # `timeout` sends SIGTERM twice, and the second must not cut off the answer.
    for repeated in (signal.SIGTERM, signal.SIGHUP):
        signal.raise_signal(repeated)


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    listen()
    signal.raise_signal(signal.SIGHUP)


def test_nested_shields_delay_an_interrupt_until_the_outermost_ends() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        with shielded():
            with shielded():
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")
        done.append("behind")
    assert done == ["inner", "outer"]


def test_shield_of_another_thread_does_not_delay_an_interrupt() -> None:
    handler = signal.getsignal(signal.SIGINT)
    assert isinstance(handler, InterruptHandler)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with shielded():
            entered.set()
            leave.wait(PATIENCE_S)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(PATIENCE_S)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    leave.set()
    thread.join()


def test_interrupt_reaches_a_waiting_main_thread_and_the_threads_finish_or_cancel_all_work() -> None:
    pool, done = ThreadPool(2, "test"), SimpleQueue[Future[bool]]()
    begun, go_on = threading.Semaphore(0), threading.Event()

    def work() -> bool:
        begun.release()
        return go_on.wait(PATIENCE_S)

    def press() -> None:
        for _ in range(2):
            begun.acquire()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    futures = [pool.give(work, done) for _ in range(4)]
    pressing = threading.Thread(target=press)
    with pytest.raises(KeyboardInterrupt):
        pressing.start()
        while take(done) is None:
            pass
    pressing.join()
    pool.end()
    go_on.set()
    assert sorted(id(take(done)) for _ in futures) == sorted(map(id, futures))
    assert sum(future.cancelled() for future in futures) == 2


def test_interrupt_propagates_while_a_batch_is_being_opened(odd: OddServer, tmp_path: Path) -> None:
    asked, interrupted = threading.Event(), threading.Event()

    def open_batch(_query: str) -> tuple[int, Any, dict[str, str]]:
        asked.set()
        assert interrupted.wait(PATIENCE_S)
        (items,) = [json.loads(body)["files"] for path, _, body in odd.calls if path.endswith("/batches")]
        place = {"session_id": "ses_1", "upload_url": f"{odd.url}/up"}
        opened = [place | {"client_file_id": each["client_file_id"]} for each in items]
        return 201, {"batch_id": "bat_1", "items": opened, "rejected": []}, {}

    odd.answers["POST /v1/buckets/bkt_1/batches"] = open_batch
    path = tmp_path / "a.md"
    path.write_text("Words.")
    content = read(path, 100)
    description = Description(filename="a.md", title="a.md", sha256=content.sha256)
    with (
        pytest.raises(KeyboardInterrupt),
        Client(odd.url, "sk-test") as client,
        TransferQueue(TransferRun(client, Silent(), Report(bucket="b"), lambda _: None), "bkt_1", 2, "batch") as queue,
    ):
        queue.add(Transfer(ReportItem(path="a.md", action="created"), content, description))
        queue.flush()
        assert asked.wait(PATIENCE_S)
        threading.Timer(0.1, interrupted.set).start()
        raise KeyboardInterrupt


def test_interrupt_is_delayed_while_a_follower_starts_or_joins_its_thread(
    odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answers["GET /v1/events"] = (200, b": hello\n\n", {"Content-Type": "text/event-stream"})
    done: list[str] = []
    with Client(odd.url, "sk-test") as client:
        follower = client.follow_events()
        for name, work in (("start", follower.__enter__), ("join", partial(follower.__exit__, None, None, None))):
            real = getattr(follower._thread, name)

            def pressed(*arguments: Any) -> None:
                signal.raise_signal(signal.SIGINT)
                real(*arguments)  # noqa: B023
                done.append(name)  # noqa: B023

            listen()
            with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
                patched.setattr(follower._thread, name, pressed)
                work()
        follower._thread.join(PATIENCE_S)
    assert done == ["start", "join"]


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("form", ([], ["--json"], ["--ndjson"]))
def test_signal_while_modules_are_imported_ends_the_command_with_its_json(
    number: int, form: list[str], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_PRESSES_WHILE_LOADING)
    path = f"{tmp_path}{os.pathsep}{Path.cwd()}"
    environ = {**environment(tmp_path, {}), "PYTHONPATH": path, "PRESSED": str(int(number))}
    words = [sys.executable, "-m", "svc_cli", "config", "path", *form]
    ended = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 128 + number
    assert ended.stderr == ""
    if form:
        assert json.loads(ended.stdout) == Interrupted.of(KeyboardInterrupt(number)).envelope()
    else:
        assert ended.stdout == ""
