"""HTML: the main article of a page if there is one, otherwise all of its visible text.

No script is run. trafilatura finds the article, without menus and footers. If it omits most of the text, the whole page
is read, because missing text is worse than an included menu.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import lxml_html_clean  # noqa: F401  trafilatura needs it and does not ask for it by name
import trafilatura
from selectolax.lexbor import LexborHTMLParser, LexborNode
from trafilatura.settings import Document as TrafilaturaDocument

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.archives import check_entities
from svc_daemon.extract.builders import HEADING_CHARACTERS, FlowDocument, one_line
from svc_daemon.extract.formats import Given
from svc_daemon.extract.formats.texts import decode

#: The article is used only if it has more than this share of the page's text and of its blocks.
_ARTICLE_SHARE = 1 / 3
#: Longer pages skip trafilatura, which takes a second per million characters.
_ARTICLE_CHARACTERS = 2_000_000
#: Maximum number of headings (h1) among which the page's main heading is searched.
_MOST_HEADINGS = 10

#: Markup without these tags is a fragment. All of it is read, because trafilatura omits a fragment's first heading.
_PAGE = re.compile(r"<(?:html|!doctype)\b", re.IGNORECASE)

#: Number of characters of an article's beginning that are searched for in the page, to find where the article begins.
_COMPARED = 50

_UNSEEN = frozenset({"head", "script", "style", "noscript", "template", "svg", "iframe", "object", "select", "button"})
_FURNITURE = frozenset({"nav", "header", "footer", "aside", "form"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset"),
    *("figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section"),
    *("summary", "table", "tbody", "tfoot", "thead", "tr", "ul", *_HEADINGS),
}
_KINDS = {"li": "item", "dd": "item", "pre": "code", "tr": "row"}
_LINE_BREAK = re.compile(r"<br\b[^>]{0,200}>", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
#: The fork server reads this page once, which sets up the parsers for all children. For pages as short as this,
#: trafilatura also uses jusText, whose first use takes 140 ms.
SAMPLE = b"<html lang=en><title>a</title><article><h1>b</h1><p>c d e.</p><ul><li>f</ul></article></html>"
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{2,40})""", re.IGNORECASE)


def read(given: Given) -> Document:
    """Read the main article, or the whole page. Raises ExtractionFailed for XML entities."""
    check_entities([given.data])
    markup, warnings = decode(given.data)
    declared = _CHARSET.search(given.data[:4096])
    if warnings and declared:
        with suppress(LookupError, UnicodeDecodeError):
            markup, warnings = given.data.decode(declared[1].decode("ascii")), ()
    page = LexborHTMLParser(markup)
    whole, article = FlowDocument(), FlowDocument()
    _add_page(whole, page, _UNSEEN | _FURNITURE)
    if len(markup) <= _ARTICLE_CHARACTERS and _PAGE.search(markup):
        _add_article(article, markup, page)
    # Compare the numbers of blocks too, because trafilatura may return a short page as one block.
    is_enough = article.size > whole.size * _ARTICLE_SHARE and article.count > whole.count * _ARTICLE_SHARE
    flow = article if is_enough else whole
    if not flow.size:
        # All text is in menus and forms, which are better than nothing.
        _add_page(flow, page, _UNSEEN)
    title = page.css_first("title") or page.css_first("h1")
    return flow.finish(
        title=one_line(title.text()) if title is not None else None,
        language=page.root.attributes.get("lang") if page.root is not None else None,
        warnings=warnings,
    )


def add_markup(flow: FlowDocument, markup: str) -> None:
    """Add all visible text of an HTML fragment or page."""
    _add_page(flow, LexborHTMLParser(markup), _UNSEEN)


def _find_heading(page: LexborHTMLParser) -> str:
    """Return the page's main heading (h1); empty if there is none outside menus and footers, or if it is too long."""
    # Look at the first headings only: a page may have any number of them, nested to any depth.
    for heading in page.css("h1")[:_MOST_HEADINGS]:
        outer = heading.parent
        while outer is not None and outer.tag not in _FURNITURE:
            outer = outer.parent
        if outer is None:
            text = one_line(_visible_text(heading.html or ""))
            return text if len(text) <= HEADING_CHARACTERS else ""
    return ""


def _is_omitted(heading: str, article: Sequence[Any], page: LexborHTMLParser) -> bool:
    """Return whether the heading comes before the article in the page, but isn't in the article."""
    blocks = [_squeezed(_text(element)) for element in article]
    wanted, first = _squeezed(heading), next(filter(None, blocks), "")
    if not wanted or not first or article[0].tag == "head" or any(block.startswith(wanted) for block in blocks):
        return False
    seen = _squeezed(_visible_text(page.html or ""))
    return 0 <= seen.find(wanted) < seen.find(first[:_COMPARED])


def _visible_text(markup: str) -> str:
    shown = LexborHTMLParser(_LINE_BREAK.sub(" ", markup))
    shown.strip_tags([*_UNSEEN])
    return shown.root.text() if shown.root is not None else ""


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _add_article(flow: FlowDocument, markup: str, page: LexborHTMLParser) -> None:
    """Add the article that trafilatura finds, under the page's heading, which trafilatura often omits."""
    found = trafilatura.bare_extraction(
        # trafilatura drops line breaks in table cells, which would join words.
        _LINE_BREAK.sub(" ", markup),
        include_comments=False,
        include_formatting=True,
        include_links=True,
        favor_recall=True,
    )
    body = found.body if isinstance(found, TrafilaturaDocument) else ()
    heading = _find_heading(page)
    if len(body) and _is_omitted(heading, list(body), page):
        flow.add_heading(1, heading)
    for element in body:
        if element.tag == "head":
            level = str(element.get("rend") or "h2")[1:]
            flow.add_heading(int(level) if level.isdigit() else 2, _words(element))
        elif element.tag == "list":
            flow.add_all("item", (one_line(_text(item, without="list")) for item in element.iter("item")))
        elif element.tag == "table":
            for row in element.iter("row"):
                flow.add_row(_words(cell) for cell in row.iter("cell"))
        elif element.tag in {"code", "quote"}:
            # trafilatura returns preformatted text as a quote, unless it is code.
            flow.add("code" if element.tag == "code" else "paragraph", _text(element))
        else:
            flow.add("paragraph", _words(element))
        flow.add("paragraph", one_line(element.tail or ""))


def _words(element: Any) -> str:
    return one_line(_text(element))


def _text(element: Any, without: str = "") -> str:
    """Return an element's text with line breaks, without descendants of the tag `without`."""
    pieces = [element.text or ""]
    for child in element:
        if child.tag != without:
            pieces.append("\n" if child.tag == "lb" else _text(child, without))
        pieces.append(child.tail or "")
    return "".join(pieces)


def _add_page(flow: FlowDocument, page: LexborHTMLParser, unseen: frozenset[str]) -> None:
    """Add a page's visible text, without recursion, because HTML may be nested to any depth."""
    root = page.body
    if root is None:
        return
    writer, node = _Writer(flow), root
    while True:
        writer.take(node, entered=True)
        below = node.child if node.tag not in unseen else None
        if below is not None:
            node = below
            continue
        while True:
            writer.take(node, entered=False)
            if node.mem_id == root.mem_id:
                return
            if node.next is not None:
                node = node.next
                break
            if node.parent is None:
                return
            node = node.parent


class _Writer:
    """Collects text until a block ends, and adds it as a block. The innermost block element decides its kind."""

    def __init__(self, flow: FlowDocument) -> None:
        self._flow = flow
        self._blocks: list[str] = []
        self._pieces: list[str] = []

    def take(self, node: LexborNode, *, entered: bool) -> None:
        """Process a node. Called on entering it and again on leaving it."""
        tag = node.tag or ""
        if tag == "-text":
            if entered:
                text = node.text_content or ""
                self._pieces.append(text if self._in("pre") else _SPACES.sub(" ", text))
        elif tag == "br":
            self._pieces.append("\n" if entered else "")
        elif tag in {"td", "th"}:
            self._pieces.append("" if entered or not self._in("tr") else " | ")
        elif tag in _BLOCKS and (tag == "tr" or not self._in("tr")):
            self._flush()
            if entered:
                self._blocks.append(tag)
            elif self._blocks:
                self._blocks.pop()

    def _in(self, tag: str) -> bool:
        return bool(self._blocks) and self._blocks[-1] == tag

    def _flush(self) -> None:
        """Add the text collected so far as a block."""
        text, self._pieces = "".join(self._pieces), []
        tag = self._blocks[-1] if self._blocks else ""
        if tag in _HEADINGS:
            self._flow.add_heading(_HEADINGS[tag], text)
        elif tag == "tr":
            self._flow.add_row(text.split(" | "))
        elif text:
            self._flow.add(_KINDS.get(tag, "paragraph"), text)
