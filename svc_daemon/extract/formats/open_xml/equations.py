"""Equations of Office files as a line of text, such as `(a+b)/2` or `x²`."""

from collections.abc import Callable
from typing import Any

from svc_daemon.extract.formats.open_xml.packages import is_on, local_name, qname

_VALUE = qname("m:val")
_RAISED = str.maketrans("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ")
_LOWERED = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")


def equation_text(element: Any) -> str:
    """Return the text of an `m:oMath`, `m:oMathPara` or any part of one."""
    pieces = []
    for child in element:
        name = local_name(child)
        if name in _SHAPES:
            pieces.append(_SHAPES[name](child))
        elif name == "t":
            pieces.append(child.text or "")
        elif name == "br":
            pieces.append("\n")
        elif name == "oMath":
            pieces.append(f"{equation_text(child)} ")
        elif name not in _SILENT:
            pieces.append(equation_text(child))
    return "".join(pieces)


#: Properties, which hold no text that is shown as such, and text that was deleted.
_SILENT = frozenset({"del", "moveFrom", "ctrlPr", "rPr", "argPr", "oMathParaPr"})


def _part(element: Any, name: str) -> str:
    return "".join(equation_text(child) for child in element.iterchildren(qname(f"m:{name}"))).strip()


def _setting(element: Any, name: str, usual: str) -> str:
    """Return a property, such as the character of a bracket."""
    found = element.find(f"{qname(f'm:{local_name(element)}Pr')}/{qname(f'm:{name}')}")
    return usual if found is None else found.get(_VALUE) or ""


def _grouped(text: str) -> str:
    """Put text of several characters that isn't one word or number into brackets."""
    return text if len(text) < 2 or text.replace(".", "").isalnum() else f"({text})"


def _script(element: Any, sub: str, sup: str) -> str:
    below, above = _part(element, sub), _part(element, sup)
    lowered, raised = below.translate(_LOWERED), above.translate(_RAISED)
    # All or nothing: half a word in small letters is no word.
    below = lowered if all(map(_LOWERED.__contains__, map(ord, below))) else f"_{_grouped(below)}"
    above = raised if all(map(_RAISED.__contains__, map(ord, above))) else f"^{_grouped(above)}"
    return below + above


def scripted(element: Any) -> str:
    return _part(element, "e") + _script(element, "sub", "sup")


def large_operator(element: Any) -> str:
    return f"{_setting(element, 'chr', '∫')}{_script(element, 'sub', 'sup')} {_part(element, 'e')}"


def brackets(element: Any) -> str:
    parts = [equation_text(child).strip() for child in element.iterchildren(qname("m:e"))]
    inside = _setting(element, "sepChr", "|").join(parts)
    return f"{_setting(element, 'begChr', '(')}{inside}{_setting(element, 'endChr', ')')}"


def root(element: Any) -> str:
    radicand = _part(element, "e")
    return f"{_part(element, 'deg').translate(_RAISED)}√{radicand if len(radicand) < 2 else f'({radicand})'}"


def matrix(element: Any) -> str:
    rows = ([equation_text(cell).strip() for cell in row] for row in element.iterchildren(qname("m:mr")))
    return "; ".join(" ".join(row) for row in rows)


def phantom(element: Any) -> str:
    shown = element.find(f"{qname('m:phantPr')}/{qname('m:show')}")
    return equation_text(element) if shown is None or is_on(shown, _VALUE) else ""


_SHAPES: dict[str, Callable[[Any], str]] = {
    "f": lambda each: f"{_grouped(_part(each, 'num'))}/{_grouped(_part(each, 'den'))}",
    "sSup": scripted,
    "sSub": scripted,
    "sSubSup": scripted,
    "sPre": lambda each: _script(each, "sub", "sup") + _part(each, "e"),
    "nary": large_operator,
    "d": brackets,
    "rad": root,
    "func": lambda each: f"{_part(each, 'fName')} {_part(each, 'e')}",
    "limLow": lambda each: f"{_part(each, 'e')}_{_grouped(_part(each, 'lim'))}",
    "limUpp": lambda each: f"{_part(each, 'e')}^{_grouped(_part(each, 'lim'))}",
    "m": matrix,
    "eqArr": lambda each: "\n".join(equation_text(row) for row in each.iterchildren(qname("m:e"))),
    "acc": lambda each: _part(each, "e") + _setting(each, "chr", "\u0302"),
    "phant": phantom,
}
