"""The base class of AgentCalls and the other classes that `Client` combines, and the quoting of path components."""

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from svc_cli.client.transport import Reply, Request, Transport
from svc_cli.errors import UsageError


class Calls:
    """The base class of AgentCalls and the other classes from which `Client` inherits its methods.

    The methods here return Any, so that each method of the client can declare the type of its response.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        return self._call("GET", path, params=params)

    def _call(self, method: str, path: str, *, params: Mapping[str, str | int] | None = None, json: Any = None) -> Any:
        return self._transport.send(Request(method=method, path=path, params=params, json=json)).body

    def _create(self, path: str, json: Any, idempotency_key: str | None) -> Reply[Any]:
        """Create a source, an upload session or a batch, as soon as the rate limit for such requests allows."""
        key = key_or_random(idempotency_key)
        return self._transport.send(Request(method="POST", path=path, json=json, idempotency_key=key, is_create=True))


def key_or_random(idempotency_key: str | None) -> str:
    """Return the given key, or else a random one for this call, so that retries of the call create nothing twice."""
    return secrets.token_hex(16) if idempotency_key is None else idempotency_key


def part(text: str) -> str:
    """Percent-encode a path component.

    Raises UsageError if the text is empty, `.` or `..`, or contains a slash, because servers decode `%2F` to a slash.
    """
    if "/" in text or text in {"", ".", ".."}:
        raise UsageError(f"{text!r} is neither a slug nor an id.")
    return quote(text, safe="")
