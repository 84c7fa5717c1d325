"""Which content is a web page and which is a file, and the title and file name of a page."""

import html
import re
from collections.abc import Sequence

from svc_daemon.core.text.charsets import decode_declared, find_declared
from svc_daemon.core.text.media_types import declared_charset, detect, marked_encoding, text_encoding
from svc_daemon.errors import ServiceError
from svc_daemon.wire.light.error_codes import ErrorCode

_PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_PAGE_NAMES = (".html", ".htm", ".xhtml")
#: The warning of a page with little text and a field for a password.
LOGIN_WARNING = "The page asks for a password: what was read may be its login form."
#: The warning of a page that its scripts show, such as one that asks whether its reader is a robot.
SHELL_WARNING = "The page shows hardly any text without its scripts, which are not run."
_LESS = (
    (LOGIN_WARNING, "login_form", "has become a login form"),
    (SHELL_WARNING, "needs_scripts", "shows hardly any text without its scripts now"),
)
#: A `title` element contains only text, so it ends at the next tag.
_TITLE = re.compile(r"<title\b[^>]{0,200}>([^<]+)<", re.IGNORECASE)
#: A drawing may have a title of its own.
_DRAWING = re.compile(r"<svg\b", re.IGNORECASE)


def is_web_page(head: bytes, declared: str = "", filename: str = "") -> bool:
    """Return whether a response is an HTML page, judged by `head`: its first 8 KB or more, or all of it.

    The content counts more than the declared type. The file name counts only if the server doesn't declare HTML.
    """
    declared = declared.partition(";")[0].strip().lower()
    return detect(head, "" if declared in _PAGE_TYPES else filename, declared) in _PAGE_TYPES


def refuse_web_page(head: bytes, declared: str, filename: str, bucket: str) -> None:
    """Raise 422 `url_is_web_page` if a file import has fetched a page."""
    if head and is_web_page(head, declared, filename):
        raise ServiceError(
            ErrorCode.URL_IS_WEB_PAGE,
            "The URL is a web page. Send it to pages, or import its HTML as a file with force: true.",
            suggested_endpoint=f"/v1/buckets/{bucket}/pages",
        )


def refuse_file(head: bytes, declared: str, filename: str, bucket: str) -> None:
    """Raise 422 `url_is_file` if a page import has fetched a file."""
    if head and not is_web_page(head, declared, filename):
        raise ServiceError(
            ErrorCode.URL_IS_FILE,
            "The URL is a file. Send it to files/import, or have it read as a page with force: true.",
            suggested_endpoint=f"/v1/buckets/{bucket}/files/import",
        )


def refuse_lesser_page(warnings: Sequence[str], earlier: Sequence[str]) -> None:
    """Raise 502 `website_analysis_failed` if the warnings of a page say that another is shown in its place."""
    for warning, reason, change in _LESS:
        if warning in warnings and warning not in earlier:
            message = f"The page {change}, so the old text stays."
            raise ServiceError(ErrorCode.WEBSITE_ANALYSIS_FAILED, message, reason=reason)


def page_title(head: bytes, max_characters: int, declared: str = "") -> str | None:
    """Return the page's title as one line, or None. `declared` is the media type, which may name the encoding."""
    # What follows may end within a character.
    until = head.lower().partition(b"</title")[0]
    until = head[: len(until) + 1]
    labels = filter(None, (declared_charset(declared), find_declared(head)))
    found = (
        None if marked_encoding(head) else next(filter(None, (decode_declared(until, each) for each in labels)), None)
    )
    text = found[0] if found else head.decode(text_encoding(head) or "utf-8", "replace")
    match = _TITLE.search(_DRAWING.split(text, maxsplit=1)[0])
    words = html.unescape(match[1]).split() if match else []
    title = "".join(character for character in " ".join(words) if character.isprintable())
    return title[:max_characters].strip() or None


def page_file_name(name: str) -> str:
    """Return the file name of a stored page: it ends in `.html`, since `index.php` would be read as source code."""
    return name if name.lower().endswith(_PAGE_NAMES) else f"{name[:240]}.html"
