"""What `svc --version` and `svc --help` cost beyond an interpreter that does nothing."""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.acceptance.installations import environment
from tests.bench.machines import report

#: As the installed command starts: no search for a module to run.
_SVC = "import sys; from svc_cli.main import main; sys.exit(main())"
_COMMANDS = {
    "interpreter": ["-c", "pass"],
    "svc --version": ["-c", _SVC, "--version"],
    "svc --help": ["-c", _SVC, "--help"],
    "svc upload --help": ["-c", _SVC, "upload", "--help"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        variables = environment(Path(folder), {})
        # In turns, so that a busy second slows all of them alike.
        runs_s = [{name: _run_s(line, variables) for name, line in _COMMANDS.items()} for _ in range(rounds)]
    medians_s = {name: statistics.median(run[name] for run in runs_s) for name in _COMMANDS}
    bare_s = medians_s.pop("interpreter")
    results = {name: round((median_s - bare_s) * 1000, 1) for name, median_s in medians_s.items()}
    report("commands", {"rounds": rounds}, {"interpreter_ms": round(bare_s * 1000, 1), "beyond_it_ms": results})


def _run_s(line: list[str], variables: dict[str, str]) -> float:
    begin_s = time.perf_counter()
    subprocess.run([sys.executable, *line], env=variables, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - begin_s


if __name__ == "__main__":
    main()
