"""The Milvus collections of the search index, the ids of their rows, and filters for rows.

All teams share the collections, and the team's id is the partition key. A row's id contains its edition (the
version of the document), so a new version never overwrites rows that a search is reading. There is a collection of
vectors for each number of dimensions.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

#: Schema version, part of the collections' names. There are no migrations: an index of another version is rebuilt.
VERSION = 2
#: Maximum size of a text field in bytes: Milvus's limit.
TEXT_BYTES = 65_535
#: Maximum size in bytes of an id, and of a row's id, which consists of several ids.
ID_BYTES, NAME_BYTES = 256, 1024
#: Maximum size in bytes of the code of a language.
LANGUAGE_BYTES = 16
#: Maximum number of buckets of a document: Milvus's limit for arrays.
MOST_BUCKETS = 4096
#: Number of partitions over which the teams are distributed.
PARTITIONS = 64

FieldType = Literal["VARCHAR", "INT64", "BOOL", "ARRAY", "FLOAT_VECTOR", "SPARSE_FLOAT_VECTOR"]
#: Maps field names to values.
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """A field of a collection."""

    name: str
    type: FieldType
    #: Further parameters of the field, as pymilvus names them.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Parameters of the field's index, as pymilvus names them; None if the field has no index.
    index: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSpec:
    """A collection's name and fields."""

    name: str
    fields: tuple[FieldSpec, ...]
    #: Names of the field with the text to search, and of the field with its BM25 weights.
    bm25: tuple[str, str] | None = None


def _text(name: str, *, is_indexed: bool = False, **options: Any) -> FieldSpec:
    options = {"max_length": TEXT_BYTES, **options}
    return FieldSpec(name=name, type="VARCHAR", options=options, index=_SCALAR if is_indexed else None)


def _number(name: str) -> FieldSpec:
    return FieldSpec(name=name, type="INT64")


_SCALAR = {"index_type": "INVERTED"}
_VECTOR = {"index_type": "AUTOINDEX", "metric_type": "IP"}
#: The constants of SQLite's FTS5, so that both providers rank alike.
_BM25 = {
    "index_type": "SPARSE_INVERTED_INDEX",
    "metric_type": "BM25",
    "params": {"bm25_k1": 1.2, "bm25_b": 0.75},
}

#: The first fields of every collection.
_IDS = (
    _text("id", is_primary=True, max_length=NAME_BYTES),
    _text("team_id", is_partition_key=True, max_length=ID_BYTES),
    _text("source_id", is_indexed=True, max_length=ID_BYTES),
    _text("edition", is_indexed=True, max_length=ID_BYTES),
    FieldSpec(
        name="bucket_ids",
        type="ARRAY",
        options={"element_type": "VARCHAR", "max_capacity": MOST_BUCKETS, "max_length": ID_BYTES},
        index=_SCALAR,
    ),
)


#: This field is never searched, but Milvus requires a vector field.
_NOTHING = FieldSpec(name="nothing", type="FLOAT_VECTOR", options={"dim": 2}, index=_VECTOR)


@dataclass(frozen=True, slots=True)
class Collections:
    """The names of the collections of one installation."""

    #: Beginning of all names, so that installations can share one Milvus.
    prefix: str

    @property
    def documents(self) -> str:
        """Name of the collection with a row for each version of a document, and further rows for long texts."""
        return f"{self.prefix}_{VERSION}_documents"

    @property
    def chunks(self) -> str:
        return f"{self.prefix}_{VERSION}_chunks"

    def vectors(self, dimension: int) -> str:
        return f"{self.prefix}_{VERSION}_vectors_{dimension}"

    def find_dimension(self, name: str) -> int | None:
        """Return the number of dimensions of a collection of vectors; None for other collections."""
        begin, _, dimension = name.rpartition("_")
        return int(dimension) if f"{begin}_0" == self.vectors(0) and dimension.isdecimal() else None

    def mark(self, mark: str) -> str:
        """Name of the empty collection that is the mark of an installation. It has no version."""
        return f"{self.prefix}_mark_{mark}"

    def of_mark(self, mark: str) -> CollectionSpec:
        return CollectionSpec(name=self.mark(mark), fields=(_IDS[0], _NOTHING))

    def list_fixed(self) -> list[CollectionSpec]:
        """Return the collections that always exist."""
        return [
            CollectionSpec(
                name=self.documents,
                fields=(
                    *_IDS,
                    _text("title"),
                    _text("language", is_indexed=True, max_length=LANGUAGE_BYTES),
                    _number("generation"),
                    _number("chunks"),
                    _number("piece"),
                    _number("pieces"),
                    _number("stamped_ms"),
                    FieldSpec(name="is_shown", type="BOOL"),
                    _text("body"),
                    _NOTHING,
                ),
            ),
            CollectionSpec(
                name=self.chunks,
                fields=(
                    *_IDS,
                    *map(_number, ("ordinal", "char_start", "char_end", "page", "line_start", "line_end")),
                    _text("headings"),
                    _text("text"),
                    _text("terms", enable_analyzer=True, enable_match=True, analyzer_params={"tokenizer": "standard"}),
                    _text("model", is_indexed=True, max_length=NAME_BYTES),
                    FieldSpec(name="bm25", type="SPARSE_FLOAT_VECTOR", index=_BM25),
                ),
                bm25=("terms", "bm25"),
            ),
        ]

    def of_vectors(self, dimension: int) -> CollectionSpec:
        fields = (
            *_IDS,
            _number("ordinal"),
            _text("model", is_indexed=True, max_length=NAME_BYTES),
            FieldSpec(name="vector", type="FLOAT_VECTOR", options={"dim": dimension}, index=_VECTOR),
        )
        return CollectionSpec(name=self.vectors(dimension), fields=fields)


def chunk_row_id(team_id: str, source_id: str, edition: str, ordinal: int) -> str:
    """Build the id of a chunk's row. Ids sort by source, edition and ordinal."""
    return f"{team_id} {source_id} {edition} {ordinal:07}"


def equals(name: str, value: str | int | bool) -> str:
    """Build a filter for rows whose field has this value."""
    return f"{name} == {_literal(value)}"


def differs(name: str, value: str) -> str:
    """Build a filter for rows whose field has another value."""
    return f"{name} != {_literal(value)}"


def among(name: str, values: Iterable[str | int]) -> str:
    """Build a filter for rows whose field has one of these values. Pass at least one value."""
    return f"{name} in [{', '.join(map(_literal, values))}]"


def outside(name: str, values: Iterable[str]) -> str:
    """Build a filter for rows whose field has none of these values. Pass at least one value."""
    return f"{name} not in [{', '.join(map(_literal, values))}]"


def having_any(ways: Iterable[Sequence[str]]) -> str:
    """Build a filter for chunks that have all terms of one of these ways to write a word."""
    return " or ".join(f"({every(*(f'text_match(terms, {_literal(term)})' for term in way))})" for way in ways)


def within_buckets(bucket_ids: Iterable[str]) -> str:
    """Build a filter for rows in one of these buckets. Pass at least one bucket."""
    return f"array_contains_any(bucket_ids, [{', '.join(map(_literal, bucket_ids))}])"


def every(*filters: str | None) -> str:
    """Build a filter for rows that match all of these filters; None is ignored."""
    return " and ".join(f"({each})" for each in filters if each)


def _literal(value: str | int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    escaped = value.encode(errors="replace").decode().replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
