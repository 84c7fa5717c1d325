"""The command line of `svc-daemon`, one module for each group of commands."""

import sys
from importlib.util import find_spec

if find_spec("fcntl") is None:  # its modules can't even be imported there
    sys.exit("error: svc-daemon runs on Linux and macOS; on Windows, run it in WSL (`wsl --install`).")
