"""Finds the sources that match the ids, tags and filters of a search.

Filters are evaluated in SQL, which is faster than in Python. A filter is evaluated in Python only if SQLite could
compare its values differently, such as numbers beyond 2^53.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from svc_daemon.core.search.filters import passes
from svc_daemon.databases.contract import Connection, Row
from svc_daemon.store.columns import read_object, read_texts
from svc_daemon.store.rows.sources.sources import generations_of, places_of
from svc_daemon.wire.light.parsing import parse_json
from svc_daemon.wire.sources import FetchFacts, StoredRefresh

Filter = Mapping[str, Any]

#: Attributes of a source that have a column. The column takes precedence over a metadata key of the same name.
_COLUMNS = ("type", "filename", "title", "content_type", "source_url")
_OPERATORS = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
#: Maps some comparisons to the comparison that they negate.
_OPPOSITES = {"ne": "eq", "nin": "in"}
#: Matches metadata keys that need no escaping in a JSON path.
_PLAIN_KEY = re.compile(r"[\w.:/@ -]{1,200}", re.ASCII)
#: A float represents every integer below this exactly.
_EXACT = 2**53
#: With more comparisons, an expression may be nested too deeply for SQLite.
_MOST_COMPARISONS = 100


class NotInSql(Exception):
    """Raised for a filter that SQLite can't evaluate as Python does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The conditions that a source must meet to be searched; None means any."""

    #: Search the sources that the index has in one of these buckets. None searches every indexed source.
    bucket_ids: Sequence[str] | None
    source_ids: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    #: A filter that `core.search.filters.check_filter` accepted.
    filters: dict[str, Any] | None = None
    #: Whether any one source is enough.
    is_one_enough: bool = False


def list_candidates(connection: Connection, team_id: str, wanted: Wanted) -> list[str]:
    """List the ids of the team's sources that meet all conditions, without duplicates."""
    values = Values()
    conditions = [f"s.team_id = {values.add(team_id)} AND s.status = 'active'"]
    if wanted.bucket_ids is not None:
        conditions.append(f"m.bucket_id IN {values.add_list(wanted.bucket_ids)} AND m.sync_status = 'active'")
    if wanted.source_ids is not None:
        conditions.append(f"s.id IN {values.add_list(wanted.source_ids)}")
    if wanted.tags:
        has = f"(SELECT count(DISTINCT value) FROM json_each(s.tags) WHERE value IN {values.add_list(wanted.tags)})"  # noqa: S608
        conditions.append(f"{has} = {values.add(len(set(wanted.tags)))}")
    joined = "" if wanted.bucket_ids is None else " JOIN memberships m ON m.source_id = s.id"
    try:
        sifting = [] if wanted.filters is None else [_condition(wanted.filters, values)]
    except NotInSql:
        return _sift(connection, f"{joined} WHERE {' AND '.join(conditions)}", values, wanted.filters or {})
    # Return all ids in one row, because fetching a row per id would take longer than the search for the ids.
    found = f"SELECT s.id FROM sources s{joined} WHERE {' AND '.join([*conditions, *sifting])}"  # noqa: S608
    limit = " LIMIT 1" if wanted.is_one_enough else ""
    statement = f"SELECT json_group_array(id) FROM ({found}{limit}) AS found"  # noqa: S608
    (listed,) = connection.execute(statement, values.named).fetchone()
    return list(dict.fromkeys(parse_json(listed)))


def _sift(connection: Connection, rest: str, values: "Values", filters: dict[str, Any]) -> list[str]:
    """Like `list_candidates`, but evaluate the filter in Python."""
    statement = f"SELECT s.id, s.metadata, {', '.join(f's.{name}' for name in _COLUMNS)} FROM sources s{rest}"  # noqa: S608
    passing: dict[str, None] = {}
    for row in connection.execute(statement, values.named).fetchall():
        metadata = read_object(row["metadata"], "metadata", row) or {}
        if passes(filters, {**metadata, **{name: row[name] for name in _COLUMNS}}):
            passing[row["id"]] = None
    return list(passing)


class Values:
    """Collects the values to bind to a statement, under the names `v0`, `v1` and so on."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}

    def add(self, value: Any) -> str:
        """Add a value and return its placeholder."""
        name = f"v{len(self.named)}"
        self.named[name] = value
        return f":{name}"

    def add_list(self, values: Sequence[Any]) -> str:
        return f"(SELECT value FROM json_each({self.add(json.dumps(list(values)))}))"  # noqa: S608


def _condition(node: Filter, values: Values) -> str:
    """Convert the filter to an SQL condition that is never NULL. Raises NotInSql."""
    if len(values.named) > _MOST_COMPARISONS:
        raise NotInSql
    if node["type"] in ("and", "or"):
        joint = " AND " if node["type"] == "and" else " OR "
        return f"({joint.join([_condition(part, values) for part in node['filters']])})"
    if node["type"] in _OPPOSITES:
        return f"NOT {_condition({**node, 'type': _OPPOSITES[node['type']]}, values)}"
    return f"coalesce({_comparison(node['type'], node['key'], node['value'], values)}, FALSE)"


def _comparison(kind: str, key: str, value: Any, values: Values) -> str:
    """Convert a comparison to SQL, which may evaluate to NULL if the source lacks the attribute."""
    if kind == "in":
        if len(value) > _MOST_COMPARISONS:
            raise NotInSql
        return f"({' OR '.join(_comparison('eq', key, each, values) for each in value) or 'FALSE'})"
    bound = values.add(_plain(value))
    if key in _COLUMNS:
        # These columns contain texts. No number equals a text, but SQLite would convert the number to a text first.
        return f"s.{key} {_OPERATORS[kind]} {bound}" if isinstance(value, str) else "FALSE"
    if not _PLAIN_KEY.fullmatch(key):
        raise NotInSql
    path = values.add(f'$."{key}"')
    found = f"json_type(s.metadata, {path})"
    if isinstance(value, bool):
        return f"{found} = '{'true' if value else 'false'}'" if kind == "eq" else "FALSE"
    extracted = f"json_extract(s.metadata, {path})"
    if isinstance(value, str):
        return f"({found} = 'text' AND {extracted} {_OPERATORS[kind]} {bound})"
    # Use CASE, not AND: PostgreSQL may evaluate both sides of AND, and casting a text that isn't a number fails.
    number = f"CAST({extracted} AS DOUBLE PRECISION)"
    return f"CASE WHEN {found} IN ('integer', 'real') THEN {number} {_OPERATORS[kind]} {bound} END"


def _plain(value: Any) -> Any:
    """Return the value. Raises NotInSql if SQLite and Python may compare it differently.

    Fractions are refused, because SQLite and Python may parse their last digit differently.
    """
    if isinstance(value, str):
        # JSON can contain lone surrogates and NUL, but SQLite may compare them differently.
        if any(each == "\0" or "\ud800" <= each <= "\udfff" for each in value):
            raise NotInSql
    elif not abs(value) < _EXACT or value != int(value):
        raise NotInSql
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSource:
    """The fields of an indexed source that are shown with a search hit, or decide whether the hit is still valid."""

    id: str
    title: str
    filename: str
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    source_url: str | None = None
    fetched: FetchFacts | None = None
    refresh: StoredRefresh | None = None
    #: Numbers of the extractions whose search hits are still valid.
    generations: range
    #: Maps the id of each bucket to the source's status in it (see `core.readiness`), oldest bucket first.
    places: dict[str, str] = field(default_factory=dict)
    #: The numbers of pages whose text was recognised in pictures, and how certain it is, 0 to 1.
    recognized_pages: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_row(cls, row: Row) -> "FoundSource":
        return cls(
            id=row["id"],
            title=row["title"],
            filename=row["filename"],
            tags=read_texts(row["tags"]),
            metadata=read_object(row["metadata"], "metadata", row) or {},
            source_url=row["source_url"],
            fetched=read_object(row["fetched"], "fetched", row),
            refresh=read_object(row["refresh"], "refresh", row),
            generations=generations_of(row["valid_from"], row["generation"]),
            places=places_of(row["places"]),
            recognized_pages=(read_object(row["recognized"], "extraction", row) or {}).get("recognized_pages", {}),
        )


def list_active_sources(connection: Connection, team_id: str, source_ids: list[str]) -> dict[str, FoundSource]:
    """Map the ids of these sources to their fields. Sources that aren't indexed are left out."""
    rows = connection.execute(
        "SELECT id, title, filename, tags, metadata, source_url, fetched, refresh, valid_from, generation, places,"
        # Of most documents, this isn't needed.
        " CASE WHEN extraction LIKE '%\"recognized_pages\"%' THEN extraction END AS recognized FROM source_views"
        " WHERE team_id = :team_id AND status = 'active' AND id IN (SELECT value FROM json_each(:ids))",
        {"team_id": team_id, "ids": json.dumps(source_ids)},
    ).fetchall()
    return {row["id"]: FoundSource.from_row(row) for row in rows}
