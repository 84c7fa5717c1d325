"""From starting the daemon's process to its first answer on /healthz: first start, and starts after that."""

import argparse
import tempfile
import time
from pathlib import Path

from tests.acceptance.installations import Installation
from tests.bench.installations import UNLIMITED
from tests.bench.machines import report, spread_ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        daemon = Installation(Path(folder) / "daemon", **UNLIMITED)
        first_s = _start_s(daemon)
        later_s = [_start_s(daemon) for _ in range(rounds)]
        results = {"first_ms": round(first_s * 1000, 1), "later": spread_ms(later_s)}
        report("daemon_start", {"rounds": rounds}, results, Path(folder))


def _start_s(daemon: Installation) -> float:
    begin_s = time.perf_counter()
    daemon.start()
    started_s = time.perf_counter() - begin_s
    daemon.stop()
    return started_s


if __name__ == "__main__":
    main()
