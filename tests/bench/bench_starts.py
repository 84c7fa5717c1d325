"""From starting the daemon's process to its first answer on /healthz: first start, and starts after that."""

from tests.acceptance.installations import Installation
from tests.bench.installations import NEW_INTERPRETER, measured, read_options
from tests.bench.machines import report, spread_ms, timed


def main() -> None:
    options = read_options(__doc__, rounds=10)
    with measured(options.folder, is_running=False) as daemon:
        first_s, *later_s = [_start_s(daemon) for _ in range(options.rounds + 1)]
        results = {"first_ms": round(first_s * 1000, 1), "later": spread_ms(later_s)}
        report("daemon_start", vars(options), results, daemon.root)


def _start_s(daemon: Installation) -> float:
    _, started_s = timed(lambda: daemon.start(NEW_INTERPRETER))
    daemon.stop()
    return started_s


if __name__ == "__main__":
    main()
