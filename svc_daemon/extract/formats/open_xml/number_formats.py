"""Numbers as a spreadsheet or chart shows them by a format code; dates and times as ISO writes them."""

import math
import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache, partial

from svc_daemon.extract.formats.open_xml.number_codes import PLACES, Section, read_code
from svc_daemon.extract.formats.open_xml.number_digits import general, show_number

Show = Callable[[float], str]

_USUAL = re.compile(r"(#,##)?(0+)(?:\.(0+))?(%?)")
_EPOCH, _EPOCH_1904 = date(1899, 12, 30), date(1904, 1, 1)
_LAST_DAY = 2_958_466


@lru_cache(maxsize=2000)
def compile_format(code: str, *, is_1904: bool = False) -> Show:
    """Return the function that shows a number in a format."""
    sections = read_code(code)[:4]
    shows = [_show_section(section, is_1904=is_1904) for section in sections]
    has_conditions = any(section.condition for section in sections)

    def show(number: float) -> str:
        if not math.isfinite(number):
            return general(number)
        if has_conditions:
            suited = (place for place, each in enumerate(sections[:3]) if not each.condition or each.condition(number))
            return shows[next(suited, -1)](number)
        if number < 0 and len(sections) > 1:
            # The section for negative numbers writes the sign.
            return shows[1](-number)
        return shows[2 if number == 0 and len(sections) > 2 else 0](number)

    return show if len(sections) > 1 else lambda number: shows[0](number) if math.isfinite(number) else general(number)


def text_format(code: str) -> Callable[[str], str] | None:
    """Return the function that shows a text in a format; None if it shows the text as it is."""
    sections = read_code(code)
    chosen = sections[3] if len(sections) > 3 else sections[-1]
    tokens = chosen.tokens
    if not any(token.kind == "text" for token in tokens):
        # Only a fourth section can take a text away.
        shown = "".join(token.text for token in tokens)
        return (lambda _: shown) if len(sections) > 3 else None
    if len(tokens) == 1:
        return None
    return lambda text: "".join(text if token.kind == "text" else token.text for token in tokens)


def _show_section(section: Section, *, is_1904: bool) -> Show:
    """Return the function that shows numbers in a section; a fast one for the usual codes, since sheets are large."""
    if section.is_date:
        return _times(section, is_1904=is_1904)
    digits = [place for place, token in enumerate(section.tokens) if token.kind in PLACES]
    usual = _USUAL.fullmatch(section.tokens[digits[0]].text) if len(digits) == 1 else None
    if usual is None or any(token.kind in {"exponent", "general", "text"} for token in section.tokens):
        return partial(show_number, section)
    grouped, zeros, decimals, percent = usual.groups()
    before, after = section.tokens[: digits[0]], section.tokens[digits[0] + 1 :]
    start, end = ("".join(token.text for token in tokens) for tokens in (before, after))
    start, end = start.lstrip(), f"{percent}{end}".rstrip()
    places = len(decimals or "")
    spec = f",.{places}f" if grouped else f"0{len(zeros) + (places + 1 if places else 0)}.{places}f"
    factor = 100.0 if percent else 1.0

    def show(number: float) -> str:
        # A half is rounded up, although the nearest binary number may be below it.
        shown = format(abs(number) * factor * 1.000000000000002, spec)
        sign = "-" if number < 0 and shown.strip("0.,") else ""
        return f"{sign}{start}{shown}{end}"

    return show


def _times(section: Section, *, is_1904: bool) -> Show:
    """Return the function that shows dates, times or both as ISO does, and a length of time in its largest unit."""
    units = [token.text[0].lower() for token in section.tokens if token.kind in {"date", "elapsed"}]
    is_exact = any(token.kind == "second_part" for token in section.tokens)
    largest = next((token.text[0] for token in section.tokens if token.kind == "elapsed"), None)
    # An `m` beside hours or seconds is for minutes, any other for months.
    beside = [*zip(units, ["", *units], [*units[1:], ""], strict=False)]
    has_date = any(each not in "hsm" or (each == "m" and last != "h" and after != "s") for each, last, after in beside)
    has_time, has_seconds = "h" in units or "s" in units, "s" in units
    first_day = (_EPOCH_1904 if is_1904 else _EPOCH).toordinal()

    def show(number: float) -> str:
        if not 0 <= number < _LAST_DAY:
            return general(number)
        milliseconds = round(number * 86_400_000)
        if not is_exact:
            milliseconds = (milliseconds + 500) // 1000 * 1000
        seconds, rest = divmod(milliseconds, 1000)
        part = f".{rest:03}" if is_exact else ""
        minutes, left = divmod(seconds, 60)
        if largest:
            shown = {
                "h": f"{minutes // 60}:{minutes % 60:02}",
                "m": f"{minutes}:{left:02}{part}",
                "s": f"{seconds}{part}",
            }
            return shown[largest] + (f":{left:02}{part}" if largest == "h" and has_seconds else "")
        days, minutes = divmod(minutes, 1440)
        # Excel counts a 29th of February 1900, so that earlier days have other numbers.
        days += first_day + (1 if 1 <= days < 60 and not is_1904 else 0)
        day = date.fromordinal(days).isoformat() if has_date else ""
        clock = f"{minutes // 60:02}:{minutes % 60:02}" if has_time else ""
        clock += f":{left:02}{part}" if has_seconds else ""
        return f"{day} {clock}" if day and clock else day or clock

    return show
