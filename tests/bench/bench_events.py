"""What the event log costs: the daemon's processor time for a small document until it is ready, with and without it.

The daemons take turns, and nobody follows any of them. The documents are sent one in a request, by some clients at
once, and as packs of a hundred, where a document costs least.

Then what readers of the log cost: how long a single upload takes while nobody reads, and while many clients read a long
log from the oldest event on, again and again, in pages or as streams.
"""

import argparse
import asyncio
import json
import multiprocessing
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from statistics import fmean
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from tests.acceptance.calls import make_bucket
from tests.acceptance.installations import wait_until
from tests.bench.harness import Row, Side, all_sides, read_options, report, spread_ms
from tests.bench.loads import BUCKET, make_uploads, send, send_batch

PACK_FILES = 100
#: Between two uploads of the client that readers may slow, in seconds.
PAUSE_S = 0.02
#: Runs this checkout's daemon without its event log: patched before other modules take the functions from there.
WITHOUT = """
from svc_daemon.operations import events
events.source_event = lambda *_, **__: None
events.record_events = lambda _connection, _context, _team_id, happenings: [""] * len(happenings)
from svc_daemon.command.serve import start
start()
"""


def main() -> None:
    longer = {"readers": 30, "events": 100_000, "seconds": 4.0}
    options = read_options(__doc__, turns=10, files=200, size_bytes=2000, clients=4, **longer)
    costs: dict[tuple[str, str], list[float]] = {}
    with all_sides(options, is_running=False) as sides, all_sides(options, is_running=False) as (*_, without):
        without.name, without.runs = "now, without events", ("-c", WITHOUT)
        sides.append(without)
        for side in sides:
            with side.start().client() as client:
                make_bucket(client, BUCKET)
        for turn in range(options.turns + 1):
            for way in ("one by one", "packs"):
                # Who is first changes with each turn.
                for side in sides[:: 1 if turn % 2 else -1]:
                    cost_ms = _cost_ms(
                        side, options.files, options.size_bytes, 0 if way == "packs" else options.clients
                    )
                    costs.setdefault((way, side.name), []).append(cost_ms)
        # The first turn warms all up.
        middles = {at: round(_middle(each[1:]), 3) for at, each in costs.items()}
        rows: list[Row] = [{"way": way, "side": name, "processor_ms": ms} for (way, name), ms in middles.items()]
        rows += upload_beside_readers(sides[:-1], options)
    report("events", options, rows)


def _cost_ms(side: Side, files: int, size_bytes: int, clients: int) -> float:
    """Milliseconds of a processor for each file, from its request until it is ready; without clients, as packs."""
    before_s, run = side.processor_s(), uuid4().hex
    if clients:
        send([side], clients, map(make_uploads(side.key, size_bytes, run), range(files)))
    else:
        with side.client() as client:
            for start in range(0, files, PACK_FILES):
                numbers = range(start, min(start + PACK_FILES, files))
                send_batch(client, {f"{run}-{n}": _text(f"{run} {n}", size_bytes) for n in numbers}, is_packed=True)
    side.wait_idle()
    return (side.processor_s() - before_s) * 1000 / files


def upload_beside_readers(sides: Sequence[Side], options: argparse.Namespace) -> Iterator[Row]:
    """Latencies of one client's uploads, and the events a second that all readers got together."""
    took_s: dict[tuple[str, str], list[float]] = {}
    rates: dict[tuple[str, str], list[float]] = {}
    for side in sides:
        lengthen_log(side, options.events)
    for turn in range(options.turns):
        for readers in ("none", "pages", "streams"):
            for side in sides[:: 1 if turn % 2 else -1]:
                requests = map(make_uploads(side.key, options.size_bytes, uuid4().hex), count())
                at = (readers, side.name)
                with reading(side, readers, options.readers, options.events) as got:
                    before, until_s = got.value, time.perf_counter() + options.seconds
                    while at not in took_s or time.perf_counter() < until_s:
                        took_s.setdefault(at, []).extend(send([side], 1, [next(requests)]).latencies_s)
                        time.sleep(PAUSE_S)
                    rates.setdefault(at, []).append((got.value - before) / options.seconds)
    for (readers, name), each in took_s.items():
        facts = {"readers": readers, "side": name, "uploads": len(each), **spread_ms(each, "p50", "p90", "max")}
        yield facts | {"events_per_second": round(fmean(rates[readers, name]))}


def lengthen_log(side: Side, events: int) -> None:
    """Add so many events to the log of a daemon, which is stopped meanwhile."""
    side.stop()
    kinds = ("source.queued", "source.indexing", "source.active", "source.ready")
    data = json.dumps({"title": "The umber binder.md", "status": "active", "ready": True})
    with closing(sqlite3.connect(side.files.state)) as state, state:
        state.executemany(
            "INSERT INTO events (turn, id, team_id, created_at, type, bucket_ids, data, source_id)"
            " SELECT turn, ?, team_id, created_at, ?, bucket_ids, ?, ? FROM events WHERE seq = 1",
            ((f"evt_{n:026}", kinds[n % 4], data, f"src_{n // 4:026}") for n in range(events)),
        )
    side.start()


@contextmanager
def reading(side: Side, kind: str, readers: int, events: int) -> Iterator[Any]:
    """Have another process read while the block runs, unless `kind` is `none`; the number of events that it got."""
    got = multiprocessing.Value("q", 0)
    if kind == "none":
        yield got
        return
    process = multiprocessing.Process(target=read_log, args=(side.base_url, side.key, kind, readers, events, got))
    process.start()
    try:
        wait_until(lambda: got.value, "the first events")
        yield got
    finally:
        process.kill()
        process.join()


def read_log(base_url: str, key: str, kind: str, readers: int, events: int, got: Any) -> None:
    """Read the log from its oldest event on, again and again, with so many connections."""
    address = urlsplit(base_url)
    head = f"Host: localhost\r\nAuthorization: Bearer {key}\r\n"

    async def keep_reading() -> None:
        while True:
            reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=2**22)
            # The daemon may close a connection.
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                if kind == "pages":
                    await read_pages(reader, writer, head, got)
                else:
                    await read_stream(reader, writer, head, events, got)
            writer.close()

    async def work() -> None:
        await asyncio.gather(*(keep_reading() for _ in range(readers)))

    asyncio.run(work())


async def read_pages(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str, got: Any) -> None:
    query = ""
    while True:
        writer.write(f"GET /v1/events{query} HTTP/1.1\r\n{head}\r\n".encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        body = await reader.readexactly(int(answer.partition(b"content-length:")[2].split(b"\r\n")[0]))
        got.value += body.count(b'"object":"event"')
        # Only the end is parsed, since the client must not be what takes the time.
        page = json.loads(b"{" + body[body.rindex(b'"has_more"') :])
        query = f"?after={page['last_id']}" if page["has_more"] else ""


async def read_stream(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str, events: int, got: Any
) -> None:
    writer.write(f"GET /v1/events HTTP/1.1\r\n{head}Accept: text/event-stream\r\n\r\n".encode())
    seen = 0
    while seen < events and (data := await reader.read(2**16)):
        found = data.count(b"\ndata: ")
        seen, got.value = seen + found, got.value + found


def _text(name: str, size_bytes: int) -> bytes:
    return f"# Binder {name}\n\n".encode() + b"The umber binder leans on the shelf.\n" * (size_bytes // 37)


def _middle(values: list[float]) -> float:
    """The mean of the middle half, which is finer than the median."""
    cut = len(values) // 4
    return fmean(sorted(values)[cut : len(values) - cut])


if __name__ == "__main__":
    main()
