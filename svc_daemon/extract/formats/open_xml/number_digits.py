"""Numbers in the places for digits that a format code has, as fractions and with an exponent."""

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from svc_daemon.extract.formats.open_xml.number_codes import PLACES, Section

#: Larger numbers are shown as if they had no format.
_LARGE = 1e15
_FRACTION = re.compile(r"(?:([0#?]+)\s+)?([0#?]+)\s*/\s*([0#?]+|\d+)")


def general(number: float) -> str:
    """Return a number as it is shown without a format: at most fifteen digits."""
    if math.isfinite(number) and number == int(number) and abs(number) < 1e15:
        return str(int(number))
    return f"{number:.15g}".replace("e", "E")


def show_number(section: Section, number: float) -> str:
    """Show a number, or the text of a section that has no place for one."""
    kinds = {token.kind for token in section.tokens}
    if not section.tokens or kinds & {"general", "text"}:
        shown = general(number) if kinds & {"general", "text"} else ""
        texts = (shown if token.kind in {"general", "text"} else token.text for token in section.tokens)
        return "".join(texts).strip()
    pattern = "".join(token.text if token.kind in PLACES else "\0" for token in section.tokens)
    if not set(pattern) & set("0#?"):
        return "".join(token.text for token in section.tokens).strip()
    if abs(number) >= _LARGE:
        return general(number)
    if found := _FRACTION.search("".join(token.text for token in section.tokens)):
        return _fraction_text(found, number)
    if "exponent" in kinds:
        return _exponent_text(section, number)
    whole, _, decimals = pattern.replace("\0", "").replace("%", "").partition(".")
    # Each comma behind the places divides by a thousand.
    scale = sum(len(part) - len(part.rstrip(",")) for part in (whole, decimals))
    value = Decimal(repr(number)).scaleb(2 * pattern.count("%") - 3 * scale)
    places = sum(map(decimals.count, "0#?"))
    rounded = abs(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    integer, _, fraction = f"{rounded:f}".partition(".")
    for place in reversed([each for each in decimals if each in "0#?"]):
        if place == "0" or not fraction.endswith("0"):
            break
        fraction = fraction[:-1]
    is_grouped = "," in whole.rstrip(",")
    shown = _fill(section, "" if integer == "0" else integer, fraction, is_grouped=is_grouped)
    return f"-{shown}" if number < 0 and rounded else shown


def _fill(section: Section, integer: str, fraction: str, *, is_grouped: bool) -> str:
    """Put the digits into their places, and the words of the section between them."""
    whole = "".join(token.text for token in section.tokens if token.kind in PLACES).partition(".")[0]
    places = [each for each in whole if each in "0#?"]
    zeros = len(places) - places.index("0") if "0" in places else 0
    integer = integer.rjust(zeros, "0")
    if is_grouped:
        integer = f"{integer[: len(integer) % 3]},{','.join(re.findall('...', integer[len(integer) % 3 :]))}".strip(",")
        groups = [integer, *[""] * (len(places) - 1)]
    else:
        # The first place takes the digits for which there is no place.
        kept = len(places) - 1
        first = integer[: len(integer) - kept] if len(integer) > kept else ""
        rest = integer[len(first) :].rjust(kept, "\0")
        groups = [first, *(each.strip("\0") for each in rest)]
    pieces, filled, is_whole = [], iter(groups), True
    for token in section.tokens:
        if token.kind not in PLACES:
            pieces.append(token.text)
            continue
        for each in token.text:
            if each == ".":
                pieces.append(("" if not is_whole else ".") + fraction if fraction else "")
                is_whole = False
            elif each in "0#?":
                pieces.append(next(filled, "") if is_whole else "")
            elif each in "%/":
                pieces.append(each)
    return "".join(pieces).strip()


def _fraction_text(found: re.Match[str], number: float) -> str:
    whole, _, below = found.groups()
    size = abs(number)
    if below.isdigit() and int(below):
        numerator, denominator = round(size * int(below)), int(below)
    else:
        parts = Fraction(size).limit_denominator(10 ** min(len(below), 6) - 1)
        numerator, denominator = parts.numerator, parts.denominator
    sign = "-" if number < 0 and numerator else ""
    if whole is None:
        return f"{sign}{numerator}/{denominator}"
    integer, rest = divmod(numerator, denominator)
    if not rest:
        return f"{sign}{integer}"
    return f"{sign}{integer} {rest}/{denominator}" if integer else f"{sign}{rest}/{denominator}"


def _exponent_text(section: Section, number: float) -> str:
    texts = [token.text for token in section.tokens if token.kind in {*PLACES, "exponent"}]
    mantissa, mark, power = re.split("([eE][+-])", "".join(texts), maxsplit=1)
    whole, _, decimals = mantissa.partition(".")
    step = max(1, sum(map(whole.count, "0#?")))
    exponent = math.floor(math.log10(abs(number))) if number else 0
    exponent -= exponent % step
    places = sum(map(decimals.count, "0#?"))
    shown = f"{number / 10**exponent:.{places}f}" if abs(exponent) < 300 else general(number)
    sign = "-" if exponent < 0 else "+" if mark.endswith("+") else ""
    return f"{shown}E{sign}{abs(exponent):0{power.count('0') or 1}}"
