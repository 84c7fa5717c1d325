"""Text of drawings, which documents, decks and sheets write alike: paragraphs, diagrams, descriptions of pictures."""

from collections.abc import Iterator
from typing import Any

from svc_daemon.extract.builders import one_line
from svc_daemon.extract.formats.open_xml.equations import equation_text
from svc_daemon.extract.formats.open_xml.numbering import number_of
from svc_daemon.extract.formats.open_xml.packages import OfficePackage, alternative, local_name, qname
from svc_daemon.extract.formats.superscripts import raised, write_exponents

_PARAGRAPH, _TEXT, _BREAK = qname("a:p"), qname("a:t"), qname("a:br")
_RUN_PROPERTIES = qname("a:rPr")
_ALTERNATIVES = qname("mc:AlternateContent")
_EQUATIONS = frozenset({qname("m:oMath"), qname("m:oMathPara")})
_POINT, _LINK, _SHOWN = qname("dgm:pt"), qname("dgm:cxn"), qname("dgm:t")
#: Points of a diagram that aren't of its text: how it is drawn.
_LAYOUT = frozenset({"pres", "parTrans", "sibTrans"})


def paragraph_text(paragraph: Any) -> str:
    """Return the text of an `a:p`, with the results of its fields and its equations, without what is struck out."""
    return write_exponents(_inner_text(paragraph))


def _inner_text(element: Any) -> str:
    properties = element.find(_RUN_PROPERTIES)
    if is_struck(properties):
        return ""
    pieces = []
    for child in element:
        if child.tag == _TEXT:
            pieces.append(child.text or "")
        elif child.tag == _BREAK:
            pieces.append("\n")
        elif child.tag in _EQUATIONS:
            pieces.append(equation_text(child))
        elif child.tag == _ALTERNATIVES:
            pieces.append(_inner_text(alternative(child)))
        else:
            pieces.append(_inner_text(child))
    text = "".join(pieces)
    is_raised = properties is not None and number_of(properties.get("baseline"), 0) > 0
    return raised(text) if is_raised else text


def is_struck(properties: Any) -> bool:
    """Whether the properties of a run (or None) put a line through it."""
    return properties is not None and properties.get("strike", "noStrike") != "noStrike"


def struck_text(element: Any) -> str:
    """Return what is struck out in an element, which `paragraph_text` leaves out."""
    runs = (each.getparent() for each in element.iter(_RUN_PROPERTIES) if is_struck(each))
    return " ".join(text.text or "" for run in runs for text in run.iterchildren(_TEXT))


def paragraphs(element: Any) -> Iterator[str]:
    """Yield the text of each `a:p` in an element that isn't blank."""
    for paragraph in element.iter(_PARAGRAPH):
        text = paragraph_text(paragraph)
        if text.strip():
            yield text


def description(properties: Any) -> str:
    """Return the words that describe a picture or shape: its alternative text."""
    title, words = (one_line(properties.get(name) or "") for name in ("title", "descr"))
    return words if title in words else f"{title}: {words}" if words else title


def is_hidden(properties: Any) -> bool:
    """Whether a shape is switched off in the list of shapes."""
    return (properties.get("hidden") or "0") in {"1", "true", "on"}


def diagram_texts(package: OfficePackage, part: str) -> list[str]:
    """Return the texts of a diagram (SmartArt), each before those below it."""
    root = package.parse(part)
    if root is None:
        return []
    points = {point.get("modelId") or "": point for point in root.iter(_POINT)}
    below: dict[str, list[tuple[int, str]]] = {}
    for link in root.iter(_LINK):
        if link.get("type", "parOf") == "parOf":
            place = number_of(link.get("srcOrd"), 0)
            below.setdefault(link.get("srcId") or "", []).append((place, link.get("destId") or ""))
    children = {child for links in below.values() for _, child in links}
    # The last is taken first. A point is taken once, even if the links go in circles.
    waiting = [*reversed(points), *(identity for identity in reversed(points) if identity not in children)]
    ordered: dict[str, None] = {}
    while waiting:
        identity = waiting.pop()
        if identity not in ordered:
            ordered[identity] = None
            waiting += [child for _, child in sorted(below.get(identity, ()), reverse=True)]
    texts = []
    for identity in ordered:
        point = points.get(identity)
        if point is not None and point.get("type") not in _LAYOUT:
            texts += [one_line(text) for shown in point.iterchildren(_SHOWN) for text in paragraphs(shown)]
    return texts


def graphic_reference(package: OfficePackage, part: str, element: Any) -> tuple[str, str] | None:
    """Return what an element of a drawing refers to: a `chart` or `diagram`, and its part; or None."""
    name = local_name(element)
    if name == "chart":
        target = package.target(part, element)
        return None if target is None else ("chart", target)
    if name == "relIds":
        target = package.target(part, element, qname("r:dm"))
        return None if target is None else ("diagram", target)
    return None
