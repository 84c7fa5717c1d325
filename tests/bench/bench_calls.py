"""How much of the code an upload, a finalize, a search and a sync enter: files and calls of the daemon and of `svc`.

Each is counted on daemons that have done it before; an upload, a finalize and a sync until the source is ready. What
reads documents is another process and not counted, nor is what a coroutine does after it has waited.
"""

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from uuid import uuid4

import httpx

from tests.acceptance.calls import make_bucket, search, upload
from tests.acceptance.installations import wait_until
from tests.bench.harness import Row, Side, all_sides, read_options, report
from tests.bench.loads import BUCKET, make_files, open_batch

#: Runs a module and counts the calls of the project's functions by file; writes them at SIGUSR2, and at the end.
COUNTED = """
import atexit, collections, json, os, runpy, signal, sys, threading
calls, codes = collections.Counter(), {}
def count(frame, event, _):
    if event != "call":
        return
    code = frame.f_code
    if code not in codes:
        codes[code] = code.co_code if {"svc_daemon", "svc_cli"} & set(code.co_filename.split(os.sep)) else b""
    # RESUME 0 begins a function; RESUME 1 and more go on after a yield or await.
    if codes[code] and codes[code][frame.f_lasti + 1] == 0:
        calls[code.co_filename] += 1
def write(*_):
    until_now = calls.copy()
    calls.clear()
    with open(f"{os.getpid()}.staged", "w") as file:
        json.dump(until_now, file)
    os.replace(file.name, f"{os.getpid()}.calls")
signal.signal(signal.SIGUSR2, write)
atexit.register(write)
threading.setprofile(count)
sys.setprofile(count)
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def main() -> None:
    options = read_options(__doc__)
    rows: list[Row] = []
    with all_sides(options, is_running=False) as sides:
        for side in sides:
            side.runs = ("-c", COUNTED)
            side.start()
        for act, run in ACTS.items():
            for side in sides:
                make_files(side.root / "files", 2, 4096)
                with side.client() as client:
                    make_bucket(client, BUCKET)
                    run(side, client)
                    rows.append({"act": act, "side": side.name} | run(side, client))
    report("calls", options, rows)


def _upload(side: Side, client: httpx.Client) -> Row:
    return _daemon(side, lambda: upload(client, BUCKET, "note.md", uuid4().bytes.hex().encode()).raise_for_status(), 1)


def _finalize(side: Side, client: httpx.Client) -> Row:
    finalize = open_batch(client, {uuid4().hex: uuid4().bytes.hex().encode()}, is_packed=False)
    return _daemon(side, finalize, 1)


def _search(side: Side, client: httpx.Client) -> Row:
    return _daemon(side, lambda: search(client, "a note", BUCKET), 0)


def _sync_new(side: Side, _: httpx.Client) -> Row:
    (side.root / "files" / f"{uuid4().hex}.md").write_text("# A new note")
    return _sync(side, 1)


def _sync_nothing(side: Side, _: httpx.Client) -> Row:
    return _sync(side, 0)


def _sync(side: Side, ready: int) -> Row:
    """The daemon's part, and that of `svc`."""
    ended: list[int] = []

    def run() -> None:
        process = side.spawn("svc_cli", "sync", "files", "-b", BUCKET, "-q")
        ended.append(process.pid)
        if process.wait():
            raise RuntimeError(f"svc sync ended with {process.returncode}")

    daemon = _daemon(side, run, ready)
    return daemon | _figures("command", _read_calls(side, ended[0]))


def _daemon(side: Side, act: Callable[[], object], ready: int) -> Row:
    """What the daemon enters from the act until so many more sources are ready."""
    wanted = _count_ready(side) + ready
    os.kill(side.pid or 0, signal.SIGUSR2)
    _read_calls(side, side.pid or 0)
    act()
    wait_until(lambda: _count_ready(side) >= wanted, "the source is ready", every_s=0.005)
    os.kill(side.pid or 0, signal.SIGUSR2)
    return _figures("daemon", _read_calls(side, side.pid or 0))


def _figures(name: str, calls: dict[str, int]) -> Row:
    return {f"{name}_files": len(calls), f"{name}_calls": sum(calls.values())}


def _count_ready(side: Side) -> int:
    """Read from the state: a request would be counted."""
    with closing(sqlite3.connect(f"file:{side.files.state}?mode=ro", uri=True)) as state:
        return int(state.execute("SELECT count(*) FROM memberships WHERE sync_status = 'active'").fetchone()[0])


def _read_calls(side: Side, pid: int) -> dict[str, int]:
    path = side.root / f"{pid}.calls"
    wait_until(path.exists, "the calls of a process")
    calls: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return calls


ACTS: dict[str, Callable[[Side, httpx.Client], Row]] = {
    "upload": _upload,
    "finalize": _finalize,
    "search": _search,
    "sync, one new": _sync_new,
    "sync, nothing to do": _sync_nothing,
}

if __name__ == "__main__":
    main()
