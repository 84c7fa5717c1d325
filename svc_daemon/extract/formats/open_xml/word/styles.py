"""WordStyles of a Word document, as far as they decide what is a heading, what is numbered and what can't be seen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svc_daemon.extract.formats.open_xml.numbering import number_of
from svc_daemon.extract.formats.open_xml.packages import is_on, qname

_VALUE, _FILL = qname("w:val"), qname("w:fill")
_PARAGRAPH_PROPERTIES, _RUN_PROPERTIES = qname("w:pPr"), qname("w:rPr")
_SHADING, _HIGHLIGHT = qname("w:shd"), qname("w:highlight")
_STYLE = qname("w:rStyle")
_VANISH, _COLOUR, _SIZE = qname("w:vanish"), qname("w:color"), qname("w:sz")
_STRIKES, _PLACE = (qname("w:strike"), qname("w:dstrike")), qname("w:vertAlign")
_WHITE = "ffffff"
#: Text of at most one point (the file counts in half points) can't be read.
_UNREADABLE_SIZE = 2


@dataclass(slots=True)
class StyleLook:
    """What a style says, with the styles that it is based on."""

    #: Heading level, 0 for the title, or None.
    level: int | None = None
    list_id: str | None = None
    list_level: int | None = None
    is_hidden: bool | None = None
    is_struck: bool | None = None
    #: Whether its text is superscript.
    is_raised: bool | None = None
    colour: str | None = None
    size: int | None = None
    is_shaded: bool = False


#: Word itself lets a style be based on about ten others.
_MOST_BASES = 50


class WordStyles:
    """The styles of a document by their ids."""

    def __init__(self, root: Any) -> None:
        self._elements: dict[str, Any] = {}
        self._looks: dict[str, StyleLook] = {}
        self._usual = ""
        for style in () if root is None else root.iterchildren(qname("w:style")):
            identity = style.get(qname("w:styleId")) or ""
            self._elements[identity] = style
            if style.get(qname("w:type")) == "paragraph" and style.get(qname("w:default")) in {"1", "true", "on"}:
                self._usual = identity

    def look(self, identity: str | None) -> StyleLook:
        """Return what a style says; without an id, the usual style of paragraphs."""
        identity = self._usual if identity is None else identity
        if identity not in self._looks:
            look = self._looks[identity] = StyleLook()
            for style in reversed(self._chain(identity)):
                _refine(look, style)
        return self._looks[identity]

    def is_coloured_table(self, table: Any) -> bool:
        """Whether a table or its style has colours, so that white text may be read on it."""
        own = table.find(f"{qname('w:tblPr')}/{_SHADING}")
        if own is not None and is_coloured(own):
            return True
        name = table.find(f"{qname('w:tblPr')}/{qname('w:tblStyle')}")
        chain = [] if name is None else self._chain(name.get(_VALUE) or "")
        return any(is_coloured(each) for style in chain for each in style.iter(_SHADING))

    def _chain(self, identity: str) -> list[Any]:
        """Return a style and those that it is based on, each once, even if they go in circles."""
        chain: list[Any] = []
        style = self._elements.get(identity)
        while style is not None and style not in chain and len(chain) < _MOST_BASES:
            chain.append(style)
            based = style.find(qname("w:basedOn"))
            style = None if based is None else self._elements.get(based.get(_VALUE))
        return chain

    def why_unseen(self, run: Any, paragraph: StyleLook, *, on_colour: bool) -> str | None:
        """Return why a run with these properties (or None) isn't seen; None if it is."""
        # Most runs have no properties, or some that don't matter.
        marks, has_look = marks_of(run), paragraph.is_hidden or paragraph.is_struck or paragraph.colour == _WHITE
        if not marks and not has_look and paragraph.size is None:
            return None
        run_style = self._run_style(run)
        vanish, colour, size = (marks.get(tag) for tag in (_VANISH, _COLOUR, _SIZE))
        styled_hidden = paragraph.is_hidden if run_style.is_hidden is None else run_style.is_hidden
        if is_on(vanish, _VALUE) if vanish is not None else styled_hidden:
            return "hidden text"
        if _first(_is_struck(marks), run_style.is_struck, paragraph.is_struck):
            return "struck out"
        points = run_style.size or paragraph.size if size is None else number_of(size.get(_VALUE), 20)
        if points is not None and points <= _UNREADABLE_SIZE:
            return "size 0"
        shown = run_style.colour or paragraph.colour if colour is None else (colour.get(_VALUE) or "").lower()
        if shown != _WHITE or on_colour or paragraph.is_shaded or run_style.is_shaded:
            return None
        return None if has_background(marks) else "white text"

    def is_raised(self, run: Any, paragraph: StyleLook) -> bool:
        """Whether a run with these properties (or None) is superscript."""
        if run is None:
            return bool(paragraph.is_raised)
        return bool(_first(_is_raised(marks_of(run)), self._run_style(run).is_raised, paragraph.is_raised))

    def _run_style(self, run: Any) -> StyleLook:
        name = None if run is None else run.find(_STYLE)
        return StyleLook() if name is None else self.look(name.get(_VALUE) or "")


def _first(*found: bool | None) -> bool | None:
    """Return the first that says anything."""
    return next((each for each in found if each is not None), None)


def _is_struck(marks: Mapping[str, Any]) -> bool | None:
    lines = [marks[tag] for tag in _STRIKES if tag in marks]
    return any(is_on(line, _VALUE) for line in lines) if lines else None


def _is_raised(marks: Mapping[str, Any]) -> bool | None:
    return marks[_PLACE].get(_VALUE) == "superscript" if _PLACE in marks else None


def marks_of(properties: Any) -> dict[str, Any]:
    """Return the properties of a run, paragraph or cell by their names; none if it has none."""
    return {} if properties is None else {each.tag: each for each in properties}


def has_background(marks: Mapping[str, Any]) -> bool:
    """Whether properties of a run, paragraph or cell give it a colour behind the text."""
    highlight = marks.get(_HIGHLIGHT)
    if highlight is not None and (highlight.get(_VALUE) or "none") not in {"none", "white"}:
        return True
    shading = marks.get(_SHADING)
    return shading is not None and is_coloured(shading)


def is_coloured(shading: Any) -> bool:
    """Whether `w:shd` is a colour other than white."""
    fill, pattern = (shading.get(_FILL) or "auto").lower(), shading.get(_VALUE) or "clear"
    is_themed = fill == "auto" and shading.get(qname("w:themeFill"), "background1") not in {"background1", "light1"}
    return is_themed or fill not in {"auto", _WHITE} or pattern not in {"clear", "nil"}


def has_backdrop(root: Any) -> bool:
    """Whether the text of a part is on a colour, or anywhere on a shape or picture that is behind it."""
    page = root.find(qname("w:background"))
    if page is not None and (page.get(qname("w:color")) or "auto").lower() not in {"auto", _WHITE}:
        return True
    if any(each.get("behindDoc") in {"1", "true"} for each in root.iter("{*}anchor")):
        return True
    shapes = root.iter(*(qname(f"v:{name}") for name in ("shape", "rect", "roundrect", "oval", "group")))
    return any("z-index:-" in (each.get("style") or "") for each in shapes)


def _refine(look: StyleLook, style: Any) -> None:
    """Add what a style says to what the styles that it is based on say."""
    name = style.find(qname("w:name"))
    # Built-in styles have English names in every language.
    words = "" if name is None else (name.get(_VALUE) or "").lower()
    if words == "title":
        look.level = 0
    elif words.startswith("heading ") and words[8:].isdecimal():
        look.level = int(words[8:])
    paragraph, run = style.find(_PARAGRAPH_PROPERTIES), style.find(_RUN_PROPERTIES)
    if paragraph is not None:
        outline = paragraph.find(qname("w:outlineLvl"))
        if outline is not None and look.level != 0:
            level = number_of(outline.get(_VALUE), 9)
            look.level = level + 1 if level < 9 else None
        listed, level_mark = (paragraph.find(f"{qname('w:numPr')}/{qname(f'w:{tag}')}") for tag in ("numId", "ilvl"))
        look.list_id = look.list_id if listed is None else listed.get(_VALUE)
        look.list_level = look.list_level if level_mark is None else number_of(level_mark.get(_VALUE), 0)
        look.is_shaded = look.is_shaded or has_background(marks_of(paragraph))
    if run is not None:
        vanish, colour, size = (run.find(tag) for tag in (_VANISH, _COLOUR, _SIZE))
        look.is_hidden = look.is_hidden if vanish is None else is_on(vanish, _VALUE)
        look.is_struck = _first(_is_struck(marks_of(run)), look.is_struck)
        look.is_raised = _first(_is_raised(marks_of(run)), look.is_raised)
        look.colour = look.colour if colour is None else (colour.get(_VALUE) or "").lower()
        look.size = look.size if size is None else number_of(size.get(_VALUE), 20)
        look.is_shaded = look.is_shaded or has_background(marks_of(run))
