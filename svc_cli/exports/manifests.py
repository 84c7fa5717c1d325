"""The manifest of an export: a description of the bucket, its sources and its questions with answers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from svc_cli.client.new_files import FIELD_LEVELS, MOST_LEVELS, count_levels
from svc_cli.errors import SvcError
from svc_cli.exits import Exit
from svc_daemon.wire.buckets import Chunking, Description, Name, Slug
from svc_daemon.wire.light.field_errors import plain
from svc_daemon.wire.light.names import clean_name, find_fault_of_name, find_flaw
from svc_daemon.wire.light.parsing import parse_json

if TYPE_CHECKING:
    from svc_cli.client.types import BucketFieldsDict

#: Maximum nesting depth of the JSON: that of a source's metadata, plus three levels around it.
MANIFEST_LEVELS = MOST_LEVELS + 3
#: The smallest and the largest integer that the service accepts in JSON.
LEAST_INTEGER, MOST_INTEGER = -(2**63), 2**63 - 1

#: Bytes of a SHA-256.
HASH_BYTES = 32

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ExportRefused(SvcError):
    """The file is not a valid export. Nothing was changed."""

    code = "svc_export_refused"
    exit = Exit.FAILED


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ExportedBucket(_Shape):
    slug: Slug
    name: Name
    description: Description
    metadata: dict[str, Any]
    chunking: Chunking | None

    def fields(self) -> "BucketFieldsDict":
        """Return the fields of a request that creates a bucket like the exported one."""
        fields: BucketFieldsDict = {"name": self.name, "description": self.description, "metadata": self.metadata}
        if self.chunking is not None:
            sizes = self.chunking
            fields["chunking"] = {
                "target": sizes.target,
                "min": sizes.min,
                "max": sizes.max,
                "overlap": sizes.overlap,
            }
        return fields


class _Described(_Shape):
    tags: list[str]
    metadata: dict[str, Any]
    mapping: str | None


#: The fields of a source that name members of the archive. The others describe it.
MEMBER_FIELDS = frozenset({"bytes", "text", "vectors"})


class ExportedSource(_Described):
    """A file or web page. Its bytes, text and vectors are members of the archive, named by their SHA-256."""

    title: str
    filename: str
    content_type: Annotated[str, Field(pattern=r"^[!-~]+/[!-~]+$")]
    bytes: Digest
    #: SHA-256 of the text; None if no text could be extracted.
    text: Digest | None
    #: SHA-256 of the vectors of the source's passages; None if there are no vectors.
    vectors: Digest | None


class ExportedQuestion(_Described):
    question: str
    answer: str
    alternate_questions: list[str]


class ExportedModel(_Shape):
    """The embedding model that has computed the vectors."""

    name: Annotated[str, Field(min_length=1, max_length=1024)]
    #: Number of components of a vector.
    dimension: Annotated[int, Field(ge=1, le=32_768)]

    @property
    def row_bytes(self) -> int:
        """Number of bytes for one vector and the SHA-256 of its text."""
        return HASH_BYTES + 4 * self.dimension


Entry = TypeVar("Entry", ExportedSource, ExportedQuestion)


class ExportManifest(_Shape):
    format: Literal["svc-bucket"] = "svc-bucket"
    version: Literal[1] = 1
    bucket: ExportedBucket
    #: The model that computed the vectors; None if no source has vectors.
    model: ExportedModel | None
    #: The sources, sorted and without duplicates.
    sources: list[ExportedSource]
    questions: list[ExportedQuestion]
    #: The size of each member in bytes, by name.
    members: dict[str, Annotated[int, Field(ge=0, lt=8**11)]]

    def encode(self) -> bytes:
        """Return the manifest as JSON, in the only form that an import accepts."""
        return canonical(self.model_dump()) + b"\n"


def canonical(value: Any) -> bytes:
    """Encode a value as JSON in canonical form. Raises ValueError if it contains NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """Return the distinct entries in the order that a manifest must have."""
    distinct = {canonical(entry.model_dump()): entry for entry in entries}
    return [distinct[key] for key in sorted(distinct)]


def members_of(sources: Sequence[ExportedSource]) -> set[str]:
    """Return the names of the archive's members for these sources."""
    texts = {f"texts/{source.text}" for source in sources if source.text is not None}
    vectors = {f"vectors/{source.vectors}" for source in sources if source.vectors is not None}
    return texts | vectors | {f"bytes/{source.bytes}" for source in sources}


def parse_manifest(data: bytes) -> ExportManifest:
    """Parse a manifest. Raises ExportRefused if `svc` would not have written it."""
    try:
        raw = parse_json(data)
        is_canonical = canonical(raw) + b"\n" == data
    except ValueError as error:
        raise ExportRefused("The manifest of the export is not valid JSON.") from error
    if not isinstance(raw, dict) or raw.get("format") != "svc-bucket":
        raise ExportRefused("The manifest of the export does not name the format svc-bucket.")
    if raw.get("version") != 1:
        raise ExportRefused(
            f"The export has version {raw.get('version')!r} of the format; this release reads version 1.",
            hint="import it with the release of svc that wrote it, or a newer one.",
        )
    for flaw in _flaws_in_json(raw, MANIFEST_LEVELS):
        raise ExportRefused(f"The service would refuse this export: {flaw}")
    try:
        manifest = ExportManifest.model_validate(raw)
    except ValidationError as error:
        (first, *_) = error.errors()
        place = ".".join(map(str, first["loc"]))
        raise ExportRefused(f"The manifest of the export is invalid: {place}: {plain(first['msg'])}") from error
    is_sorted = in_order(manifest.sources) == manifest.sources and in_order(manifest.questions) == manifest.questions
    # Encoding the manifest again shows a missing field: `encode` writes its default value, so the bytes differ.
    if not is_canonical or not is_sorted or manifest.encode() != data:
        raise ExportRefused("The manifest of the export is not in canonical form.")
    if set(manifest.members) != members_of(manifest.sources):
        raise ExportRefused("The manifest of the export does not list exactly the members that its sources name.")
    vectors = [size_bytes for name, size_bytes in manifest.members.items() if name.startswith("vectors/")]
    row_bytes = manifest.model.row_bytes if manifest.model else 0
    if bool(vectors) != bool(row_bytes) or any(not size or size % row_bytes for size in vectors):
        raise ExportRefused("The vectors of the export don't have the size that its model says.")
    return manifest


def check_limits(manifest: ExportManifest, limits: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ExportRefused for the first field that exceeds the service's limits."""
    most = {name: int(limit["value"]) for name, limit in limits.items()}
    for flaw in _flaws(manifest, most):
        raise ExportRefused(f"The service would refuse this export: {flaw}")


def _flaws(manifest: ExportManifest, most: Mapping[str, int]) -> Iterator[str]:
    yield from _flaws_in_metadata("the bucket", manifest.bucket.metadata, most, FIELD_LEVELS)
    for source in manifest.sources:
        yield from _flaws_in_line("a title", source.title, most)
        yield from _flaws_in_description(source.title, source, most, MOST_LEVELS)
        if find_flaw(source.filename) is not None or clean_name(source.filename) != source.filename:
            yield f"the file name {source.filename!r} is not valid."
        size_bytes = manifest.members[f"bytes/{source.bytes}"]
        if not 1 <= size_bytes <= most["file_bytes"]:
            yield f"{source.title!r} has {size_bytes} bytes; a file may have 1 to {most['file_bytes']}."
    for question in manifest.questions:
        yield from _flaws_in_description(question.question, question, most, FIELD_LEVELS)
        for line in (question.question, *question.alternate_questions):
            yield from _flaws_in_line("a question", line, most)
        if not any(map(str.isalnum, question.answer)):
            yield f"the answer to {question.question!r} is blank."


def _flaws_in_description(name: str, entry: _Described, most: Mapping[str, int], levels: int) -> Iterator[str]:
    yield from _flaws_in_metadata(repr(name), entry.metadata, most, levels)
    if entry.mapping is not None:
        yield from _flaws_in_line("a mapping", entry.mapping, most)
    if len(entry.tags) > most["tags"] or len(set(entry.tags)) < len(entry.tags):
        yield f"{name!r} has {len(entry.tags)} tags; a source may have {most['tags']} different ones."
    for tag in entry.tags:
        if len(tag) > most["tag_characters"] or find_fault_of_name(tag):
            yield f"the tag {tag!r} of {name!r} is not valid."


def _flaws_in_line(kind: str, text: str, most: Mapping[str, int]) -> Iterator[str]:
    if find_fault_of_name(text) or len(text) > most["title_characters"]:
        yield f"{text[:80]!r} is not valid as {kind}; it may have 1 to {most['title_characters']} characters."


def _flaws_in_metadata(name: str, metadata: dict[str, Any], most: Mapping[str, int], levels: int) -> Iterator[str]:
    if count_levels(metadata) > levels:
        yield f"the metadata of {name} is nested {count_levels(metadata)} levels deep; the limit is {levels}."
    size_bytes = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())
    if size_bytes > most["metadata_bytes"]:
        yield f"the metadata of {name} has {size_bytes} bytes as JSON; the limit is {most['metadata_bytes']}."


def _flaws_in_json(value: Any, levels: int) -> Iterator[str]:
    """Describe each part of this JSON that the service would refuse."""
    if isinstance(value, str) and "\0" in value:
        yield f"{value[:80]!r} contains a NUL character."
    elif isinstance(value, int) and not LEAST_INTEGER <= value <= MOST_INTEGER:
        yield "its metadata has an integer of more than 64 bits."
    elif isinstance(value, dict | list):
        if not levels:
            yield "its metadata is nested too deeply."
            return
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        for each in inner:
            yield from _flaws_in_json(each, levels - 1)
