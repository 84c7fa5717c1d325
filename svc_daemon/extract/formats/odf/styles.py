"""Styles of OpenDocument files: what they hide, and the numbers of lists and headings."""

import re
from functools import lru_cache
from typing import NamedTuple

from lxml import etree

from svc_daemon.extract.formats.numerals import spell_number

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
#: Prefixes of the names in this package, and their namespaces.
_NAMESPACES = {
    **{
        prefix: f"{_OASIS}{name}:1.0"
        for prefix, name in (
            *(("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style")),
            *(("presentation", "presentation"), ("chart", "chart"), ("form", "form"), ("meta", "meta")),
            *(("fo", "xsl-fo-compatible"), ("svg", "svg-compatible"), ("manifest", "manifest"), ("dr3d", "dr3d")),
        )
    },
    "dc": "http://purl.org/dc/elements/1.1/",
    "xlink": "http://www.w3.org/1999/xlink",
    "math": "http://www.w3.org/1998/Math/MathML",
    "xml": "http://www.w3.org/XML/1998/namespace",
    "loext": "urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0",
}
_PREFIXES = {namespace: prefix for prefix, namespace in _NAMESPACES.items()}
#: Longer chains of styles are cut.
_PARENTS = 30
#: Lists have at most so many levels.
LEVELS = 10
_SIZE = re.compile(r"([0-9.]+)(pt|cm|mm|in|px)")
_POINTS = {"pt": 1.0, "cm": 28.35, "mm": 2.835, "in": 72.0, "px": 0.75}
#: What says whether a line goes through text.
_LINES = ("style:text-line-through-style", "style:text-line-through-type")
_SPELLINGS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}


@lru_cache(4096)
def full(name: str) -> str:
    """Return a name such as `text:p` as lxml has it."""
    prefix, _, local = name.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}"


@lru_cache(4096)
def short(tag: str) -> str:
    """Return the name of a tag with its usual prefix; the local name alone if its namespace is another's."""
    namespace, _, local = tag[1:].rpartition("}")
    return f"{_PREFIXES[namespace]}:{local}" if namespace in _PREFIXES else local


def attribute(element: etree._Element, name: str) -> str:
    """Return an attribute's value, or an empty string."""
    return element.get(full(name)) or ""


_NO_FILLS = frozenset({"", "transparent", "none", "#ffffff"})


class Look(NamedTuple):
    """How a style shows text; None where it leaves that to what is around it."""

    is_hidden: bool = False
    is_white: bool | None = None
    #: Whether something coloured lies behind the text.
    is_backed: bool = False
    is_tiny: bool | None = None
    is_struck: bool | None = None
    #: Whether it is superscript.
    is_raised: bool | None = None

    def within(self, outer: "Look") -> "Look":
        """Return how text looks that has this style, in a place that looks so."""
        return Look(
            self.is_hidden or outer.is_hidden,
            outer.is_white if self.is_white is None else self.is_white,
            self.is_backed or outer.is_backed,
            outer.is_tiny if self.is_tiny is None else self.is_tiny,
            outer.is_struck if self.is_struck is None else self.is_struck,
            outer.is_raised if self.is_raised is None else self.is_raised,
        )

    @property
    def reason(self) -> str:
        """Return why text isn't seen, or an empty string."""
        if self.is_hidden:
            return "hidden"
        if self.is_white and not self.is_backed:
            return "white text"
        if self.is_struck:
            return "struck out"
        return "text of size 0" if self.is_tiny else ""


class Styles:
    """The styles of some XML parts; of two with the same name, the part given first has it."""

    def __init__(self, *roots: etree._Element | None) -> None:
        self._styles: dict[tuple[str, str], etree._Element] = {}
        self._looks: dict[tuple[str, str], Look] = {}
        #: By the name of a list style, its levels; under an empty name those of numbered headings.
        self._lists: dict[str, dict[int, etree._Element]] = {}
        #: How text looks that has no style.
        self.usual = Look(
            is_backed=any(
                attribute(page, "fo:background-color") not in _NO_FILLS or attribute(page, "draw:fill") not in _NO_FILLS
                for root in roots
                for page in (() if root is None else root.iter(full("style:page-layout-properties")))
            )
        )
        for root in roots:
            for element in () if root is None else root.iter(full("style:style"), full("style:default-style")):
                key = attribute(element, "style:family"), attribute(element, "style:name")
                self._styles.setdefault(key, element)
            for element in () if root is None else root.iter(full("text:list-style"), full("text:outline-style")):
                is_outline = short(element.tag) == "text:outline-style"
                name = "" if is_outline else attribute(element, "style:name")
                levels = {
                    int(attribute(level, "text:level") or 1): level
                    for level in element
                    if attribute(level, "text:level").isdecimal()
                }
                self._lists.setdefault(name, levels)

    def chain(self, family: str, name: str) -> list[etree._Element]:
        """Return a style and those that it is made from, the nearest first."""
        found: list[etree._Element] = []
        while (style := self._styles.get((family, name))) is not None and name and len(found) < _PARENTS:
            found.append(style)
            name = attribute(style, "style:parent-style-name")
        return found

    def first(self, family: str, name: str, value: str, *, within: str = "") -> str:
        """Return the nearest value that a style or its parents set; `within` names the element that has it."""
        for style in self.chain(family, name):
            for holder in style.iter(full(within)) if within else (style,):
                if found := attribute(holder, value):
                    return found
        return ""

    def look(self, family: str, name: str) -> Look:
        """Return how a style shows text."""
        key = family, name
        if key not in self._looks:
            self._looks[key] = self.make_look(family, name)
        return self._looks[key]

    def make_look(self, family: str, name: str) -> Look:
        color, display, size, fills = "", "", "", set[str]()
        line, place = "", ""
        for properties in (child for style in self.chain(family, name) for child in style):
            fills.add(attribute(properties, "fo:background-color"))
            fills.add(attribute(properties, "draw:fill"))
            color = color or attribute(properties, "fo:color")
            display = display or attribute(properties, "text:display")
            size = size or attribute(properties, "fo:font-size")
            line = line or next(filter(None, (attribute(properties, name) for name in _LINES)), "")
            place = place or attribute(properties, "style:text-position")
        points = _SIZE.fullmatch(size)
        return Look(
            display == "none",
            color.lower() == "#ffffff" if color else None,
            bool(fills - _NO_FILLS),
            float(points[1].strip(".") or 0) * _POINTS[points[2]] < 1 if points else None,
            line != "none" if line else None,
            # A height above the line, in words or per cent.
            place.startswith("super") or "1" <= place[:1] <= "9" if place else None,
        )

    def label(self, style: str, counts: list[int]) -> str:
        """Return the number that a list shows before an item, without spaces around; empty for a bullet.

        `counts` has the number of the item and those of the items above it, outermost first.
        """
        levels = self._lists.get(style, {})
        level = levels.get(len(counts))
        if level is None or not attribute(level, "style:num-format"):
            return ""
        numbers = []
        for at, count in enumerate(counts, 1):
            kind = attribute(levels[at], "style:num-format") if at in levels else "1"
            numbers.append(spell_number(max(1, count), _SPELLINGS.get(kind, "")) if kind else "")
        if pattern := attribute(level, "loext:num-list-format"):
            for at, number in enumerate(numbers, 1):
                pattern = pattern.replace(f"%{at}%", number)
            return pattern.strip()
        shown = attribute(level, "text:display-levels")
        last = int(shown) if shown.isdecimal() and len(shown) < 3 else 1
        joined = ".".join(filter(None, numbers[-max(1, last) :]))
        return f"{attribute(level, 'style:num-prefix')}{joined}{attribute(level, 'style:num-suffix')}".strip()

    def start(self, style: str, level: int) -> int:
        """Return the number with which a list begins."""
        found = self._lists.get(style, {}).get(level)
        value = "" if found is None else attribute(found, "text:start-value")
        return int(value) if value.isdecimal() and len(value) < 9 else 1
