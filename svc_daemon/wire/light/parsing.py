"""Parses JSON and TOML. A document that is nested too deeply is invalid, like one with a wrong character.

Python's parsers, and every recursive function that reads their result, fail at about 1,000 levels, with an error that
no caller expects.
"""

import json
import re
from typing import Any

#: Maximum number of levels of objects and lists. What the service writes itself has about 40.
MOST_LEVELS = 200


class NestedTooDeeply(ValueError):
    """Objects and lists are nested in more levels than are read."""

    def __init__(self, most_levels: int) -> None:
        super().__init__(f"it is nested deeper than {most_levels} levels")


def parse_json(text: str | bytes | bytearray, **options: Any) -> Any:
    """Parse JSON with the options of `json.loads`. Raises ValueError if it is invalid or nested too deeply."""
    try:
        document = json.loads(text, **options)
    except RecursionError as error:
        raise NestedTooDeeply(MOST_LEVELS) from error
    # Most documents have so few brackets that they need no further look.
    brackets = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if brackets > MOST_LEVELS:
        check_levels(document)
    return document


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError if it is invalid or nested too deeply."""
    import tomllib  # noqa: PLC0415 - most programs that parse JSON need no TOML

    # The time to parse a dotted key grows with the square of its parts. A key lies between two of these characters.
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    if any(part.count(".") > MOST_LEVELS for line in lines for part in re.split(r"[][={},]", line)):
        raise NestedTooDeeply(MOST_LEVELS)
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise NestedTooDeeply(MOST_LEVELS) from error
    # A dotted key nests tables without any bracket.
    check_levels(document)
    return document


def check_levels(document: Any, most_levels: int = MOST_LEVELS) -> None:
    """Raise NestedTooDeeply if the document's objects and lists are nested in more levels than `most_levels`."""
    level = _containers([document])
    for _ in range(most_levels):
        if not level:
            return
        level = [child for each in level for child in _containers(each.values() if isinstance(each, dict) else each)]
        # The aliases of YAML repeat a container, or make it contain itself.
        level = list({id(child): child for child in level}.values())
    if level:
        raise NestedTooDeeply(most_levels)


def _containers(values: Any) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]
