"""Superscripts: a number directly after a digit is an exponent, and written as in `2^10`, which 210 would misread."""

import re

#: Stand around a superscript until its paragraph is whole, since a file may cut `-6` into a sign and a digit.
BEGIN, END = "\ufffe", "\uffff"
#: A number with its sign.
NUMBER = r"\s*[+\-\u2212\u2013]?\d+(?:[.,]\d+)?\s*"
_EXPONENT = re.compile(rf"(?<=\d){BEGIN}({NUMBER}){END}")
_MARKS = re.compile(f"[{BEGIN}{END}]")


def raised(text: str) -> str:
    """Mark text as superscript."""
    return f"{BEGIN}{text}{END}"


def write_exponents(text: str) -> str:
    """Write the exponents of a paragraph with `^`. Other superscripts stay as they are, without their marks."""
    if BEGIN not in text:
        return text
    text = _EXPONENT.sub(lambda found: f"^{found[1].strip()}", text.replace(f"{END}{BEGIN}", ""))
    return _MARKS.sub("", text)
