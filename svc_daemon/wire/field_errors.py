"""Messages about invalid fields, without the Python terms of pydantic."""

import re

_WORDS = (
    (re.compile(r"^(Value|Assertion) error, "), ""),
    (re.compile(r"^Field required$|^Missing required .*$"), "is missing"),
    (re.compile(r"^Extra inputs are not permitted$"), "There is no such field"),
    (re.compile(r"^Input should be a valid (?:integer|int).*$"), "must be a whole number"),
    (re.compile(r"^Input should be a valid (?:boolean|bool).*$"), "must be true or false"),
    (re.compile(r"^Input should be a valid number.*$"), "must be a number"),
    (re.compile(r"^Input should be a valid string.*$"), "must be a string"),
    (re.compile(r"^Input should be a valid (?:list|tuple|array).*$"), "must be a list"),
    (re.compile(r"^Input should be (?:a valid dictionary|an object).*$"), "must be a JSON object"),
    (re.compile(r"^String should match pattern .*$"), "has characters that are not allowed, or too many"),
    (re.compile(r"^(?:String|List|Tuple|Set|Dictionary|Data) should "), "must "),
    (re.compile(r"^Input should "), "must "),
    (re.compile(r" after validation, not \d+$"), ""),
)


def plain(message: str) -> str:
    """Replace Python terms in a message of pydantic."""
    for pattern, words in _WORDS:
        message = pattern.sub(words, message)
    return message if message.endswith((".", "!", "?")) else f"{message}."
