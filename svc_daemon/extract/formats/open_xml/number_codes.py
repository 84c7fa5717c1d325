"""Format codes of numbers, such as `#,##0.00;[Red]-0%`, in their sections and tokens.

A code has up to four sections: for positive and negative numbers, for zero, and for text. Colours, the widths of
columns and the spelling of dates are not followed.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

#: The codes of the formats that files name only by a number.
BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "yyyy-mm-dd",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    5: '"$"#,##0',
    6: '"$"#,##0',
    7: '"$"#,##0.00',
    8: '"$"#,##0.00',
    20: "h:mm",
    21: "h:mm:ss",
    22: "m/d/yy h:mm",
    **dict.fromkeys((*range(27, 32), 36, *range(50, 59)), "yyyy-mm-dd"),
    32: "h:mm",
    33: "h:mm:ss",
    34: "h:mm",
    35: "h:mm:ss",
    37: "#,##0;(#,##0)",
    38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)",
    41: '#,##0;(#,##0);"-"',
    42: '"$"#,##0;("$"#,##0);"$-"',
    43: '#,##0.00;(#,##0.00);"-"',
    44: '"$"#,##0.00;("$"#,##0.00);"$-"',
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    48: "##0.0E+0",
    49: "@",
}
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_.|\*.|\[(?P<bracket>[^\]]*)\]|(?P<general>general)|'
    r"(?P<ampm>am/pm|a/p|上午/下午)|(?P<exponent>[eE][+-])|(?P<second_part>\.0+(?=[^0#?]|$))|"
    r"(?P<date>y+|m+|d+|h+|s+|e+|g+|b+(?=[y/-]|$)|aaaa?)|(?P<digits>[0#?.,/%]+)|(?P<text>@)|(?P<plain>.)",
    re.IGNORECASE | re.DOTALL,
)
#: The kinds of tokens that have places for digits.
PLACES = frozenset({"digits", "second_part"})
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?[\d.]+)")


class Token(NamedTuple):
    kind: str
    text: str


class Section(NamedTuple):
    """One section of a code."""

    tokens: tuple[Token, ...]
    #: Whether the section is for a number, as its own condition says; None if its place decides.
    condition: Callable[[float], bool] | None
    is_date: bool


def read_code(code: str) -> list[Section]:
    """Return the sections of a code."""
    # A semicolon that is quoted or escaped is a part of another token.
    matches = [*_TOKEN.finditer(code)]
    bounds = [place for place, match in enumerate(matches) if match[0] == ";"]
    return [
        read_section(matches[start:end])
        for start, end in zip([0, *(each + 1 for each in bounds)], [*bounds, len(matches)], strict=True)
    ]


def read_section(matches: list[re.Match[str]]) -> Section:
    tokens: list[Token] = []
    condition = None
    for match in matches:
        kind, text = match.lastgroup or "space", match[match.lastgroup] if match.lastgroup else ""
        if kind == "bracket":
            if found := _CONDITION.match(text):
                condition = _condition(found[1], found[2])
            elif text.startswith("$"):
                tokens.append(Token("plain", text[1:].partition("-")[0]))
            elif re.fullmatch("h+|m+|s+", text, re.IGNORECASE):
                tokens.append(Token("elapsed", text.lower()))
        elif kind == "space":
            # A gap as wide as a character, or one that fills the column.
            if match[0][0] == "_" and tokens:
                tokens.append(Token("plain", " "))
        else:
            tokens.append(Token("plain" if kind in {"quoted", "escaped"} else kind, text))
    is_timed = any(token.kind in {"date", "elapsed", "ampm"} for token in tokens)
    has_places = any(token.kind == "digits" and set(token.text) & set("0#?%") for token in tokens)
    return Section(tuple(tokens), condition, is_timed and not has_places)


def _condition(operator: str, limit: str) -> Callable[[float], bool]:
    try:
        bound = float(limit)
    except ValueError:
        return lambda _: False
    compare: dict[str, Callable[[float], bool]] = {
        "<": lambda number: number < bound,
        ">": lambda number: number > bound,
        "<=": lambda number: number <= bound,
        ">=": lambda number: number >= bound,
        "=": lambda number: number == bound,
        "<>": lambda number: number != bound,
    }
    return compare[operator]
