"""JSON bodies of requests.

Anything that JSON parsers disagree about is refused: duplicate keys, NaN and Infinity, integers beyond 64 bits, lone
surrogates and NUL.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from svc_daemon.errors import ServiceError
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.parsing import NestedTooDeeply, check_levels


def refusal(path: str, message: str) -> ServiceError:
    """Build a 400 `invalid_request` for one field.

    `path` is dotted (`items.3.filename`), or empty for the whole body.
    """
    return ServiceError(
        ErrorCode.INVALID_REQUEST, _sentence(path, message), errors=[{"path": path, "message": message}]
    )


def refusals(errors: list[tuple[str, str]]) -> ServiceError:
    """Build a 400 `invalid_request` for one or more fields, each a path and a message."""
    # Many clients show nothing but the sentence, so that it names a field however many there are.
    sentence, others = _sentence(*errors[0]), len(errors) - 1
    if others:
        sentence += f" {others} other {'field is' if others == 1 else 'fields are'} not valid either."
    listed = [{"path": path, "message": message} for path, message in errors]
    return ServiceError(ErrorCode.INVALID_REQUEST, sentence, errors=listed)


def _sentence(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message


MAX_DEPTH = 32
#: Maximum number of entries in all objects and lists. Validating half a million would block all requests for seconds.
MAX_ENTRIES = 20_000

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
#: Maximum length of a 64-bit integer with its sign; longer numbers are slow to convert.
_INT_CHARACTERS = 20
#: Matches a string, even if its closing quotation mark is missing. Otherwise the search would be repeated from each
#: escaped quotation mark in the string, and take quadratic time.
_STRING = re.compile(r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)(?:"|\\?\Z)', re.DOTALL)
#: Escapes of NUL and of surrogates. Unescaped ones are refused when UTF-8 and JSON are decoded.
_ESCAPED_REFUSED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def parse_object(data: bytes, *, max_depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Parse a JSON object. Raises `invalid_json`, or `invalid_request` if it is not an object.

    JSON that is nested deeper than `max_depth`, or has more than `MAX_ENTRIES` entries, is invalid too.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _invalid(f"byte {error.start} is not UTF-8") from error
    if text.startswith("\ufeff"):
        raise _invalid("it begins with a byte order mark")
    if _count_entries(text) > MAX_ENTRIES and _count_entries(_STRING.sub("", text)) > MAX_ENTRIES:
        raise too_many_entries()
    try:
        document = _DECODER.decode(text)
        if text.count("[") + text.count("{") > max_depth:
            check_levels(document, max_depth)
    except json.JSONDecodeError as error:
        raise _invalid(f"{error.msg}, at line {error.lineno}, column {error.colno}") from error
    except (RecursionError, NestedTooDeeply) as error:
        raise _invalid(f"it is nested deeper than {max_depth} levels") from error
    if _ESCAPED_REFUSED.search(text):
        _check_strings(document)
    if not isinstance(document, dict):
        raise refusal("", "The body must be a JSON object.")
    return document


def too_many_entries() -> ServiceError:
    """Build the error for a document with more than `MAX_ENTRIES` entries."""
    return _invalid(f"its objects and lists have more than {MAX_ENTRIES:,} entries in all")


def find_key(document: Any, key: str, *, skipping: Collection[str] = ()) -> str | None:
    """Return the dotted path of a key in a document, or None.

    Values of keys in `skipping` are not searched.
    """
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict) and key in value:
            return f"{path}{key}"
        waiting.extend((f"{path}{name}.", child) for name, child in _children(value) if name not in skipping)
    return None


def _check_strings(document: Any) -> None:
    """Raise `invalid_json` if a string contains NUL or half a surrogate pair."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        children = list(_children(value))
        waiting.extend(child for _, child in children)
        for text in (each for each in (value, *(name for name, _ in children)) if isinstance(each, str)):
            if "\0" in text:
                raise _invalid("a string contains NUL")
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise _invalid("a string contains half of a surrogate pair")


def _count_entries(text: str) -> int:
    """Count the entries of all objects and lists, by their commas and opening brackets."""
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
    """Parse a number; refuses NaN and Infinity, which Python accepts."""
    number = float(text)
    if not math.isfinite(number):
        raise _invalid("a number is too large" if text[-1].isdigit() else f"{text} is not JSON")
    return number


def _invalid(reason: str) -> ServiceError:
    return ServiceError(ErrorCode.INVALID_JSON, f"The body is not valid JSON: {reason}.")


#: One decoder for all bodies: creating one takes longer than decoding a small body.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_number)
