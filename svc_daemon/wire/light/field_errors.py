"""Messages about invalid fields, without the Python terms of pydantic, and what a number or a blank value is."""

import re
from typing import Any, get_args

#: Python takes more for a number, such as `1_0`, ` 5 `, `inf` and digits of other scripts.
_NUMBER = re.compile(r"-?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,3})?")
#: The hint if a value is blank.
UNSET_VARIABLE = "is a variable unset that the command line uses?"
_WORDS = (
    (re.compile(r"^(Value|Assertion) error, "), ""),
    (re.compile(r"^Field required$|^Missing required .*$"), "is missing"),
    (re.compile(r"^Extra inputs are not permitted$"), "There is no such field"),
    (re.compile(r"^Input should be a valid (?:integer|int).*$"), "must be a whole number"),
    (re.compile(r"^Input should be a valid (?:boolean|bool).*$"), "must be true or false"),
    (re.compile(r"^Input should be False$"), "must be false"),
    (re.compile(r"^Input should be a valid number.*$"), "must be a number"),
    (re.compile(r"^Input should be a valid string.*$"), "must be a string"),
    (re.compile(r"^Input should be a valid (?:list|tuple|array).*$"), "must be a list"),
    (re.compile(r"^Input should be (?:a valid dictionary|an object).*$"), "must be a JSON object"),
    (re.compile(r"^String should match pattern .*$"), "has characters that are not allowed, or too many"),
    (re.compile(r"^(?:String|List|Tuple|Set|Dictionary|Data) should "), "must "),
    (re.compile(r"^Input should "), "must "),
    (re.compile(r" after validation, not \d+$"), ""),
)


def is_number(text: str) -> bool:
    """Whether a text is a number in decimal digits, with or without a fraction and an exponent."""
    return _NUMBER.fullmatch(text) is not None


def is_blank(value: Any) -> bool:
    """Whether a value is blank text, or one of several is."""
    values = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(each, str) and not each.strip() for each in values)


def find_fault_of_number(value: Any, kind: Any) -> str | None:
    """Return what is wrong with a text for a field of the type `kind`, which may be a number; None if nothing is."""
    if not isinstance(value, str) or is_number(value):
        return None
    kinds = [kind, *get_args(kind), *(inner for each in get_args(kind) for inner in get_args(each))]
    return "must be a whole number." if int in kinds else "must be a number." if float in kinds else None


def plain(message: str) -> str:
    """Replace Python terms in a message of pydantic."""
    for pattern, words in _WORDS:
        message = pattern.sub(words, message)
    return message if message.endswith((".", "!", "?")) else f"{message}."
