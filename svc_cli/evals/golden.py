"""What `svc eval` expects: reads and checks its file of queries, and compares passages with what each must find.

    queries:
      - query: How many days of vacation are there?
        source: handbook.md          an id, a title or a file name
        heading: Vacation            one of the headings above the passage
        text: 30 days                text in the passage
      - query: What does it cost, and who pays?
        name: price
        expect:                      several passages, each with the three fields above, or only a source
          - {source: pricing.md, text: per month}
          - terms.pdf
        tags: [public]               as in a search request
        filters: {type: eq, key: lang, value: en}

A plain list of queries is accepted too, and so is JSON.
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from svc_cli.errors import PathMissing, UsageError
from svc_cli.given_files import read_given
from svc_daemon.wire.light.parsing import MOST_LEVELS, NestedTooDeeply, check_levels, parse_json

TOP_FIELDS = ("queries",)
QUERY_FIELDS = ("query", "name", "expect", "source", "heading", "text", "tags", "filters")
EXPECTATION_FIELDS = ("source", "heading", "text")
#: Maximum number of values in a YAML file. An alias counts as often as it is used.
MOST_VALUES = 1_000_000

#: A hit as the API returns it.
Hit = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A passage to be found; at least one of the fields is set."""

    source: str | None = None
    heading: str | None = None
    text: str | None = None

    def find_rank(self, hits: Sequence[Hit]) -> int | None:
        """Return the rank, from 1, of the first hit that meets every part of the expectation; None if no hit does."""
        for rank, hit in enumerate(hits, start=1):
            is_named = self.source is None or is_source(self.source, hit)
            if is_named and self.has_heading(hit["location"]) and self.has_text(hit["text"]):
                return rank
        return None

    def has_heading(self, location: Mapping[str, Any]) -> bool:
        return self.heading is None or _plain(self.heading) in map(_plain, location.get("headings") or ())

    def has_text(self, passage: str) -> bool:
        """Whether the passage contains the text, ignoring case and differences in white space."""
        return self.text is None or _plain(self.text) in _plain(passage)

    def __str__(self) -> str:
        """Such as `handbook.md > Vacation: "30 days"`."""
        place = " > ".join(each for each in (self.source, self.heading) if each)
        return ": ".join(each for each in (place, f'"{self.text}"' if self.text else "") if each)


def is_source(name: str, source: Mapping[str, Any]) -> bool:
    """Whether a hit or a source has this id, title or file name."""
    return name in (source.get("source_id"), source.get("id"), source["title"], source["filename"])


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenQuery:
    """A query, and the passages that it must find."""

    query: str
    #: The name in reports; by default the query itself.
    name: str
    expected: tuple[Expectation, ...]
    tags: tuple[str, ...] = ()
    filters: Mapping[str, Any] | None = None


class Fields(dict[str, Any]):
    """A YAML mapping in the file, with the number of its first line."""

    line: int | None = None


@dataclass(frozen=True, slots=True)
class _FilePosition:
    """A position in the file, for error messages."""

    file: str
    number: int | None = None
    line: int | None = None

    def refuse(self, what: str) -> NoReturn:
        entry = "" if self.number is None else f", query {self.number}"
        line = "" if self.line is None else f", line {self.line}"
        raise UsageError(f"{self.file}{entry}{line}: {what}", code="svc_golden_refused")


@dataclass(frozen=True, slots=True)
class _FieldReader:
    """Reads and checks the fields of one YAML mapping."""

    fields: Mapping[str, Any]
    place: _FilePosition
    known: tuple[str, ...] = field(default=())

    def refuse_unknown(self) -> None:
        unknown = next((name for name in self.fields if name not in self.known), None)
        if unknown is not None:
            self.place.refuse(f"there is no field {unknown!r}; it may hold {', '.join(self.known)}.")

    def text(self, name: str) -> str | None:
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.place.refuse(f"{name} must be text, not {value!r}; put it in quotes.")
        if not value.strip():
            self.place.refuse(f"{name} is empty.")
        return value

    def query(self) -> GoldenQuery:
        """Return the query that this mapping describes."""
        if not isinstance(self.fields, Mapping):
            self.place.refuse(f"it must be a mapping with `query` and what is expected, not {self.fields!r}.")
        self.refuse_unknown()
        query = self.text("query")
        if query is None:
            self.place.refuse("query is missing.")
        tags, filters = self.fields.get("tags") or [], self.fields.get("filters")
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            self.place.refuse(f"tags must be a list of strings, not {tags!r}.")
        if filters is not None and not isinstance(filters, Mapping):
            self.place.refuse(f"filters must be a mapping, not {filters!r}.")
        try:
            json.dumps(filters, allow_nan=False)
        except (TypeError, ValueError):
            self.place.refuse("filters has a value that JSON has not, such as a date or infinity; quote it as a text.")
        name, expected = self.text("name") or query, tuple(_read_expected(self))
        return GoldenQuery(query=query, name=name, expected=expected, tags=tuple(tags), filters=filters)


def read_golden(path: Path) -> list[GoldenQuery]:
    """Read the queries of a file, in order. Raises PathMissing, and UsageError if the file is invalid."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name the file of expectations.", code="svc_golden_refused")
    if not path.exists():
        raise PathMissing(f"{path}: there is no such file.", details={"path": str(path)})
    loaded = _load(path)
    place = _FilePosition(str(path))
    if isinstance(loaded, Mapping):
        _FieldReader(loaded, place, TOP_FIELDS).refuse_unknown()
        loaded = loaded.get("queries")
    if not isinstance(loaded, list) or not loaded:
        place.refuse("it must hold a list of queries.")
    queries: dict[str, GoldenQuery] = {}
    for number, entry in enumerate(loaded, start=1):
        reader = _FieldReader(entry, _FilePosition(str(path), number, getattr(entry, "line", None)), QUERY_FIELDS)
        golden = reader.query()
        if golden.name in queries:  # reports identify queries by name
            place.refuse(f"two queries are called {golden.name!r}; give one of them another `name`.")
        queries[golden.name] = golden
    return list(queries.values())


def _read_expected(reader: _FieldReader) -> Iterator[Expectation]:
    listed = reader.fields.get("expect")
    is_short = any(name in reader.fields for name in EXPECTATION_FIELDS)
    if listed is None and is_short:
        yield _read_expectation(reader)
        return
    if is_short:
        reader.place.refuse("source, heading and text belong inside `expect` if there is one.")
    if not isinstance(listed, list) or not listed:
        reader.place.refuse("nothing is expected; give source, heading or text, or list several under `expect`.")
    for each in listed:
        fields = {"source": each} if isinstance(each, str) else each
        line = getattr(each, "line", reader.place.line)
        place = _FilePosition(reader.place.file, reader.place.number, line)
        if not isinstance(fields, Mapping):
            place.refuse(f"what is expected must be a mapping or the name of a source, not {each!r}.")
        inner = _FieldReader(fields, place, EXPECTATION_FIELDS)
        inner.refuse_unknown()
        yield _read_expectation(inner)


def _read_expectation(reader: _FieldReader) -> Expectation:
    found = {name: reader.text(name) for name in EXPECTATION_FIELDS}
    if not any(found.values()):
        reader.place.refuse("nothing is expected; give source, heading or text.")
    return Expectation(**found)


def _load(path: Path) -> Any:
    place = _FilePosition(str(path))
    try:
        text = read_given(path).decode("utf-8-sig")
        if path.suffix != ".json":
            loaded = yaml.load(text, _Loader)  # noqa: S506
            check_levels(loaded)
            if _count_values(loaded, {}) > MOST_VALUES:
                place.refuse(f"it has more than {MOST_VALUES} values, counting those of aliases.")
            return loaded
        return parse_json(text, object_pairs_hook=lambda pairs: _once(pairs, place))
    except json.JSONDecodeError as error:
        _FilePosition(str(path), line=error.lineno).refuse(f"it is not JSON: {error.msg}.")
    except UnicodeDecodeError:
        place.refuse("it is not UTF-8 text.")
    except OSError as error:
        place.refuse(f"it can't be read: {error.strerror}.")
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        _FilePosition(str(path), line=line).refuse(f"it is not YAML: {error.problem}.")
    except (RecursionError, NestedTooDeeply):
        place.refuse(f"{NestedTooDeeply(MOST_LEVELS)}.")
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: a date that is not in the calendar.
        place.refuse(f"it is not YAML: {error}.")


def _count_values(value: Any, known: dict[int, int]) -> int:
    """Count a value and those in it. A few aliases can make so many that no memory has room for them."""
    if not isinstance(value, dict | list | tuple | set):
        return 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count_values(each, known) for each in inner)
    return known[id(value)]


def _once(pairs: list[tuple[str, Any]], place: _FilePosition) -> Fields:
    fields = Fields(pairs)
    if len(fields) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        place.refuse(f"a field is there twice: {name!r}.")
    return fields


def _construct_fields(loader: "_Loader", node: yaml.MappingNode) -> Fields:
    fields = Fields()
    fields.line = node.start_mark.line + 1
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable) or key in fields:
            problem = f"the field {key!r} is there twice" if isinstance(key, Hashable) else "a field has no plain name"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
        fields[str(key)] = loader.construct_object(value_node, deep=True)
    return fields


class _Loader(yaml.SafeLoader):
    """Loads YAML. Records the line of each mapping, and refuses duplicate fields."""

    yaml_constructors = {**yaml.SafeLoader.yaml_constructors, "tag:yaml.org,2002:map": _construct_fields}  # noqa: RUF012
