"""`svc`: the one place where an error becomes a line and an exit code.

`svc --version` is answered before anything is imported; everything else loads when it is needed.
"""

import sys
from typing import NoReturn

from svc_daemon.wire.versions import VERSION


def main() -> NoReturn:
    """Entry point of the `svc` command; never returns."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"svc {VERSION}\n")
        sys.exit(0)
    try:
        from svc_cli.app import run

        sys.exit(run(arguments))
    except KeyboardInterrupt:  # so early that nothing has begun
        sys.exit(130)


if __name__ == "__main__":
    main()
