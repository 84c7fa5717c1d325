"""A client of one upload session."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from tests.acceptance.installations import PATIENCE_S, wait_until


@dataclass(frozen=True)
class Session:
    """An upload session and the bytes to send."""

    id: str
    url: str
    data: bytes

    def ask_offset(self, port: int) -> int:
        """Ask the daemon how many bytes are stored."""
        return self._put(port, b"", f"bytes */{len(self.data)}")

    def send(self, port: int, first: int, end: int | None = None) -> int:
        """Send these bytes and return how many are stored; raises httpx.TransportError if the connection is cut."""
        part = self.data[first:end]
        return self._put(port, part, f"bytes {first}-{first + len(part) - 1}/{len(self.data)}")

    def _put(self, port: int, content: bytes, content_range: str) -> int:
        url = urlsplit(self.url)._replace(netloc=f"127.0.0.1:{port}").geturl()
        headers = {"Content-Range": content_range}

        def sent() -> httpx.Response | None:
            answer = httpx.put(url, content=content, headers=headers, trust_env=False, timeout=PATIENCE_S)
            is_busy = answer.status_code == 409 and answer.json()["error"]["code"] == "request_in_progress"
            return None if is_busy else answer

        # An earlier writer may still hold the session for a moment.
        answer = wait_until(sent, "an answer")
        if answer.status_code == 200:
            return len(self.data)
        assert answer.status_code == 308, answer.text
        stored = answer.headers.get("Range")
        return int(stored.removeprefix("bytes=0-")) + 1 if stored else 0
