"""Whether a fetched URL is a web page or a file, the error for the other door, and what a page is called."""

import html
import re

from svc_daemon.core.text.media_types import detect, text_encoding
from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode

_PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_PAGE_NAMES = (".html", ".htm", ".xhtml")
#: The element's start is found and its text ends at the next tag: its content is text alone.
_TITLE = re.compile(r"<title\b[^>]{0,200}>([^<]+)<", re.IGNORECASE)


def is_web_page(head: bytes, declared: str = "", filename: str = "") -> bool:
    """Whether bytes (all, or the first 8 KB and more) served with this `Content-Type` are HTML.

    Content decides over the declared type. The name counts only where the server does not speak of HTML: `index.php`
    is source code as a text, and a page as what it made.
    """
    declared = declared.partition(";")[0].strip().lower()
    return detect(head, "" if declared in _PAGE_TYPES else filename, declared) in _PAGE_TYPES


def refuse_web_page(head: bytes, declared: str, filename: str, bucket: str) -> None:
    """Raises 422 `url_is_web_page`, naming the bucket's door for pages, where a file import got one."""
    if head and is_web_page(head, declared, filename):
        raise ServiceError(
            ErrorCode.URL_IS_WEB_PAGE,
            "The URL is a web page. Send it to pages, or import its HTML as a file with force: true.",
            suggested_endpoint=f"/v1/buckets/{bucket}/pages",
        )


def refuse_file(head: bytes, declared: str, filename: str, bucket: str) -> None:
    """Raises 422 `url_is_file`, naming the bucket's door for imports, where a page ingestion got a document."""
    if head and not is_web_page(head, declared, filename):
        raise ServiceError(
            ErrorCode.URL_IS_FILE,
            "The URL is a file. Send it to files/import, or have it read as a page with force: true.",
            suggested_endpoint=f"/v1/buckets/{bucket}/files/import",
        )


def page_title(head: bytes, max_characters: int) -> str | None:
    """The title in the page's first bytes, in one line; None without one."""
    match = _TITLE.search(head.decode(text_encoding(head) or "utf-8", "replace"))
    words = html.unescape(match[1]).split() if match else []
    title = "".join(character for character in " ".join(words) if character.isprintable())
    return title[:max_characters].strip() or None


def page_file_name(name: str) -> str:
    """The name under which a page is kept: `index.php` is source code as a file, and a page as what it made."""
    return name if name.lower().endswith(_PAGE_NAMES) else f"{name[:240]}.html"
