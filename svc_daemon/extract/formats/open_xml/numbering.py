"""Numbers of Word's lists and clauses, which the file doesn't hold: each is counted as Word counts it."""

import re
from typing import Any

from svc_daemon.extract.formats.numerals import spell_number
from svc_daemon.extract.formats.open_xml.packages import is_on, qname

_VALUE, _LEVEL, _IDENTITY = qname("w:val"), qname("w:ilvl"), qname("w:numId")
_ABSTRACT = qname("w:abstractNumId")
_PLACE = re.compile(r"%([1-9])")
_LEVELS = 9


class _Level:
    """How one level of a list is numbered."""

    def __init__(self, element: Any) -> None:
        def value(name: str) -> str | None:
            found = element.find(qname(f"w:{name}"))
            return None if found is None else found.get(_VALUE)

        self.start = number_of(value("start"), 1)
        restart = value("lvlRestart")
        #: The level, from 1, whose items begin the count again; 0 for none, None for every level above.
        self.restart = None if restart is None else number_of(restart, 0)
        #: The newest spelling, which old programs don't know, may stand in alternative content.
        spelling = next(element.iter(qname("w:numFmt")), None)
        self.spelling = "decimal" if spelling is None else spelling.get(_VALUE) or ""
        self.digits = 0 if spelling is None else len((spelling.get(qname("w:format")) or "").partition(",")[0].strip())
        self.text = value("lvlText") or ""
        self.is_legal = is_on(element.find(qname("w:isLgl")), _VALUE)
        self.style = value("pStyle")
        hidden = element.find(f"{qname('w:rPr')}/{qname('w:vanish')}")
        self.is_bullet = self.spelling == "bullet" or is_on(hidden, _VALUE)

    def spell(self, number: int, *, as_digits: bool) -> str:
        if self.spelling == "none" and not as_digits:
            return ""
        if self.spelling == "custom":
            return f"{number:0{self.digits}}"
        return str(number) if as_digits else spell_number(number, self.spelling)


class Numbering:
    """Counts the items of all lists of a document, in their order."""

    def __init__(self, root: Any) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}
        #: By the number of a list: what it counts with, its own levels, and where its levels start once.
        self._lists: dict[str, tuple[str, dict[int, _Level], dict[int, int]]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        if root is not None:
            self.load(root)

    def load(self, root: Any) -> None:
        linked: dict[str, str] = {}
        named: dict[str, str] = {}
        for abstract in root.iterchildren(qname("w:abstractNum")):
            identity = abstract.get(_ABSTRACT) or ""
            self._levels[identity] = {
                number_of(level.get(_LEVEL), 0): _Level(level) for level in abstract.iterchildren(qname("w:lvl"))
            }
            link, name = (abstract.find(qname(f"w:{tag}")) for tag in ("numStyleLink", "styleLink"))
            if link is not None:
                linked[identity] = link.get(_VALUE) or ""
            elif name is not None:
                named[name.get(_VALUE) or ""] = identity
        for each in root.iterchildren(qname("w:num")):
            abstract = each.find(_ABSTRACT)
            identity = "" if abstract is None else abstract.get(_VALUE) or ""
            identity = named.get(linked.get(identity, ""), identity)
            own, starts = {}, {}
            for override in each.iterchildren(qname("w:lvlOverride")):
                number = number_of(override.get(_LEVEL), 0)
                level, start = override.find(qname("w:lvl")), override.find(qname("w:startOverride"))
                if level is not None:
                    own[number] = _Level(level)
                if start is not None:
                    starts[number] = number_of(start.get(_VALUE), 1)
            self._lists[each.get(_IDENTITY) or ""] = (identity, own, starts)

    def level_of_style(self, identity: str, style: str) -> int:
        """Return the level of a list that belongs to a paragraph style; 0 if none does."""
        abstract, own, _ = self._lists.get(identity, ("", {}, {}))
        levels = {**self._levels.get(abstract, {}), **own}
        return next((number for number, level in levels.items() if level.style == style), 0)

    def next_label(self, identity: str, number: int) -> str | None:
        """Count an item of a list, and return its label: empty for a bullet, None if there is no such list."""
        if identity not in self._lists or not 0 <= number < _LEVELS:
            return None
        abstract, own, starts = self._lists[identity]
        levels = {**self._levels.get(abstract, {}), **own}
        level, counts = levels.get(number), self._counts.setdefault(abstract, {})
        if level is None:
            return None
        counts[number] = starts.pop(number) if number in starts else counts.get(number, level.start - 1) + 1
        for deeper in [each for each in counts if each > number]:
            restart = levels[deeper].restart if deeper in levels else None
            if restart is None or number < restart:
                del counts[deeper]
        if level.is_bullet:
            return ""

        def spelled(place: re.Match[str]) -> str:
            shown = int(place[1]) - 1
            found = levels.get(shown)
            if found is None:
                return ""
            return found.spell(counts.get(shown, found.start), as_digits=level.is_legal)

        return _PLACE.sub(spelled, level.text).strip()


def number_of(text: str | None, usual: int) -> int:
    """Return a whole number of a few digits; the usual one if it isn't such a number."""
    try:
        number = int(text or "")
    except ValueError:
        return usual
    return number if abs(number) < 10**9 else usual
