"""Request targets in absolute form (RFC 9112, section 3.2.2), as a client sends them that takes us for a proxy."""

import re
from urllib.parse import unquote

from starlette.types import Scope

_ABSOLUTE = re.compile(rb"https?://([^/]*)(.*)", re.IGNORECASE | re.DOTALL)


def origin_form(scope: Scope) -> Scope:
    """The request as if its target were the path alone; the host that it names is in `authority`, for the guards."""
    parts = _ABSOLUTE.fullmatch(scope["raw_path"]) if scope["type"] == "http" else None
    if parts is None:
        return scope
    raw_path = parts[2] or b"/"
    return {**scope, "authority": parts[1], "raw_path": raw_path, "path": unquote(raw_path.decode("ascii"))}
