"""Filters on attributes of sources, in searches and in policies of agents.

    {"type": "eq", "key": "year", "value": 2024}
    {"type": "and", "filters": [ … ]}

An attribute is a metadata key, or `type`, `filename`, `title`, `content_type` or `source_url`. If the source lacks the
attribute, or its value has another type, a comparison is false (`ne` and `nin` are true).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from svc_daemon.core.json_bodies import refusal

MAX_DEPTH = 8
_ORDERED = {"gt", "gte", "lt", "lte"}
_LIST_OPERATORS = {"in", "nin"}
#: Fields of a search that limit it, by keys of filters that are probably meant for them.
_SCOPES = {"tag": "tags", "tags": "tags", "bucket": "buckets", "buckets": "buckets", "bucket_id": "buckets"}
_SCOPES |= {"bucket_ids": "buckets", "source_id": "source_ids", "source_ids": "source_ids"}
_PREFIX = "metadata."
_SHOWN_CHARACTERS = 60


def _is_same(have: Any, want: Any) -> bool:
    """Return whether the values are equal. Unlike in Python, True is not 1."""
    return isinstance(have, bool) == isinstance(want, bool) and bool(have == want)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _is_same,
    "ne": lambda have, want: not _is_same(have, want),
    "gt": lambda have, want: bool(have > want),
    "gte": lambda have, want: bool(have >= want),
    "lt": lambda have, want: bool(have < want),
    "lte": lambda have, want: bool(have <= want),
    "in": lambda have, want: any(_is_same(have, item) for item in want),
    "nin": lambda have, want: not any(_is_same(have, item) for item in want),
}


def check_filter(node: Any, path: str = "filters", depth: int = 0) -> None:
    """Raise `invalid_request`, naming the invalid part, if the syntax is wrong."""
    if not isinstance(node, dict):
        raise refusal(path, "must be an object.")
    if depth > MAX_DEPTH:
        raise refusal(path, f"is nested more than {MAX_DEPTH} deep.")
    kind = node.get("type")
    if kind in ("and", "or"):
        parts = node.get("filters")
        if not isinstance(parts, list) or not parts:
            raise refusal(f"{path}.filters", "must be a list of at least one filter.")
        for position, part in enumerate(parts):
            check_filter(part, f"{path}.filters[{position}]", depth + 1)
    elif isinstance(kind, str) and kind in _COMPARISONS:
        _check_comparison(node, path)
    else:
        raise refusal(f"{path}.type", f"must be and, or, {', '.join(_COMPARISONS)}; not {kind!r}.")


def warn_of_keys(node: dict[str, Any] | None) -> list[str]:
    """Return warnings about keys of a valid filter that are probably meant for something else than metadata."""
    keys = sorted(set(_keys(node))) if node else []
    warnings = [
        f"`filters` compares metadata, so {key!r} is metadata of this name there; `{field}` chooses sources by it."
        for key in keys
        if (field := _SCOPES.get(key)) is not None
    ]
    prefixed = next((key[:_SHOWN_CHARACTERS] for key in keys if key.startswith(_PREFIX)), None)
    if prefixed is not None:
        named = f"{prefixed!r} is not the metadata {prefixed.removeprefix(_PREFIX)!r}"
        warnings.append(f"In `filters`, {named}: names of metadata have no `{_PREFIX}` before them.")
    return warnings


def _keys(node: dict[str, Any]) -> Iterator[str]:
    if "filters" in node:
        yield from (key for part in node["filters"] for key in _keys(part))
    else:
        yield node["key"]


#: The types of values that are compared with each other.
KINDS = ("text", "number", "boolean")


def list_compared(node: Mapping[str, Any]) -> dict[tuple[str, str], None]:
    """List the attributes that a source must have for a valid filter to hold, each with the kind of its value."""
    if "filters" in node:
        return {each: None for part in node["filters"] for each in list_compared(part)}
    values = node["value"] if isinstance(node["value"], list) else [node["value"]]
    is_denied = node["type"] in ("ne", "nin")
    return {} if is_denied else dict.fromkeys((node["key"], _kind_of(value)) for value in values)


def _kind_of(value: Any) -> str:
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def having(key: str, kind: str) -> dict[str, Any]:
    """Return a filter for the sources whose attribute is of this kind, whatever its value."""
    conditions: dict[str, list[tuple[str, Any]]] = {
        "text": [("gte", "")],
        "number": [("gte", 0), ("lt", 0)],
        "boolean": [("in", [True, False])],
    }
    filters = [{"type": operator, "key": key, "value": value} for operator, value in conditions[kind]]
    return {"type": "or", "filters": filters}


def passes(node: dict[str, Any], attributes: Mapping[str, Any]) -> bool:
    """Return whether a source with these attributes passes a valid filter."""
    if node["type"] == "and":
        return all(passes(part, attributes) for part in node["filters"])
    if node["type"] == "or":
        return any(passes(part, attributes) for part in node["filters"])
    have, want = attributes.get(node["key"]), node["value"]
    # Compare only strings with strings and numbers with numbers; booleans have no order.
    has_boolean = isinstance(have, bool) or isinstance(want, bool)
    is_alike = any(isinstance(have, kind) and isinstance(want, kind) for kind in (str, int | float))
    if node["type"] in _ORDERED and (has_boolean or not is_alike):
        return False
    return _COMPARISONS[node["type"]](have, want)


def _check_comparison(node: dict[str, Any], path: str) -> None:
    if not isinstance(node.get("key"), str) or not node["key"]:
        raise refusal(f"{path}.key", "must be the name of an attribute.")
    value = node.get("value")
    if node["type"] in _LIST_OPERATORS:
        if not isinstance(value, list) or not all(_is_scalar(item) for item in value):
            raise refusal(f"{path}.value", "must be a list of strings, numbers or booleans.")
    elif not _is_scalar(value):
        raise refusal(f"{path}.value", "must be a string, a number or a boolean.")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)
