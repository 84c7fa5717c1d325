"""The fields of a source of any kind, as clients send them."""

import json
import re
from dataclasses import dataclass, field, fields
from typing import Any

from svc_daemon.core.json_bodies import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.error_codes import ErrorCode
from svc_daemon.wire.light.names import MAX_NAME_BYTES, NameFlaw, clean_name, find_fault_of_name, find_flaw
from svc_daemon.wire.requests import SourceDescription

_SHA256 = re.compile(r"[0-9a-f]{64}")
#: A list of strings in JSON, as some clients send tags.
_JSON_LIST = re.compile(r'\[\s*(?:".*"\s*)?\]', re.DOTALL)
#: One JSON encoder for all calls, since `json.dumps` with these options would create one in each call.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def split_tags(text: str) -> list[str]:
    """Split a form's comma-separated list of tags; blank entries are ignored.

    Raises `invalid_request` for a list in JSON, whose brackets and quotes would be in the tags.
    """
    if _JSON_LIST.fullmatch(text.strip()):
        raise refusal("tags", "must be separated by commas, as in a,b; this is JSON.")
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def check_tags(tags: list[str], limits: Limits) -> tuple[str, ...]:
    """Return the tags without duplicates, in order. Raises `too_many_tags` or `invalid_request`."""
    unique = tuple(dict.fromkeys(tags))
    if len(unique) > limits.tags:
        raise ServiceError(
            ErrorCode.TOO_MANY_TAGS,
            f"There are {len(unique)} tags; a source takes {limits.tags}.",
            max_tags=limits.tags,
            tags=len(unique),
        )
    for tag in unique:
        if not 1 <= len(tag) <= limits.tag_characters:
            raise refusal("tags", f"a tag has 1 to {limits.tag_characters} characters, not {len(tag)}.")
        if fault := find_fault_of_name(tag):
            raise refusal("tags", f"a tag {fault}")
    return unique


def check_metadata(metadata: Any, limits: Limits) -> dict[str, Any]:
    """Check that metadata is a JSON object within its size limit."""
    if not isinstance(metadata, dict):
        raise refusal("metadata", "must be a JSON object.")
    size_bytes = len(_encode(metadata).encode())
    if size_bytes > limits.metadata_bytes:
        raise ServiceError(
            ErrorCode.METADATA_TOO_LARGE,
            f"The metadata has {size_bytes} bytes as JSON; a source takes {limits.metadata_bytes}.",
            max_bytes=limits.metadata_bytes,
            size_bytes=size_bytes,
        )
    return metadata


def check_title(title: str, limits: Limits, path: str = "title") -> str:
    """Return the title. Raises `invalid_request` if it is blank, too long or has characters that no name has."""
    if fault := find_fault_of_name(title):
        raise refusal(path, fault)
    if len(title) > limits.title_characters:
        raise refusal(path, f"has {len(title)} characters; the limit is {limits.title_characters}.")
    return title


def choose_title(given: str | None, filename: str) -> str:
    """Return the title of a source: the given one, or the file name if there is none or it is empty."""
    return given or filename


def check_mapping(mapping: str | None, limits: Limits) -> str | None:
    """Check the name of a mapping, a folder that `svc sync` keeps in a bucket; "" becomes None."""
    return check_title(mapping, limits, "mapping") if mapping else None


def check_sha256(text: str | None) -> str | None:
    """Return the digest in lower case, if there is one; raises `invalid_request` unless it has 64 hex digits."""
    if text is None:
        return None
    digest = text.strip().lower()
    if not _SHA256.fullmatch(digest):
        raise refusal("sha256", "must be 64 hex digits.")
    return digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What senders say of a source of any kind.

    A source's row inherits these fields, and so does each value on the way to it: what they are is listed only here.
    """

    #: Empty as long as only the fetched file or page can say it.
    title: str
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Name of the synced folder (`svc sync`) that owns the source.
    mapping: str | None = None
    #: Id of the source that this one replaces when it is ready.
    replaces: str | None = None

    def description(self) -> dict[str, Any]:
        """Return these fields by name, for the next value on the way."""
        return {name: getattr(self, name) for name in _DESCRIBED}

    def meaning(self) -> tuple[Any, ...]:
        """Return what of it, apart from the title, counts in a request's fingerprint.

        A field that is added later may be part of it only if it is set: stored keys have the fingerprints of today.
        """
        return self.tags, self.metadata, self.mapping, self.replaces


_DESCRIBED = tuple(each.name for each in fields(Description))


def check_description(sent: SourceDescription, title: str, limits: Limits) -> dict[str, Any]:
    """Return the checked fields of a `Description`, under this title, by name."""
    return Description(
        title=title and check_title(title, limits),
        tags=check_tags(sent.tags, limits),
        metadata=check_metadata(sent.metadata, limits),
        mapping=check_mapping(sent.mapping, limits),
        replaces=sent.replaces,
    ).description()


_SENTENCES = {
    NameFlaw.NOT_UTF8: "A file name must be valid Unicode.",
    NameFlaw.INVISIBLE: "A file name must not contain control, bidi or other invisible characters.",
    NameFlaw.NO_NAME: "A file name must not be empty or contain '..'.",
    NameFlaw.TOO_LONG: f"A file name must not be longer than {MAX_NAME_BYTES} bytes.",
}


def clean_file_name(text: str) -> str:
    """Return the last path component of `text` in NFC, at most 255 bytes of UTF-8; raises `invalid_request`."""
    if (flaw := find_flaw(text)) is not None:
        raise refusal("filename", _SENTENCES[flaw])
    return clean_name(text)
