"""Paragraphs of the shapes on slides, with their numbers, and the comments on slides."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from svc_daemon.extract.builders import one_line
from svc_daemon.extract.formats.numerals import spell_number
from svc_daemon.extract.formats.open_xml.drawings import paragraph_text
from svc_daemon.extract.formats.open_xml.numbering import number_of
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, local_name, qname

_PARAGRAPH, _PROPERTIES = qname("a:p"), qname("a:pPr")
_BODIES = (qname("p:txBody"), qname("a:txBody"))
_NUMBERED, _BULLET, _NO_BULLET = qname("a:buAutoNum"), qname("a:buChar"), qname("a:buNone")
#: Parts of the names of numberings, such as `alphaLcParenR`.
_SPELLINGS = {
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
    "circleNum": "decimalEnclosedCircle",
    "ea1": "chineseCounting",
}
_ENDINGS = {"ParenBoth": "({})", "ParenR": "{})", "Period": "{}.", "Minus": "- {} -"}


class Line(NamedTuple):
    text: str
    #: `paragraph` or `item`.
    kind: str
    element: Any


def frame_lines(shape: Any) -> Iterator[Line]:
    """Yield the paragraphs of a shape that aren't blank, with the numbers that PowerPoint gives them."""
    counts: dict[int, tuple[str, int]] = {}
    body = next(shape.iterchildren(*_BODIES), None)
    styles = None if body is None else body.find(qname("a:lstStyle"))
    for paragraph in () if body is None else body.iterchildren(_PARAGRAPH):
        text = paragraph_text(paragraph).replace("\x0b", "\n")
        if not text.strip():
            continue
        properties = paragraph.find(_PROPERTIES)
        level = 0 if properties is None else number_of(properties.get("lvl"), 0)
        for deeper in [each for each in counts if each > level]:
            del counts[deeper]
        style = None if styles is None else styles.find(qname(f"a:lvl{level + 1}pPr"))
        found = [each for each in (properties, style) if each is not None]
        marks = (next(each.iterchildren(_NUMBERED, _BULLET, _NO_BULLET), None) for each in found)
        mark = next((each for each in marks if each is not None), None)
        if mark is None or mark.tag != _NUMBERED:
            counts.pop(level, None)
            yield Line(text, "item" if mark is not None and mark.tag == _BULLET else "paragraph", paragraph)
            continue
        kind, start = mark.get("type") or "", number_of(mark.get("startAt"), 1)
        # A numbering of another kind begins again.
        counts[level] = (kind, counts[level][1] + 1 if level in counts and counts[level][0] == kind else start)
        spelling = next((spelled for name, spelled in _SPELLINGS.items() if kind.startswith(name)), "decimal")
        shape = next((ending for name, ending in _ENDINGS.items() if kind.endswith(name)), "{}")
        label = shape.format(spell_number(counts[level][1], spelling))
        yield Line(f"{label} {text}", "item", paragraph)


def slide_comments(package: OfficePackage, main: str, part: str) -> Iterator[str]:
    """Yield the comments on a slide, of the old and the new kind, with their authors and answers."""
    parts = package.related(part, "comments", "comment")
    if not parts:
        return
    names: dict[str, str] = {}
    for list_ in package.related(main, "commentAuthors", "authors"):
        root = package.parse(list_)
        for author in () if root is None else root.iter("{*}cmAuthor", "{*}author"):
            names[author.get("id") or ""] = one_line(author.get("name") or "")
    for name in parts:
        root = package.parse(name)
        for comment in () if root is None else root.iter("{*}cm", "{*}reply"):
            texts = []
            for child in comment:
                if local_name(child) == "text":
                    texts.append(child.text or "")
                elif local_name(child) == "txBody":
                    texts += [paragraph_text(paragraph) for paragraph in child.iter(_PARAGRAPH)]
            words, author = one_line(" ".join(texts)), names.get(comment.get("authorId") or "", "")
            if words:
                yield f"Comment{f' by {author}' if author else ''}: {words}"
