"""The body of a request: which JSON is accepted, and the errors about its fields.

JSON is UTF-8, bounded in depth and entries, and without what readers of JSON disagree about. Refused: duplicate keys
(each reader keeps another one), NaN and Infinity (not JSON), integers past 64 bits (stores change or refuse them), lone
surrogates and NUL (they break on the way into UTF-8 and SQL).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode


def refusal(path: str, message: str) -> ServiceError:
    """A 400 `invalid_request` about one field; `path` is dotted, such as `items.3.filename`, or empty for the whole."""
    return ServiceError(
        ErrorCode.INVALID_REQUEST, _sentence(path, message), errors=[{"path": path, "message": message}]
    )


def refusals(errors: list[tuple[str, str]]) -> ServiceError:
    """A 400 `invalid_request` about several fields, each a path and a message; at least one."""
    path, message = errors[0]
    sentence = _sentence(path, message) if len(errors) == 1 else f"{len(errors)} fields of the request are not valid."
    listed = [{"path": path, "message": message} for path, message in errors]
    return ServiceError(ErrorCode.INVALID_REQUEST, sentence, errors=listed)


def _sentence(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message


MAX_DEPTH = 32
#: Entries of all objects and lists together, counted before anything is read: to find what is wrong with each of half
#: a million takes seconds, in which no other request is served.
MAX_ENTRIES = 20_000

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
#: Digits and sign of the longest 64-bit integer; longer ones are refused before they cost anything to convert.
_INT_CHARACTERS = 20
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
#: NUL and surrogates reach a decoded string through an escape alone: the decoder of UTF-8 refuses them as bytes.
_ESCAPED_MISCHIEF = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def parse_object(data: bytes, *, max_depth: int = MAX_DEPTH) -> dict[str, Any]:
    """The object that `data` spells.

    Raises ServiceError `invalid_json` for anything that is not JSON in the sense above or is nested deeper than
    `max_depth` or has more than `MAX_ENTRIES`, and `invalid_request` for a document that is not an object.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _invalid(f"byte {error.start} is not UTF-8") from error
    if _count_entries(text) > MAX_ENTRIES and _count_entries(_STRING.sub("", text)) > MAX_ENTRIES:
        raise too_many_entries()
    try:
        document = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _invalid(f"{error.msg}, at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise _invalid("it is nested too deep") from error
    if _ESCAPED_MISCHIEF.search(text) or text.count("[") + text.count("{") > max_depth:
        _check_values(document, max_depth)
    if not isinstance(document, dict):
        raise refusal("", "The body must be a JSON object.")
    return document


def too_many_entries() -> ServiceError:
    """The error for a document with more than `MAX_ENTRIES`."""
    return _invalid(f"its objects and lists have more than {MAX_ENTRIES:,} entries in all")


def find_key(document: Any, key: str, *, skipping: Collection[str] = ()) -> str | None:
    """The dotted path of a `key` in the document, None without one; keys in `skipping` are not entered."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict) and key in value:
            return f"{path}{key}"
        waiting.extend((f"{path}{name}.", child) for name, child in _children(value) if name not in skipping)
    return None


def _check_values(document: Any, max_depth: int) -> None:
    """Refuse what is nested too deep, and strings with NUL or half of a surrogate pair."""
    level, depth = [document], 0
    while level:
        children = [child for value in level for child in _children(value)]
        for text in (each for each in (*level, *(name for name, _ in children)) if isinstance(each, str)):
            if "\0" in text:
                raise _invalid("a string contains NUL")
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise _invalid("a string contains half of a surrogate pair")
        level = [child for _, child in children]
        depth += any(isinstance(child, dict | list) for child in level)
        if depth >= max_depth:
            raise _invalid(f"it is nested deeper than {max_depth} levels")


def _count_entries(text: str) -> int:
    """Each has a comma before it, or the bracket of what it is the first of."""
    return text.count(",") + text.count("[") + text.count("{")


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(index), child) for index, child in enumerate(value))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise _invalid(f"the key {name!r} occurs twice in one object")
    return document


def _integer(text: str) -> int:
    if len(text) > _INT_CHARACTERS or not _INT_MIN <= int(text) <= _INT_MAX:
        raise _invalid("an integer does not fit into 64 bits")
    return int(text)


def _number(text: str) -> float:
    """Also of NaN and Infinity, which Python's reader takes for numbers."""
    number = float(text)
    if not math.isfinite(number):
        raise _invalid("a number is too large" if text[-1].isdigit() else f"{text} is not JSON")
    return number


def _invalid(reason: str) -> ServiceError:
    return ServiceError(ErrorCode.INVALID_JSON, f"The body is not valid JSON: {reason}.")


#: One decoder for all bodies: making one per call costs more than a small body.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_number)
