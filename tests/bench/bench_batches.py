"""How long a batch status takes with one pending batch and with many."""

import argparse
import tempfile
import time
from pathlib import Path

from svc_cli.client import Client, Description, Member
from tests.bench.installations import running_daemon
from tests.bench.machines import report, spread_ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--files", type=int, default=10, help="files of each batch")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--folder", type=Path, default=None, help="where the data directory is made")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as name,
        running_daemon(Path(name)) as daemon,
        Client(daemon.base_url, daemon.key) as client,
    ):
        client.ensure_bucket("bench")
        ids = [_open(client, 0, options.files)]
        one = _ask(client, ids, options.calls)
        ids += [_open(client, number, options.files) for number in range(1, options.batches)]
        many = _ask(client, ids, options.calls)
        results = {"one": one, "many": many, "times_as_long": round(many["p50_ms"] / one["p50_ms"], 2)}
        report("batches", {"batches": options.batches, "files": options.files}, results, Path(name))


def _open(client: Client, number: int, files: int) -> str:
    members = [
        Member(Description(filename=f"{each}.md", title=f"{number}/{each}.md", sha256="0" * 64), 1000)
        for each in range(files)
    ]
    return str(client.open_batch("bench", members, f"bench-{number}").body["batch_id"])


def _ask(client: Client, ids: list[str], calls: int) -> dict[str, float]:
    """What so many status calls took, spread over the batches."""
    took_s = []
    for number in range(calls + 20):
        begin_s = time.perf_counter()
        client.batch(ids[number * 7 % len(ids)])
        took_s.append(time.perf_counter() - begin_s)
    return spread_ms(took_s[20:])


if __name__ == "__main__":
    main()
