"""Run `svc` and interrupt its main thread at an exact step: `python -m tests.acceptance.interrupting STEP WORDS…`.

Steps are the calls, lines and returns of the main thread once the command has begun, in svc's code and in the locks
of Python's threads and futures. The last line on stderr is the number of steps.
"""

import os
import signal
import sys
from types import FrameType
from typing import Any

from svc_cli.main import main

COUNTED = (*("svc_cli/transfer/", "svc_cli/sync/", "svc_cli/client/"), *("concurrent/futures/", "/threading.py"))


class Interrupter:
    """A trace function that raises SIGINT at the given step."""

    def __init__(self, step: int) -> None:
        self.steps = 0
        self._step = step

    def trace(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not any(part in name for part in COUNTED):
            return None
        if self.steps or (name.endswith("svc_cli/transfer/runs.py") and frame.f_code.co_name == "run"):
            self.steps += 1
            if self.steps == self._step:
                os.kill(os.getpid(), signal.SIGINT)
        return self.trace


if __name__ == "__main__":
    interrupter = Interrupter(int(sys.argv.pop(1)))
    sys.settrace(interrupter.trace)
    try:
        main()
    finally:
        sys.settrace(None)
        sys.stderr.write(f"\n{interrupter.steps} steps\n")
