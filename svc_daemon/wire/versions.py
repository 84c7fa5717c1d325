"""The release, and the range of API versions that it supports.

Nothing is imported here, so that `svc --version` costs no more than the interpreter.
"""

VERSION = "0.1.0"

#: What pip installs. The public index has a stranger's package called `svc`, so no hint may name that.
DISTRIBUTION = "svc-knowledge"

#: Oldest and newest API version this release speaks; both sides send them as `Svc-Api: 1-1`.
API_OLDEST = 1
API_NEWEST = 1
API_RANGE = f"{API_OLDEST}-{API_NEWEST}"


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
