"""HTML: all that a file shows, or the main part of a page from the web.

No script is run. In a file, nothing that is visible is left out. Of a web page, trafilatura finds the main text, and
the part of the page that holds it is read whole, without menus.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import lxml_html_clean  # noqa: F401  trafilatura needs it and does not ask for it by name
import trafilatura
from selectolax.lexbor import LexborHTMLParser
from trafilatura.settings import Document as TrafilaturaDocument

from svc_daemon.core.text.charsets import decode_declared, find_declared
from svc_daemon.core.text.chunking import Document
from svc_daemon.core.uploads import web_pages
from svc_daemon.extract.archives import check_entities
from svc_daemon.extract.builders import FlowDocument, one_line, sub_closed
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.html.styles import PageStyles
from svc_daemon.extract.formats.html.tables import HtmlBlock
from svc_daemon.extract.formats.html.walk import Extent, Walked, walk
from svc_daemon.extract.formats.text.texts import decode

#: The main part is used only if it has more than this share of the page's text.
_MAIN_SHARE = 1 / 3
#: The main part has at least this share of what trafilatura found.
_FOUND_SHARE = 0.95
#: Longer pages skip trafilatura, which takes a second per million characters.
_ARTICLE_CHARACTERS = 2_000_000
#: Shorter blocks may be in an article and in a menu. Each character of Chinese or Japanese is three bytes.
_UNIQUE_BYTES = 25
#: So many links, in blocks that hold nothing else, are a menu.
_MENU_LINKS = 4


def find_main_part(walked: Walked, markup: str) -> Sequence[HtmlBlock]:
    """Return the blocks of a page's main part: those around the text that trafilatura finds."""
    blocks = walked.blocks
    outside = [block for block in blocks if not block.in_menu] or blocks
    article: Any = None
    if len(markup) <= _ARTICLE_CHARACTERS:
        article = trafilatura.bare_extraction(markup, include_comments=False, include_links=True, favor_recall=True)
    body = article.body if isinstance(article, TrafilaturaDocument) else None
    found = "".join("".join(body.itertext()).split()) if body is not None else ""
    squeezed = ["".join(block.text.split()) for block in blocks]
    found_sizes = [
        len(text) if len(text.encode()) >= _UNIQUE_BYTES and not block.in_menu and text in found else 0
        for text, block in zip(squeezed, blocks, strict=True)
    ]
    sums = [0]
    for size in found_sizes:
        sums.append(sums[-1] + size)
    fitting = [each for each in walked.extents if sums[each.end] - sums[each.start] >= sums[-1] * _FOUND_SHARE]
    if not sums[-1] or not fitting:
        return outside
    start, end, extra = widen(walked, min(fitting, key=lambda each: each.end - each.start))
    main = [blocks[place] for place in range(start, end) if not (blocks[place].in_menu or extra[place])]
    # The page's main heading is often before the part.
    headings = [block for block in blocks[:start] if block.kind == "heading" and block.level == 1 and not block.in_menu]
    if headings and not any(block.kind == "heading" and block.level == 1 for block in main):
        main = [headings[-1], *main]
    is_enough = sum(len(block.text) for block in main) > sum(len(block.text) for block in outside) * _MAIN_SHARE
    return main if is_enough else outside


def widen(walked: Walked, found: Extent) -> tuple[int, int, bytearray]:
    """Return where the main part begins and ends, of which the smallest element with the found text is known.

    It has short texts too, such as prices and questions, which may be in a menu as well. So it is the whole article, or
    else the whole main element, and what is before and after it, up to a menu or a margin, but nothing outside of the
    main element. Also returns, for each block, whether the main part leaves it out, such as comments.
    """
    blocks, size = walked.blocks, len(walked.blocks)
    around = [each for each in walked.extents if each.start <= found.start and found.end <= each.end]
    mains = [place for place, each in enumerate(around) if each.kind == "main"]
    within = around[: mains[-1] + 1] if mains else around
    articles = [each for each in within if each.kind == "article"]
    start, end, _ = articles[-1] if articles else within[-1] if mains else found
    least, most = (within[-1].start, within[-1].end) if mains else (0, size)
    is_extra, is_end = bytearray(size), bytearray(block.in_menu for block in blocks)
    for first, behind, kind in walked.extents:
        if kind in {"margin", "extra"} and (behind <= found.start or found.end <= first):
            is_end[first:behind] = b"\1" * (behind - first)
            if kind == "extra":
                is_extra[first:behind] = b"\1" * (behind - first)
    for is_linked, run in groupby(range(size), lambda place: blocks[place].links > 0):
        places = list(run)
        if is_linked and sum(blocks[place].links for place in places) >= _MENU_LINKS:
            is_end[places[0] : places[-1] + 1] = b"\1" * len(places)
    is_end += b"\1"
    return max(least, is_end.rfind(1, 0, start) + 1), min(most, is_end.find(1, end)), is_extra


#: If less than this share of the page's text outside of its menus is read, a warning says so.
_WARNED_SHARE = 1 / 2

#: A page with a field for a password and less text is taken for a login form.
_FORM_CHARACTERS = 500
#: A page with scripts and less text is shown by its scripts.
_SHELL_CHARACTERS = 100
#: Where a page sends its readers within ten seconds.
_FORWARD = re.compile(r"""\s*\d?(?:\.\d*)?\s*[;,]\s*url\s*=\s*["']?([^"']+)["']?\s*""", re.IGNORECASE)

#: Text in two bytes for each character has more zeros.
_ODD_SHARE = 1 / 20

_NOSCRIPT = re.compile(r"(<noscript\b[^>]{0,200}>|</noscript\s*>)", re.IGNORECASE)
_XML = re.compile(r"\s*(?:<\?xml\s|<(?:!DOCTYPE|html)\b[^>]{0,500}\bxhtml\b)", re.IGNORECASE)
#: XML closes empty elements like this, which HTML takes for the beginning of the element.
_EMPTY_ELEMENT = re.compile(r"<([A-Za-z][\w.:-]*)((?:\s[^<>]*)?)/>")
_VOID = frozenset(
    {
        *(
            "area",
            "base",
            "br",
            "col",
            "embed",
            "hr",
            "img",
            "input",
            "link",
            "meta",
            "param",
            "source",
            "track",
            "wbr",
        ),
    }
)
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_PREFIX = re.compile(r"""\bxmlns:([A-Za-z][\w-]{0,30})\s*=\s*["']http://www\.w3\.org/1999/xhtml["']""")
#: The fork server reads this page once, which sets up the parsers for all children.
SAMPLE = b"<html lang=en><title>a</title><article><h1>b</h1><p>c d e.</p><ul><li>f</ul></article></html>"


def read(given: Given) -> Document:
    """Read a file, or the main part of a web page. Raises ExtractionFailed for XML entities."""
    check_entities([given.data])
    markup, warnings = decode_markup(given.data, given.charset)
    flow = FlowDocument()
    page, walked = _walk(flow, markup)
    blocks: Sequence[HtmlBlock] = walked.blocks
    if given.is_page:
        blocks = find_main_part(walked, markup)
        size, whole = (sum(len(block.text) for block in each) for each in (blocks, walked.blocks))
        outside = sum(len(block.text) for block in walked.blocks if not block.in_menu)
        if size < outside * _WARNED_SHARE:
            percent = size * 100 // outside
            flow.warn(f"Only the main part of the page was read, {percent} % of the text outside of its menus.")
        if walked.asks_password and size < _FORM_CHARACTERS:
            flow.warn(web_pages.LOGIN_WARNING)
        if whole < _SHELL_CHARACTERS and page.css_first("script") is not None:
            flow.warn(web_pages.SHELL_WARNING)
        for meta in page.css("meta[http-equiv][content]"):
            forward = _FORWARD.fullmatch(meta.attributes.get("content") or "")
            if forward and (meta.attributes.get("http-equiv") or "").lower() == "refresh":
                flow.warn(f"The page sends its readers on to another address, which was not read: {forward[1][:500]}")
    if page.css_first("frameset") is not None:
        flow.warn("It shows frames, whose pages are to be read by URLs of their own.")
    for block in blocks:
        block.write(flow)
    named = page.head.css_first("title") if page.head is not None else None
    titles = (block.text for block in walked.blocks if block.kind == "heading" and block.level == 1 and block.text)
    attributes = page.root.attributes if page.root is not None else {}
    return flow.finish(
        title=(one_line(named.text()) if named is not None else "") or next(titles, flow.headings.first),
        language=attributes.get("lang") or attributes.get("xml:lang"),
        warnings=warnings,
    )


def add_markup(flow: FlowDocument, markup: str) -> None:
    """Add all visible text of an HTML fragment or page."""
    _, walked = _walk(flow, markup)
    for block in walked.blocks:
        block.write(flow)


def decode_markup(data: bytes, label: str = "") -> tuple[str, tuple[str, ...]]:
    """Decode HTML by its mark, by the encoding that was given with it, or by what it declares itself.

    Returns warnings too, if it was guessed or has invalid places. Raises ExtractionFailed for binary data.
    """
    if 0 < data.count(0) < len(data) * _ODD_SHARE:
        # Browsers ignore these bytes in HTML, unless every character has one.
        data = data.replace(b"\0", b"")
    own = find_declared(data) or ""
    return decode(data, own if label and own and decode_declared(data, label) is None else label or own)


def _walk(flow: FlowDocument, markup: str) -> tuple[LexborHTMLParser, Walked]:
    if "<noscript" in markup or "<NOSCRIPT" in markup:
        # It is shown only where no scripts run. The parser would take some of it for what follows.
        pieces, closed = _NOSCRIPT.split(markup), True
        kept = []
        for place, piece in enumerate(pieces):
            closed = piece.startswith("</") if place % 2 else closed
            kept.append(piece if closed and not place % 2 else "")
        markup = "".join(kept)
    if _XML.match(markup):
        # XHTML and HTML understand empty elements, character data and prefixes differently.
        if prefix := _PREFIX.search(markup):
            markup = re.sub(rf"<(/?){prefix[1]}:", r"<\1", markup)
        markup = sub_closed(_CDATA, "]]>", lambda data: data[1].replace("&", "&amp;").replace("<", "&lt;"), markup)
        markup = _EMPTY_ELEMENT.sub(
            lambda empty: empty[0] if empty[1].lower() in _VOID else f"<{empty[1]}{empty[2]}></{empty[1]}>", markup
        )
    page = LexborHTMLParser(markup)
    root = page.body
    if root is None:
        return page, Walked([], [])
    walked = walk(root, PageStyles(page, markup))
    hidden_size = sum(len(text) for text, _ in walked.hidden)
    if hidden_size > sum(len(block.text) for block in walked.blocks) and page.css_first("script") is not None:
        # Scripts show most of the page, which their styles hide while it is loaded.
        walked = walk(root, PageStyles(page, ""))
    for text, reason in walked.hidden:
        flow.hide(text, reason)
    for kind, number in walked.parts.items():
        flow.note_part(kind, number)
    return page, walked
