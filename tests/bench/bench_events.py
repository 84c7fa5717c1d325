"""What the event log costs: the daemon's processor time for a small document until it is ready, with and without it.

The daemons take turns, and nobody follows any of them. The documents are sent one in a request, by some clients at
once, and as packs of a hundred, where a document costs least.
"""

from statistics import fmean
from uuid import uuid4

from tests.acceptance.calls import make_bucket
from tests.bench.harness import Row, Side, all_sides, read_options, report
from tests.bench.loads import BUCKET, make_uploads, send, send_batch

PACK_FILES = 100
#: Runs this checkout's daemon without its event log: patched before other modules take the functions from there.
WITHOUT = """
from svc_daemon.operations import events
events.source_event = lambda *_, **__: None
events.record_events = lambda _connection, _context, _team_id, happenings: [""] * len(happenings)
from svc_daemon.serve_command import start
start()
"""


def main() -> None:
    options = read_options(__doc__, turns=10, files=200, size_bytes=2000, clients=4)
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
    rows: list[Row] = [
        {"way": way, "side": name, "processor_ms": round(_middle(each[1:]), 3)} for (way, name), each in costs.items()
    ]
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


def _text(name: str, size_bytes: int) -> bytes:
    return f"# Binder {name}\n\n".encode() + b"The umber binder leans on the shelf.\n" * (size_bytes // 37)


def _middle(values: list[float]) -> float:
    """The mean of the middle half, which is finer than the median."""
    cut = len(values) // 4
    return fmean(sorted(values)[cut : len(values) - cut])


if __name__ == "__main__":
    main()
