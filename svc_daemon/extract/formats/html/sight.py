"""What makes text unseen: not displayed, without a size, off the page, hard to tell apart, or struck out."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

_READ = frozenset(
    {
        *("display", "visibility", "opacity", "font-size", "color", "background", "background-color", "position"),
        *("background-image", "background-clip", "-webkit-background-clip", "left", "right", "top", "bottom", "clip"),
        *(
            "clip-path",
            "transform",
            "text-indent",
            "margin-left",
            "margin-top",
            "width",
            "height",
        ),
        *("max-height", "overflow", "overflow-x", "overflow-y", "list-style", "list-style-type", "z-index"),
        *("padding-top", "padding-bottom", "text-decoration", "text-decoration-line"),
        *("animation", "animation-name", "transition", "text-shadow", "-webkit-text-stroke"),
    }
)
_ZERO = re.compile(r"[+-]?0*\.?0*(?:[a-z]{1,4}|%)?")
_LENGTH = re.compile(r"(\d*\.?\d+)(?:(px|pt)|rem|in|cm|mm|vw|vh)")
#: So far to the left or above the page that nobody scrolls there.
_NOWHERE = re.compile(r"-(?:(?:999|\d{4,})(?:\.\d+)?(?:px|pt|%|vw|vh)?|\d{3,}(?:\.\d+)?r?em)")
_CLIPPED = re.compile(r"rect\([01](?:px)?(?:[,\s]+[01](?:px)?){3}\)|inset\((?:50|100)%.*\)|circle\(0.*\)")
_GONE = re.compile(r"scale(?:3d|x|y)?\(0(?:\.0*)?[,)\s]|translate(?:3d|x|y)?\([^)]{0,200}-\d{4,}")
_OFFSETS = ("left", "right", "top", "bottom")
_SHIFTS = ("text-indent", "margin-left", "margin-top")
#: What an animation or transition changes, so that it is only how an element begins.
_ANIMATED = ("opacity", "visibility", "transform", "clip-path")
_ANIMATIONS = ("animation", "animation-name", "transition")
#: What draws letters whatever their colour is.
_OUTLINES = ("text-shadow", "-webkit-text-stroke")
#: Without `max-width`, because a cell of no such width has the width of its column.
_SIZES = ("width", "height", "max-height")
_BOXES = {
    **dict.fromkeys(("block", "flex", "grid", "table", "list-item", "table-row", "flow-root"), "block"),
    **dict.fromkeys(("inline-block", "inline-flex", "inline-grid", "inline-table", "table-cell"), "apart"),
}
_NUMBERINGS = {
    **dict.fromkeys(("lower-alpha", "lower-latin"), "a"),
    **dict.fromkeys(("upper-alpha", "upper-latin"), "A"),
    "lower-roman": "i",
    "upper-roman": "I",
    "decimal": "1",
}

Colour = tuple[int, int, int]
#: A colour or background that isn't known, such as a picture.
_UNKNOWN: Colour = (-99, -99, -99)
_CLEAR: Colour = (-999, -999, -999)
#: Colours that differ less in each part can't be told apart.
_DIFFERENCE = 9
_COLOURS: Mapping[str, Colour] = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "red": (255, 0, 0),
    "blue": (0, 0, 255),
    "green": (0, 128, 0),
    "yellow": (255, 255, 0),
    "silver": (192, 192, 192),
    "gray": (128, 128, 128),
    "grey": (128, 128, 128),
    "snow": (255, 250, 250),
    "ghostwhite": (248, 248, 255),
    "whitesmoke": (245, 245, 245),
    "transparent": _CLEAR,
}
_HEX = re.compile(r"#([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})\b")
_RGB = re.compile(r"rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})(?:[\s,/]+([\d.]+)%?)?\s*\)")
#: Values that only the whole page decides.
_COMPUTED = re.compile(r"var\(|light-dark\(|-mix\(")
_WORDS = re.compile(r"[a-z-]+")
#: Backgrounds that let the one behind be seen.
_INHERITED = frozenset({"transparent", "none", "inherit", "initial", "unset", "revert", "currentcolor"})


class NodeStyle(NamedTuple):
    """What an element's styles mean for its text. None means as in the element around it."""

    #: Why the element and all within it is unseen; empty if it isn't.
    hidden: str = ""
    #: `block` or `apart` if an element is apart from the text beside it.
    box: str = ""
    has_no_size: bool | None = None
    is_invisible: bool | None = None
    #: Whether a line goes through its text. What it holds can't take that line away.
    is_struck: bool | None = None
    colour: Colour | None = None
    background: Colour | None = None
    #: Whether its list items have no numbers.
    is_unmarked: bool = False
    #: How its list items are numbered, as the attribute `type` of a list says it; empty if unsaid.
    numbering: str = ""
    #: Whether each element in it is a box of its own.
    holds_boxes: bool = False


#: Links, buttons and the like have colours of their own.
OWN_COLOURS = frozenset({"a", "button", "mark", "input", "select", "textarea"})
_OWN_COLOUR = NodeStyle(colour=_UNKNOWN)
#: What a writer has struck out.
STRUCK = frozenset({"del", "s", "strike"})
_STRUCK = NodeStyle(is_struck=True)


class SeenState:
    """Whether text is seen at the current place of a page, by the styles of the elements around it."""

    def __init__(self, background: Colour | None) -> None:
        #: Texts that aren't seen, and why.
        self.hidden: list[tuple[str, str]] = []
        #: Why text here isn't seen; empty if it is.
        self.reason = ""
        self._states = [(0, NodeStyle(background=background or _UNKNOWN))]

    def enter(self, node_id: int, style: NodeStyle) -> None:
        state = _combine(self._states[-1][1], style)
        self._states.append((node_id, state))
        self.reason = _unseen_by(state)

    def enter_coloured(self, node_id: int) -> None:
        """Begin an element that has a colour of its own."""
        if self.reason and _is_like_background(self._states[-1][1]):
            self.enter(node_id, _OWN_COLOUR)

    def enter_struck(self, node_id: int) -> None:
        self.enter(node_id, _STRUCK)

    def leave(self, node_id: int) -> None:
        while self._states[-1][0] == node_id:
            self._states.pop()
        self.reason = _unseen_by(self._states[-1][1])


@lru_cache(4096)
def _combine(around: NodeStyle, style: NodeStyle) -> NodeStyle:
    """Return the style of an element with what it inherits."""
    names = ("has_no_size", "is_invisible", "is_struck", "colour", "background")
    return style._replace(**{name: getattr(around, name) for name in names if getattr(style, name) is None})


@lru_cache(4096)
def _unseen_by(state: NodeStyle) -> str:
    """Return why text of this style isn't seen; empty if it is."""
    if state.has_no_size:
        return "font size 0"
    if state.is_invisible:
        return "visibility:hidden"
    if state.is_struck:
        return "struck out"
    if state.colour == _CLEAR:
        return "transparent text"
    return "text in the colour of its background" if _is_like_background(state) else ""


def _is_like_background(state: NodeStyle) -> bool:
    if not state.colour or not state.background or min(state.colour) < 0:
        return False
    return all(abs(one - other) < _DIFFERENCE for one, other in zip(state.colour, state.background, strict=True))


@lru_cache(4096)
def read_declarations(styles: str) -> Mapping[str, str]:
    """Return the declarations, as of a `style` attribute, that matter here."""
    declared = {}
    for declaration in styles.split(";"):
        name, _, value = declaration.partition(":")
        if (name := name.strip().lower()) in _READ:
            declared[name] = value.lower().replace("!important", "").strip()
    return declared


@lru_cache(4096)
def find_style(declarations: tuple[tuple[str, str], ...]) -> NodeStyle | None:
    """Return what declarations mean for text; None if nothing."""
    declared = dict(declarations)
    if any(declared.get(name, "none") != "none" for name in _ANIMATIONS):
        declared = {name: value for name, value in declared.items() if name not in _ANIMATED}
    size = declared.get("font-size", "")
    colour = declared.get("color", "")
    visibility, display = declared.get("visibility", ""), declared.get("display", "")
    length = _LENGTH.fullmatch(size)
    # Letters that are cut out of a picture.
    is_cut = "text" in (declared.get("background-clip"), declared.get("-webkit-background-clip"))
    listed = f"{declared.get('list-style', '')} {declared.get('list-style-type', '')}"
    is_outlined = any(declared.get(name, "none") != "none" for name in _OUTLINES)
    style = NodeStyle(
        hidden=_find_reason(declared),
        box=_BOXES.get(display.split(" ")[0], ""),
        has_no_size=True
        if size and _ZERO.fullmatch(size)
        else (float(length[1]) <= (1 if length[2] else 0) if length else None),
        is_invisible=visibility in {"hidden", "collapse"} if visibility not in {"", "inherit"} else None,
        is_struck="line-through" in f"{declared.get('text-decoration')} {declared.get('text-decoration-line')}" or None,
        colour=_UNKNOWN
        if is_outlined
        else (None if colour in {"", "inherit"} else (None if is_cut else _read_colour(colour)) or _UNKNOWN),
        background=_find_background(declared),
        is_unmarked="none" in listed,
        numbering=next((_NUMBERINGS[word] for word in _WORDS.findall(listed) if word in _NUMBERINGS), ""),
        holds_boxes=display.removeprefix("inline-") in {"flex", "grid"},
    )
    return style if style != NodeStyle() else None


def _find_reason(declared: Mapping[str, str]) -> str:
    """Return why an element and all within it is unseen; empty if it isn't."""
    is_placed = declared.get("position") in {"absolute", "fixed"}
    offsets = (*(_OFFSETS if is_placed else ()), *_SHIFTS)
    is_cut_off = "hidden" in (declared.get("overflow"), declared.get("overflow-x"), declared.get("overflow-y"))
    # Padding is a part of the box that is seen.
    is_padded = any(not _ZERO.fullmatch(declared.get(name, "0")) for name in ("padding-top", "padding-bottom"))
    sizes = [] if is_padded else [declared[name] for name in _SIZES if name in declared]
    if declared.get("display", "").startswith("none"):
        return "display:none"
    if (opacity := declared.get("opacity", "")) and _ZERO.fullmatch(opacity):
        return "opacity:0"
    if any(_NOWHERE.fullmatch(declared.get(name, "")) for name in offsets) or _GONE.search(
        declared.get("transform", "")
    ):
        return "off the page"
    if (is_cut_off and any(_ZERO.fullmatch(size) for size in sizes)) or (
        is_placed and is_cut_off and sizes.count("1px") > 1
    ):
        return "size 0"
    if _CLIPPED.fullmatch(declared.get("clip", "") if is_placed else "") or _CLIPPED.fullmatch(
        declared.get("clip-path", "")
    ):
        return "clipped"
    return ""


def _find_background(declared: Mapping[str, str]) -> Colour | None:
    found = None
    for name in ("background", "background-color", "background-image"):
        value = declared.get(name, "")
        if "url(" in value or "gradient" in value:
            return _UNKNOWN
        if value:
            colour = _read_colour(value)
            is_clear = colour == _CLEAR or (colour is None and not _INHERITED.isdisjoint(_WORDS.findall(value)))
            found = found if is_clear else colour or _UNKNOWN
    # What is placed over other elements is on them.
    is_over = "z-index" in declared or declared.get("position") in {"absolute", "fixed", "sticky"}
    return _UNKNOWN if found is None and (is_over or declared.get("margin-top", "").startswith("-")) else found


def _read_colour(value: str) -> Colour | None:
    """Return the colour that a value names; None if none is known."""
    if _COMPUTED.search(value):
        return None
    if found := _HEX.search(value):
        digits = found[1] if len(found[1]) > 4 else "".join(digit * 2 for digit in found[1])
        if digits[6:] == "00":
            return _CLEAR
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    if found := _RGB.search(value):
        if found[4] and float("0" + found[4].rstrip(".")) < 0.05:
            return _CLEAR
        return int(found[1]), int(found[2]), int(found[3])
    return next((_COLOURS[word] for word in _WORDS.findall(value) if word in _COLOURS), None)
