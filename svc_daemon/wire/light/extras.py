"""How an optional extra is installed, in the way in which this package was installed."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from svc_daemon.wire.light.parsing import parse_json
from svc_daemon.wire.light.versions import DISTRIBUTION


def install_command(extra: str) -> str:
    """Return the command that installs an optional extra.

    A name that is in no index helps nobody who has installed a checkout or a file. Places on the machine of a
    service are not named, since its clients see the command.
    """
    try:
        record: dict[str, Any] = parse_json(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        record = {}
    if "dir_info" in record:
        option = "-e " if record["dir_info"].get("editable") else ""
        return f"pip install {option}'.[{extra}]' (in the checkout)"
    if "archive_info" in record:
        name = PurePosixPath(unquote(urlsplit(str(record["url"])).path)).name
        return f"pip install '{name}[{extra}]' (where the file is)"
    return f"pip install '{DISTRIBUTION}[{extra}]'"
