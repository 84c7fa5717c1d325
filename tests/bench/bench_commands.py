"""What `svc --version` and `svc --help` cost beyond an interpreter that does nothing."""

import statistics
import subprocess
import sys
from functools import partial

from tests.bench.installations import measured, read_options
from tests.bench.machines import report, timed

#: As the installed command starts: no search for a module to run.
_SVC = "import sys; from svc_cli.main import main; sys.exit(main())"
_COMMANDS = {
    "interpreter": ["-c", "pass"],
    "svc --version": ["-c", _SVC, "--version"],
    "svc --help": ["-c", _SVC, "--help"],
    "svc upload --help": ["-c", _SVC, "upload", "--help"],
}


def main() -> None:
    options = read_options(__doc__, rounds=25)
    with measured(options.folder, is_running=False) as unstarted:
        run = partial(subprocess.run, env=unstarted.environ, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        # In turns, so that a busy second slows all of them alike.
        runs_s = [
            {name: timed(partial(run, [sys.executable, *line]))[1] for name, line in _COMMANDS.items()}
            for _ in range(options.rounds)
        ]
    medians_ms = {name: statistics.median(run_s[name] for run_s in runs_s) * 1000 for name in _COMMANDS}
    bare_ms = medians_ms.pop("interpreter")
    beyond = {name: round(median_ms - bare_ms, 1) for name, median_ms in medians_ms.items()}
    report("commands", vars(options), {"interpreter_ms": round(bare_ms, 1), "beyond_it_ms": beyond})


if __name__ == "__main__":
    main()
