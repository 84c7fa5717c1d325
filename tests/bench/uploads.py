"""Multipart uploads as bytes: every one another document, under another key, at no cost to the client."""

from urllib.parse import urlsplit

from tests.bench.loads import MakeRequest
from tests.corpus import Prose

_BOUNDARY = "bench-boundary"
#: Stands where each request gets its own number; the number has as many digits.
_PLACE = b"@@@@@@@@@@"


def upload_requests(base_url: str, path: str, key: str, size_bytes: int, run: str) -> MakeRequest:
    """Makes uploads of `size_bytes` of Markdown to `path`; `run` keeps the keys of one run from those of another."""
    document = _document(size_bytes)
    body = (
        f"--{_BOUNDARY}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{run}-{_PLACE.decode()}.md"\r\n'
        f"Content-Type: text/markdown\r\n\r\n"
    ).encode() + (document + f"\r\n--{_BOUNDARY}--\r\n".encode())
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(base_url).netloc}\r\nAuthorization: Bearer {key}\r\n"
        f"Idempotency-Key: {run}-{_PLACE.decode()}\r\nContent-Length: {len(body)}\r\n"
        f"Content-Type: multipart/form-data; boundary={_BOUNDARY}\r\n\r\n"
    ).encode()
    template = head + body
    return lambda number: template.replace(_PLACE, b"%010d" % number)


def _document(size_bytes: int) -> bytes:
    """Markdown of exactly this size, with the place for the number in its heading."""
    prose = Prose("uploads")
    text = b"# Document " + _PLACE + b"\n\n"
    while len(text) < size_bytes:
        text += prose.paragraph().encode() + b"\n\n"
    return text[:size_bytes]
