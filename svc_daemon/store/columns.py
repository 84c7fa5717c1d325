"""Writes the values of rows into columns, and reads them again.

Most tables have a class for their rows, with a field for each column: it lists the columns once. Lists and objects are
stored as JSON. A damaged value costs only itself: it is read as if it were missing, and logged once.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any

from svc_daemon.databases.contract import Row
from svc_daemon.wire.light.parsing import parse_json

log = logging.getLogger(__name__)

#: The fields that the service needs of JSON objects, by column. Other columns may have any.
FIELDS: dict[str, set[str]] = {
    "error": {"code", "message"},
    "extraction": {"chunks"},
    "fetched": {"final_url", "etag", "last_modified"},
    "webhook": {"url", "metadata"},
    "refresh": {"every_seconds", "on_gone", "failures", "gone", "tried_at", "error"},
}


@cache
def _columns_of(row: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(row))


@cache
def insertion(row: Any, table: str, *others: str) -> str:
    """Return the statement that inserts a row of this class. `others` are its fields that are no columns."""
    names = [name for name in _columns_of(row) if name not in others]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES (:{', :'.join(names)})"  # noqa: S608


def column_values(row: Any) -> dict[str, Any]:
    """Return the row's values by column, as they are stored. `from_row` of its class is the inverse."""
    values = {}
    for name in _columns_of(row.__class__):
        value = values[name] = getattr(row, name)
        if isinstance(value, tuple):
            values[name] = _stored_texts(value)
        elif isinstance(value, dict):
            values[name] = json.dumps(value)
        elif isinstance(value, bool):
            values[name] = int(value)
    return values


@lru_cache
def _stored_texts(texts: tuple[str, ...]) -> str:
    """Convert a list of texts to JSON, the inverse of `read_texts`. Most files have the same tags and buckets."""
    return json.dumps(texts)


def read_objects(values: dict[str, Any], *columns: str) -> None:
    """Replace the text of these columns by the JSON object in it; None for a column without text or with a damaged one.

    Without its `metadata`, a row has none, not no object.
    """
    for name in columns:
        values[name] = read_object(values[name], name, values) if values[name] else None
        if values[name] is None and name == "metadata":
            values[name] = {}


def read_object(text: str | None, column: str, row: Row | Mapping[str, Any]) -> Any:
    """Return the JSON object in a column of this row; None if the text is missing or damaged."""
    if not text:
        return None
    try:
        document = parse_json(text)
    except ValueError:
        document = None
    if isinstance(document, dict) and document.keys() >= FIELDS.get(column, set()):
        return document
    _report(column, str(row["id"] if "id" in row.keys() else text)[:100])  # noqa: SIM118
    return None


def read_list(text: str, column: str) -> list[Any]:
    """Parse a list of JSON objects; a damaged list is empty."""
    try:
        document = parse_json(text)
    except ValueError:
        document = None
    if isinstance(document, list) and all(isinstance(each, dict) for each in document):
        return document
    _report(column, text[:100])
    return []


@lru_cache
def read_texts(text: str) -> tuple[str, ...]:
    """Parse a list of texts; a damaged list is empty. Cached, because most files have the same tags and buckets."""
    try:
        document = parse_json(text)
    except ValueError:
        document = None
    if isinstance(document, list) and all(isinstance(each, str) for each in document):
        return tuple(document)
    _report("list of texts", text[:100])
    return ()


@lru_cache
def _report(what: str, where: str) -> None:
    log.error("the state database is damaged: the %s of %s can't be read, and counts as missing", what, where)
