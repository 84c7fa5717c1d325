"""What a page's own styles hide: the attributes of its elements and the simple rules of its style sheets.

What a control on the page opens, such as a tab panel, isn't hidden. External style sheets are not read.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from svc_daemon.extract.builders import sub_closed
from svc_daemon.extract.formats.html.sight import Colour, NodeStyle, find_style, read_declarations

#: Pages without any of these have no styles of their own.
_STYLED = re.compile(r"<style|\bstyle\s*=|\bhidden\b|\bbgcolor\b|\bbackground\s*=|<font", re.IGNORECASE)
#: The beginning of the style sheets that is read.
_SHEET_CHARACTERS = 1_000_000
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BRACE = re.compile(r"([{}])")
_SIMPLE = re.compile(r"(?:[\w-]+|\*)?(?:[.#][\w-]+)*")
_STATE = re.compile(r"::?[\w-]+(?:\([^()]*\))?|\[[^\[\]]*\]")
_COMBINED = re.compile(r"[\s>+~]+")
_PART = re.compile(r"[.#]?[\w-]+|\*")

_OPENED_ROLES = frozenset({"tabpanel", "dialog", "alertdialog", "menu", "listbox", "tooltip"})
_OPENERS = ("aria-controls", "data-target", "data-bs-target", "popovertarget", "commandfor", "href", "onclick")
_OPENING = ",".join(f"[{name}]" for name in _OPENERS if name != "href") + ",a[href^='#']"
_BACKGROUND = re.compile("background")
_NAME = re.compile(r"[\w-]+")
_BUTTONS = frozenset({"button", "label", "summary"})


class _Rule(NamedTuple):
    #: The tag, `.class` and `#id` that an element must have.
    parts: frozenset[str]
    declared: Mapping[str, str]
    #: Whether the rule applies always, rather than in a medium, within other elements, or in a state.
    is_certain: bool
    #: By which rules are sorted: the last one decides.
    weight: tuple[int, int, str]


class PageStyles:
    """The styles of a page's elements that matter for what its reader sees."""

    def __init__(self, page: LexborHTMLParser, markup: str) -> None:
        self.nodes: dict[int, NodeStyle] = {}
        #: The background before any element changes it; None if a style sheet that isn't read may have changed it.
        self.background: Colour | None = (255, 255, 255)
        if page.body is None or not _STYLED.search(markup):
            return
        sheets = "".join(sheet.text() for sheet in page.css("style"))[:_SHEET_CHARACTERS]
        links = (link.attributes.get("rel") or "" for link in page.css("link[href]"))
        if "@import" in sheets or any("stylesheet" in relation.lower() for relation in links):
            self.background = None
        self._rules: dict[str, list[_Rule]] = defaultdict(list)
        self._declared: dict[tuple[str, str | None, str | None], Mapping[str, str]] = {}
        for rule in read_rules(sheets):
            # A class that a script adds is a state of the element.
            for part in rule.parts if len(rule.parts) == 1 else [each for each in rule.parts if each[0] in ".#"]:
                self._rules[part].append(rule)
        self._opened = {
            name
            for control in page.css(_OPENING)
            for opener in _OPENERS
            for name in _NAME.findall(control.attributes.get(opener) or "")
            if opener != "href" or (control.attributes["href"] or "").startswith("#")
        }
        if page.root is not None and self.background:
            style = self.style_of(page.root, "html", page.root.attributes)
            self.background = (style and style.background) or self.background
        self.take_body(page.body)

    def take_body(self, body: LexborNode) -> None:
        """Find the styles of all elements of the page."""
        #: Elements that are boxes because of the element around them.
        boxes: set[int] = set()
        for node in body.traverse():
            style = self.style_of(node, node.tag or "", node.attributes)
            if style is not None and node.mem_id == body.mem_id:
                # Scripts show a body that its styles hide while it is loaded.
                style = NodeStyle(colour=style.colour, background=style.background)
            if node.mem_id in boxes:
                style = style or NodeStyle()
                style = style._replace(box=style.box or "apart")
            if style is not None and style.holds_boxes:
                boxes.update(each.mem_id for each in node.iter())
            if style is not None:
                self.nodes[node.mem_id] = style

    def style_of(self, node: LexborNode, tag: str, attributes: Mapping[str, str | None]) -> NodeStyle | None:
        declared: dict[str, str] = {}
        if self._rules:
            # Many elements have the same tag and classes.
            key = (tag, attributes.get("class"), attributes.get("id"))
            if key not in self._declared:
                self._declared[key] = self.by_rules(*key)
            declared |= self._declared[key]
        if tag in {"font", "body"} and (value := attributes.get("color") or attributes.get("text")):
            declared["color"] = value.lower()
        if value := attributes.get("bgcolor"):
            declared["background-color"] = value.lower()
        if "background" in attributes:
            declared["background"] = "url()"
        if "hidden" in attributes and attributes["hidden"] != "until-found":
            declared["display"] = "none"
        if inline := attributes.get("style"):
            declared |= read_declarations(inline)
        style = find_style(tuple(declared.items())) if declared else None
        return None if style is not None and style.hidden and self.is_opened(node, attributes) else style

    def by_rules(self, tag: str, classes: str | None, identifier: str | None) -> Mapping[str, str]:
        """Return what the rules of style sheets declare of an element in every state of the page."""
        names = {tag, "*", *(f".{name}" for name in (classes or "").split())}
        if identifier:
            names.add(f"#{identifier}")
        rules = {rule.weight: rule for name in names for rule in self._rules.get(name, ())}
        certain = set[tuple[int, int, str]]()
        declared: dict[str, str] = {}
        for weight, rule in sorted(rules.items()):
            if rule.is_certain and rule.parts <= names:
                certain.add(weight)
                declared |= rule.declared
        for weight, rule in rules.items():
            if weight not in certain:
                # In some state, this rule may apply instead.
                declared = {name: value for name, value in declared.items() if rule.declared.get(name, value) == value}
                declared |= {"background": "url()"} if any(map(_BACKGROUND.match, rule.declared)) else {}
        return declared

    def is_opened(self, node: LexborNode, attributes: Mapping[str, str | None]) -> bool:
        """Whether a control on the page shows the element."""
        if attributes.get("role") in _OPENED_ROLES or node.tag == "dialog":
            return True
        if attributes.get("id") in self._opened or not self._opened.isdisjoint((attributes.get("class") or "").split()):
            return True
        before = node.prev
        while before is not None and not before.is_element_node:
            before = before.prev
        if before is None:
            return False
        beside = before.attributes
        return before.tag in _BUTTONS or beside.get("role") in {"button", "tab"} or "aria-expanded" in beside


def read_rules(sheets: str) -> Iterator[_Rule]:
    """Yield the rules of style sheets that declare anything of what is seen."""
    pieces = _BRACE.split(sub_closed(_COMMENT, "*/", "", sheets))
    around: list[str] = []
    for order, (text, brace) in enumerate(zip(pieces[::2], pieces[1::2], strict=False)):
        if brace == "{":
            around.append(text.rpartition(";")[2].strip())
        elif around:
            selectors = around.pop()
            declared = {} if selectors.startswith("@") else read_declarations(text)
            for selector in selectors.split(",") if declared else ():
                simple = bool(_SIMPLE.fullmatch(selector.strip())) and not any(each.startswith("@") for each in around)
                # Of other selectors, the last part says which elements they may choose.
                last = _COMBINED.split(_STATE.sub("", selector.replace(":root", "html")).strip())[-1]
                if parts := frozenset(_PART.findall(last)):
                    rank = max("*.#".find(part[0]) for part in parts)
                    yield _Rule(parts, declared, simple, (rank, order, selector))
