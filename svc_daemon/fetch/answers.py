"""An answer's status and headers as text."""

from collections.abc import AsyncGenerator

import httpcore

#: A tag or date that is longer is not kept: it would be stored with the source and sent back each time.
MAX_VALIDATOR_CHARACTERS = 1024

REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: 203 is a success that a proxy has had its hands on. 204, 205 and 206 bring no body, or not the whole of it.
SUCCESSES = frozenset({200, 203})
NOT_MODIFIED = 304


class Answer:
    """The head of an answer; its body is still on the wire."""

    def __init__(self, response: httpcore.Response) -> None:
        self.status = response.status
        self._response = response
        self._headers = [(name.lower(), _text(value)) for name, value in response.headers]

    def header(self, name: str) -> str:
        """The first header of this name, empty without one."""
        return next(iter(self.headers(name)), "")

    def headers(self, name: str) -> list[str]:
        key = name.lower().encode("ascii")
        return [value for header, value in self._headers if header == key]

    def validator(self, name: str) -> str | None:
        """A header to send back later; None where it is missing, or nothing that could be sent."""
        value = self.header(name)
        return value if value and value.isascii() and len(value) <= MAX_VALIDATOR_CHARACTERS else None

    async def body(self) -> AsyncGenerator[bytes, None]:
        """The bytes of the wire, their content coding still on them."""
        async for chunk in self._response.aiter_stream():
            yield chunk


def _text(value: bytes) -> str:
    """Headers are ASCII by the book, UTF-8 in practice, and Latin-1 where that fails."""
    try:
        return value.decode("utf-8").strip()
    except UnicodeDecodeError:
        return value.decode("latin-1").strip()
