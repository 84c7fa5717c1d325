"""The version of this release, and the range of API versions that it supports.

This module imports nothing, so that `svc --version` takes no longer than starting Python.
"""

VERSION = "0.1.0"

#: The name of the Python package to install. On PyPI, `svc` is another project, so hints must not mention that name.
DISTRIBUTION = "svc-knowledge"

#: The oldest API version that this release supports.
API_OLDEST = 1
#: The newest API version that this release supports.
API_NEWEST = 1
API_RANGE = f"{API_OLDEST}-{API_NEWEST}"


def install_command(extra: str) -> str:
    """Return the command that installs an optional dependency (extra)."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
