"""The base class of the classes that `Client` combines."""

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from svc_cli.client.transport import Reply, Request, Transport
from svc_cli.errors import UsageError


class Calls:
    """The base class of AgentCalls and the other classes that `Client` combines.

    Its methods return Any, so that each method of the client declares its own type.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        return self._call("GET", path, params=params)

    def _call(self, method: str, path: str, *, params: Mapping[str, str | int] | None = None, json: Any = None) -> Any:
        return self._transport.send(Request(method=method, path=path, params=params, json=json)).body

    def _create(self, path: str, json: Any, idempotency_key: str | None) -> Reply[Any]:
        """Create a source, an upload session or a batch, within the rate limit."""
        key = key_or_random(idempotency_key)
        return self._transport.send(Request(method="POST", path=path, json=json, idempotency_key=key, is_create=True))


def key_or_random(idempotency_key: str | None) -> str:
    """Return the given key or a random one, so that retries create nothing twice."""
    return secrets.token_hex(16) if idempotency_key is None else idempotency_key


def part(text: str) -> str:
    """Percent-encode a path component. Raises UsageError for `.`, `..`, a slash or blank text.

    A slash can't be encoded, since servers decode `%2F`.
    """
    if "/" in text or text.strip() in {"", ".", ".."}:
        raise UsageError(f"{text!r} is neither a slug nor an id.")
    return quote(text, safe="")
