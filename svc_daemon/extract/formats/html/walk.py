"""The visible text of a page as blocks, in its order: headings, paragraphs, list items, table rows and code.

The document is walked without recursion, because HTML may be nested to any depth. Text of inline elements stays
together; what a page shows side by side is separated by spaces.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from svc_daemon.extract.builders import one_line
from svc_daemon.extract.formats.html.inline import BREAK, InlineText
from svc_daemon.extract.formats.html.sight import OWN_COLOURS, STRUCK, SeenState
from svc_daemon.extract.formats.html.styles import PageStyles
from svc_daemon.extract.formats.html.tables import HtmlBlock, OpenTable
from svc_daemon.extract.formats.numerals import spell_number
from svc_daemon.extract.tables import HEADING_CHARACTERS

_ROMAN = {"i": "lowerRoman", "I": "upperRoman"}


class OpenList:
    """A list that has begun."""

    def __init__(self, node: LexborNode, attributes: Mapping[str, str | None], *, is_unmarked: bool) -> None:
        self._is_numbered = node.tag == "ol" and not is_unmarked
        self._type = attributes.get("type") or "1"
        self._step = -1 if "reversed" in attributes else 1
        first = 1 if self._step > 0 else sum(item.tag == "li" for item in node.iter())
        self._next = _integer(attributes.get("start"), first)

    def mark(self, value: str | None) -> str:
        """Return what is before the next item, whose number may be given; empty if it has none."""
        if not self._is_numbered:
            return ""
        number = _integer(value, self._next)
        self._next = number + self._step
        shown = str(number)
        if self._type in {"a", "A"} and number > 0:
            shown = ""
            while number:
                number, rest = divmod(number - 1, 26)
                shown = chr(ord(self._type) + rest) + shown
        if self._type in _ROMAN and number < 4000:
            shown = spell_number(number, _ROMAN[self._type])
        return f"{shown}. "


def _integer(digits: str | None, default: int) -> int:
    digits = (digits or "").strip()
    return int(digits) if digits.removeprefix("-").isdecimal() and len(digits) < 10 else default


#: Elements whose content is never shown, or only by programs that can't show the element itself.
_UNSEEN = frozenset(
    {
        *("head", "script", "style", "template", "iframe", "noscript", "noembed", "video", "audio", "canvas", "rp"),
        *("datalist", "metadata", "defs", "symbol", "annotation", "annotation-xml", "colgroup"),
    }
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html"),
        *("legend", "li", "listing", "main", "menu", "nav", "noframes", "ol", "optgroup", "p", "plaintext", "pre"),
        *("search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "xmp"),
        *_HEADINGS,
    }
)
#: Blocks that only separate their text from what is around them.
_PLAIN = frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "div", "footer", "header", "p", "section"}
)
#: Blocks whose attributes don't matter until they end.
_BARE = frozenset({"p", "tr", "td", "th", "tbody", *_HEADINGS})
_NO_ATTRIBUTES: Mapping[str, str | None] = {}
_CODE = frozenset({"pre", "listing", "plaintext", "xmp"})
_LISTS = frozenset({"ol", "ul", "menu", "dir"})
_ITEMS = frozenset({"li", "dd"})
_CELLS = frozenset({"td", "th"})
_TABLE_PARTS = frozenset({"thead", "tbody", "tfoot", *_CELLS})
#: Elements whose content is another's: what a field shows, or the words for a drawing.
_CLOSED = frozenset({"input", "select", "textarea", "title", "desc"})
#: Tables nested deeper are read as text, since each level copies its cells.
_NESTED_TABLES = 12


#: Elements and roles of what is beside a page's main part.
_MARGINS = frozenset({"aside", "footer", "complementary", "contentinfo", "dialog", "alertdialog", "search"})
_MARGIN_NAME = re.compile(r"(?<![A-Za-z])(?:footer|sidebar)|Footer|Sidebar|SideBar")
#: Names of what readers of the main part pass over, also within it: "post-comments" and "relatedNews", but not
#: "related-costs".
_EXTRA_NAME = re.compile(
    r"(?:^|[\s_-]|(?<=[a-z])(?=[A-Z]))"
    r"(?:ads?|adverts?|breadcrumbs?|comments?|consent|cookies?|newsletter|outbrain|promo|related|shar(?:e|ing)|social|"
    r"sponsored|taboola)"
    r"[_-]*(?:area|articles?|banner|bar|block|box|buttons?|container|content|form|icons?|items?|links?|list|media|news|"
    r"posts?|section|slot|stories|tools|unit|widget|wrapper)?(?!\S)",
    re.IGNORECASE,
)


#: Longer names of an element are not looked at.
_NAME_CHARACTERS = 1000


class Extent(NamedTuple):
    """The blocks of an element."""

    start: int
    #: The block after the last.
    end: int
    #: `main`, `article`, `menu`, `margin` or `extra`; empty for any other element.
    kind: str


def find_kind(tag: str, attributes: Mapping[str, str | None]) -> str:
    """Return the kind of an element's extent."""
    role = attributes.get("role")
    if tag == "nav" or role in {"navigation", "menubar"}:
        return "menu"
    if tag == "main" or role == "main":
        return "main"
    if tag == "article":
        return "article"
    names = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"[:_NAME_CHARACTERS]
    if _EXTRA_NAME.search(names):
        return "extra"
    return "margin" if tag in _MARGINS or role in _MARGINS or _MARGIN_NAME.search(names) else ""


class Walked(NamedTuple):
    """A page's blocks, and where its elements begin and end."""

    blocks: list[HtmlBlock]
    #: For each element with text. Inner elements come first.
    extents: list[Extent]
    #: Texts that aren't seen, and why.
    hidden: Sequence[tuple[str, str]] = ()
    #: How many of each kind of part the text has.
    parts: Mapping[str, int] = {}
    #: Whether a field for a password is seen.
    asks_password: bool = False


def walk(root: LexborNode, styles: PageStyles) -> Walked:
    """Return the visible blocks of an element. What isn't seen is kept apart."""
    walker, node, end = _PageWalk(styles), root, root.mem_id
    while True:
        tag = node.tag or ""
        if tag == "-text":
            walker.add_text(node.text_content or "")
        else:
            below = node.child if walker.enter(node, tag) else None
            if below is not None:
                node = below
                continue
            walker.leave(node, tag)
        following = node.next
        while following is None or node.mem_id == end:
            above = node.parent
            if above is None or node.mem_id == end:
                return walker.finish()
            node, following = above, above.next
            walker.leave(node, node.tag or "")
        node = following


class _PageWalk:
    """Adds each block to the innermost cell or heading, or to the page."""

    def __init__(self, styles: PageStyles) -> None:
        self._styles = styles.nodes
        self._seen = SeenState(styles.background)
        self._text = InlineText()
        #: The blocks of the page, then of each open cell or heading.
        self._sinks: list[list[HtmlBlock]] = [[]]
        #: For each open block: the page's number of blocks where it begins, and the kind of its extent.
        self._starts: list[tuple[int, str]] = []
        self._extents: list[Extent] = []
        self._tables: list[OpenTable] = []
        self._lists: list[OpenList] = []
        self._code = self._menus = 0
        #: What is before the first text of a list item; None if no item has just begun.
        self._marker: str | None = None

    def finish(self) -> Walked:
        self._flush()
        text = self._text
        return Walked(self._sinks[0], self._extents, self._seen.hidden, text.parts, text.asks_password)

    def add_text(self, text: str) -> None:
        if self._seen.reason:
            self._seen.hidden.append((text, self._seen.reason))
        else:
            self._text.pieces.append(text)

    def enter(self, node: LexborNode, tag: str) -> bool:
        """Begin an element. Returns whether what it holds is to be walked."""
        style = self._styles.get(node.mem_id)
        if style is not None:
            if style.hidden:
                inner = [each for each in node.traverse(include_text=True) if each.tag == "-text"]
                texts = [each.text_content or "" for each in inner if each.parent and each.parent.tag not in _UNSEEN]
                self._seen.hidden.append((" ".join(texts), style.hidden))
                return False
            self._seen.enter(node.mem_id, style)
            if tag not in _BLOCKS and style.box:
                self.stand_apart(style.box)
        if tag in _BLOCKS:
            self._flush()
            self.enter_block(node, tag)
        elif tag == "br":
            self._text.pieces.append("\n" if self._code else BREAK)
        elif tag in _UNSEEN:
            return False
        else:
            if tag in OWN_COLOURS and (style is None or style.colour is None):
                self._seen.enter_coloured(node.mem_id)
            if tag in STRUCK:
                self._seen.enter_struck(node.mem_id)
            if not self._seen.reason:
                self._text.enter(node, tag)
        return tag not in _CLOSED and node.mem_id not in self._text.repeated

    def leave(self, node: LexborNode, tag: str) -> None:
        """End an element that was begun, even if it wasn't walked."""
        style = self._styles.get(node.mem_id)
        if style is not None and style.hidden:
            return
        if tag in _BLOCKS:
            self._flush()
            self.leave_block(node, tag)
        elif not self._seen.reason:
            self._text.leave(node, tag)
        if style is not None or tag in OWN_COLOURS or tag in STRUCK:
            self._seen.leave(node.mem_id)
        if style is not None and style.box and tag not in _BLOCKS:
            self.stand_apart(style.box)

    def stand_apart(self, box: str) -> None:
        """Separate an element from the text beside it."""
        if box == "block":
            self._flush()
        else:
            self._text.pieces.append(" ")

    def enter_block(self, node: LexborNode, tag: str) -> None:
        attributes = node.attributes if tag not in _BARE else _NO_ATTRIBUTES
        kind = find_kind(tag, attributes)
        self._menus += kind == "menu"
        self._starts.append((len(self._sinks[0]), kind))
        if tag in _PLAIN:
            return
        if tag in _HEADINGS:
            self._text.headings += 1
            self._sinks.append([])
        elif tag == "table":
            self._tables.append(OpenTable())
        elif self._tables and tag in _TABLE_PARTS:
            if tag not in _CELLS:
                self._tables[-1].begin_group()
            elif len(self._tables) <= _NESTED_TABLES:
                self._sinks.append([])
        elif tag in _LISTS:
            style = self._styles.get(node.mem_id)
            is_unmarked = self._menus > 0 or (style is not None and style.is_unmarked)
            if style is not None and style.numbering:
                attributes = {**attributes, "type": style.numbering}
            self._lists.append(OpenList(node, attributes, is_unmarked=is_unmarked))
        elif tag in _ITEMS:
            self._marker = self._lists[-1].mark(attributes.get("value")) if self._lists and tag == "li" else ""
        self._code += tag in _CODE

    def leave_block(self, node: LexborNode, tag: str) -> None:
        if tag in _PLAIN:
            pass
        elif tag in _HEADINGS:
            self.end_heading(_HEADINGS[tag])
        elif tag == "table":
            self._tables.pop()
        elif 0 < len(self._tables) <= _NESTED_TABLES and tag in _CELLS:
            attributes = node.attributes
            self._tables[-1].add_cell(self._sinks.pop(), tag, attributes.get("colspan"), attributes.get("rowspan"))
        elif 0 < len(self._tables) <= _NESTED_TABLES and tag == "tr":
            self._sinks[-1].extend(self._tables[-1].end_row())
        elif tag in _LISTS:
            self._lists.pop()
        elif tag in _ITEMS:
            self._marker = None
        self._code -= tag in _CODE
        start, kind = self._starts.pop()
        self._menus -= kind == "menu"
        if start < len(self._sinks[0]):
            self._extents.append(Extent(start, len(self._sinks[0]), kind))

    def end_heading(self, level: int) -> None:
        """Add a heading, whose labels follow it unless they are all that it has."""
        blocks, in_menu = self._sinks.pop(), self._menus > 0
        labels, self._text.labels = one_line(" ".join(self._text.labels)), []
        self._text.headings -= 1
        words = " ".join(block.text for block in blocks)
        heading = one_line(words or labels).removesuffix("¶").rstrip()
        if len(blocks) > 1 and (
            len(heading) > HEADING_CHARACTERS or any(block.kind in {"heading", "row"} for block in blocks)
        ):
            # An element that wasn't closed holds more than a heading.
            heading, rest = blocks[0].text, blocks[1:]
        else:
            rest = []
        links = sum(block.links for block in blocks)
        self._sinks[-1].append(HtmlBlock("heading", heading, level, in_menu=in_menu, links=links))
        self._sinks[-1].extend(rest)
        if words and labels:
            self._sinks[-1].append(HtmlBlock("paragraph", labels, in_menu=in_menu))

    def _flush(self) -> None:
        """Add the text collected so far as a block."""
        if not self._text.pieces and not self._text.readings:
            return
        text = self._text.take(is_code=self._code > 0)
        if text and not text.isspace():
            kind = "code" if self._code else "paragraph" if self._marker is None else "item"
            text, self._marker = f"{self._marker or ''}{text}", None
            self._sinks[-1].append(HtmlBlock(kind, text, in_menu=self._menus > 0, links=self._text.links))
        if self._text.options:
            options, self._text.options = self._text.options, []
            self._sinks[-1] += [HtmlBlock("paragraph", each, in_menu=self._menus > 0) for each in options]
