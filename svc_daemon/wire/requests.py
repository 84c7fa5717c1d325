"""Base classes of bodies, and the fields that limit what is searched, even under other names.

If such a field were ignored, the search would find documents that the caller wanted to exclude. So obvious synonyms are
accepted, such as `bucket: "a"` for `buckets: ["a"]`, and other names are refused.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from svc_daemon.wire.light.field_errors import plain

#: How much of unknown names a warning has.
_SHOWN_FIELDS, _SHOWN_CHARACTERS = 5, 40

Place = tuple[str | int, ...]
#: A field's path and an error message.
Fault = tuple[Place, str]


class Paging(TypedDict, total=False):
    """The fields that a list has only if the request has `limit`."""

    has_more: bool
    #: The value of `after` for the next page; null if the page is empty.
    last_id: str | None


def _describe_nulls(schema: dict[str, Any]) -> None:
    """Allow null in a body's schema for each optional field."""
    fields = schema.get("properties", {})
    for name in fields.keys() - schema.get("required", ()):
        if "anyOf" not in fields[name] and fields[name].keys() & {"type", "$ref"}:
            fields[name] = {"anyOf": [fields[name], {"type": "null"}]}


class RequestBody(BaseModel):
    """A request body, or a part of it. Values of a wrong type are refused, and unknown fields are ignored."""

    #: A model's schema is built when it is first used.
    model_config = ConfigDict(strict=True, defer_build=True, json_schema_extra=_describe_nulls)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: Any) -> Any:
        """Remove fields that are null, which some clients send for every unset field."""
        if not isinstance(fields, dict):
            return fields
        return {name: value for name, value in fields.items() if value is not None}


def _refuse_dry_run(sent: Any) -> Any:
    if sent is not False:
        raise ValueError("This request has no dry run.")
    return sent


class NoDryRunBody(RequestBody):
    """A request body, or a part of it, that refuses dry runs."""

    #: Must be false. Only requests that create, attach or finalize something have dry runs.
    dry_run: Annotated[Literal[False], BeforeValidator(_refuse_dry_run), Field(exclude=True)] = False


#: The error for a webhook in a request that takes none.
NO_WEBHOOK = "is for imports and pages only; poll the source until it is ready."


class UploadBody(RequestBody):
    """A body of an upload, in which a webhook is refused wherever it is."""

    #: Always refused: only URL imports can have a webhook.
    webhook: Any = None

    @model_validator(mode="before")
    @classmethod
    def _without_webhook(cls, fields: Any) -> Any:
        return without_webhook(fields)


class SourceDescription(RequestBody):
    """The fields of a body that describe a new source of any kind."""

    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)
    replaces: str | None = None
    mapping: str | None = None


class FileDescription(SourceDescription):
    """The fields of a body that describe a new source which is made from a file."""

    title: str | None = None
    sha256: str | None = None


def without_webhook(fields: Any) -> Any:
    """Return the fields. Raises PydanticCustomError if a field of them, at any depth, is a webhook."""
    if faults := [(path, NO_WEBHOOK) for path in _webhooks_below((), fields)]:
        raise PydanticCustomError("webhook", "A webhook is not taken.", {"faults": faults})
    return fields


def _webhooks_below(path: Place, value: Any) -> Iterator[Place]:
    """Yield the paths of fields inside `value` that are named `webhook` and aren't null."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in children:
        if name == "webhook" and each is not None:
            yield (*path, name)
        elif name != "metadata":
            yield from _webhooks_below((*path, name), each)


BUCKETS, SOURCES, TAGS, FILTERS, AGENT = "buckets", "sources", "tags", "filters", "agents"

#: Accepted names for each kind of scope (a limit on what is searched), in lower case and without `_` and `-`.
PLAIN: Mapping[str, tuple[str, ...]] = {
    BUCKETS: ("bucket", "buckets", "bucketid", "bucketids", "bucketslug", "bucketslugs"),
    SOURCES: ("source", "sources", "sourceid", "sourceids"),
    TAGS: ("tag", "tags"),
    FILTERS: ("filter", "filters"),
    AGENT: ("agent",),
}
#: Names of scopes in other services or other requests. Fields with these names, or with their plurals, are refused.
FOREIGN: Mapping[str, tuple[str, ...]] = {
    BUCKETS: (
        "vectorstore", "vectorstoreid", "store", "storeid", "bucketstore", "bucketstoreid", "collection",
        "collectionid", "collectionname", "namespace", "knowledgebase", "knowledgebaseid", "datastore", "datastoreid",
        "scope", "policy", "slug", "corpus", "dataset", "datasetid", "kb", "kbid", "index", "indexname",
    ),
    SOURCES: ("knowledgeid", "knowledgefileid", "file", "fileid", "documentid", "docid", "document", "doc"),
    FILTERS: ("metadatafilter", "tagfilter", "where"),
    AGENT: ("agents", "agentid", "agentname", "agentslug"),
}  # fmt: skip
#: Properties of documents by which other services limit a search. Searches and questions refuse fields of these names;
#: deeper in a body, they may mean anything.
PROPERTIES: Mapping[str, str] = dict.fromkeys(
    (
        "contenttype", "mimetype", "mediatype", "url", "sourceurl", "domain", "site", "language", "lang", "author",
        "category", "folder", "path", "exclude", "date", "datefrom", "dateto", "daterange", "year", "since", "until",
        "before", "createdat", "createdafter", "createdbefore", "updatedat", "updatedafter", "updatedbefore",
        "threshold", "minscore",
    ),
    FILTERS,
)  # fmt: skip
#: Fields with the caller's own data, in which names of scopes are allowed.
_FREE = ("metadata", "messages", "input", "prompt", "text", "function", "functions", "responseformat")
#: OpenAI tools that don't search this service's documents. They are ignored.
_OTHER_TOOLS = re.compile(r"function|custom|web_search|code_interpreter|computer|image_generation|mcp|(local_)?shell")

#: More names that can only mean a scope, such as `allowed_buckets`, `sourceName` or `tags_any`.
_HINTS = re.compile(
    r"bucket|^bkts?|(?<!re)sources?(name|title|slug|id|filter|in|$)|filename|filter|^tag(s|name|ged)|tags$"
)

_KINDS = {name: kind for kind, names in PLAIN.items() for name in names}
#: The names in `FOREIGN` and their plurals, without `store` and `file`, which limit no search in OpenAI's API.
_FOREIGN = {spelled for names in FOREIGN.values() for name in names for spelled in (name, f"{name}s")} - {
    "store",
    "file",
}


#: Names of which a misspelled one is known for what it means.
_LONG = tuple(name for name in _KINDS if len(name) >= len("agent"))


def is_slip(name: str, meant: str) -> bool:
    """Return whether one letter that is missing, added, wrong or in the place of the next makes the difference."""
    start = next((number for number, pair in enumerate(zip(name, meant, strict=False)) if pair[0] != pair[1]), None)
    if start is None:
        return abs(len(name) - len(meant)) == 1
    sent, right = name[start:], meant[start:]
    is_swapped = sent[:2] == right[:2][::-1] and sent[2:] == right[2:]
    return is_swapped or sent[1:] in (right, right[1:]) or sent == right[1:]


def bare(name: str) -> str:
    """Reduce a name to its letters and digits."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


class ScopedBody(RequestBody):
    """A request body with fields that limit what is searched."""

    #: Maps each kind of scope that this body accepts to the name of its field.
    scopes: ClassVar[Mapping[str, str]] = {}
    #: More names that are refused in this body, each with its kind of scope (see `FOREIGN`).
    foreign_scopes: ClassVar[Mapping[str, str]] = {}
    #: More synonyms that are accepted in this body, each with its kind of scope (see `PLAIN`).
    plain_scopes: ClassVar[Mapping[str, str]] = {}
    #: Names that look like a scope, but mean something else in this body.
    unscoped: ClassVar[Collection[str]] = ()
    #: The error for a scope that this body doesn't accept.
    refusal: ClassVar[str] = "There is no such field."

    @classmethod
    def field_meant_by(cls, name: str) -> str | None:
        """Return the field of this body for which `name` is a synonym, or None."""
        kind = _KINDS.get(bare(name)) or cls.plain_scopes.get(bare(name))
        return cls.scopes.get(kind) if kind else None

    @classmethod
    def means_scope(cls, name: str) -> bool:
        """Return whether a field with this name would limit the search, even if this body doesn't accept the field."""
        named = bare(name)
        known = named in _KINDS or named in {*_FOREIGN, *cls.foreign_scopes, *cls.plain_scopes}
        hinted = known or _HINTS.search(named) is not None or any(is_slip(named, each) for each in _LONG)
        return hinted and named not in cls.unscoped

    @model_validator(mode="before")
    @classmethod
    def _with_scopes(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        own = {*cls.model_fields, *(field.alias for field in cls.model_fields.values())}
        taken = {name: value for name, value in fields.items() if name in own}
        faults: list[Fault] = []
        for name, value in fields.items():
            if name not in own and value is not None:
                faults += cls._take(taken, name, value)
            if name not in own or name == "tools":
                faults += [(path, cls._refusal()) for path in _scopes_below((name,), value)]
        if faults:
            raise PydanticCustomError("scope", "A scope is not taken.", {"faults": faults})
        return taken

    @classmethod
    def _take(cls, taken: dict[str, Any], name: str, value: Any) -> list[Fault]:
        """Add a request field to `taken`. A synonym is replaced by the name of the field. Returns the errors."""
        field = cls.field_meant_by(name)
        if field is None:
            taken[name] = value
            return [((name,), cls._refusal())] if cls.means_scope(name) else []
        if taken.get(field) is not None or taken.get(cls.model_fields[field].alias or field) is not None:
            return [((name,), f"means the same as `{field}`; send one of the two.")]
        is_one_of_many = isinstance(value, str) and field not in ("agent", "model")
        taken[field] = [value] if is_one_of_many else value
        return []

    @classmethod
    def _refusal(cls) -> str:
        fields = ", ".join(f"`{field}`" for field in cls.scopes.values())
        return f"{cls.refusal} What is searched is narrowed by {fields}." if fields else cls.refusal


def list_unknown(body: RequestBody, known: Collection[str] = ()) -> str:
    """Return the names of the fields that a body doesn't have, the first of them, shortened."""
    unknown = sorted((body.model_extra or {}).keys() - set(known))
    return ", ".join(name[:_SHOWN_CHARACTERS] for name in unknown[:_SHOWN_FIELDS])


def faults_of(error: ValidationError) -> list[tuple[str, str]]:
    """Return the paths and messages of validation errors, without the values that were sent."""
    found: list[tuple[str, str]] = []
    for each in error.errors(include_url=False, include_input=False):
        # `ScopedBody` reports several errors in one exception.
        faults = each.get("ctx", {}).get("faults", [((), each["msg"])])
        found += [(".".join(map(str, (*each["loc"], *place))), plain(message)) for place, message in faults]
    return found


def _scopes_below(path: Place, value: Any) -> Iterator[Place]:
    """Yield the paths of fields inside `value` that have a scope's name and aren't null."""
    if bare(str(path[-1])) in _FREE:
        return
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _scopes_below((*path, number), each)
    if not isinstance(value, dict) or _OTHER_TOOLS.match(str(value.get("type", ""))):
        return
    for name, each in value.items():
        if each is not None and ScopedBody.means_scope(name):
            yield (*path, name)
        else:
            yield from _scopes_below((*path, name), each)
