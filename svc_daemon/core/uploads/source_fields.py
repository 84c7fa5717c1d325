"""The fields of a source as clients send them: file name, tags, metadata, title, checksum, question and answer."""

import json
import re
from collections.abc import Sequence
from typing import Any

from svc_daemon.core.json_bodies import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.error_codes import ErrorCode
from svc_daemon.wire.file_names import MAX_NAME_BYTES, NameFlaw, clean_name, find_flaw
from svc_daemon.wire.names import find_fault_of_name

_SHA256 = re.compile(r"[0-9a-f]{64}")
#: One JSON encoder for all calls, since `json.dumps` with these options would create one in each call.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def split_tags(text: str) -> list[str]:
    """Split a form's comma-separated list of tags; blank entries are ignored."""
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


def check_mapping(mapping: str | None, limits: Limits) -> str | None:
    """Check the name of a mapping, a folder that `svc sync` keeps in a bucket; "" becomes None."""
    return check_title(mapping, limits, "mapping") if mapping else None


def refuse_webhook(webhook: Any) -> None:
    """Raise `invalid_request` if a webhook is given. Call this for sources of a kind that doesn't support webhooks."""
    if webhook is not None:
        raise refusal("webhook", "is for imports and pages only; poll the source until it is ready.")


def check_sha256(text: str) -> str:
    """Return the digest in lower case; raises `invalid_request` unless it has 64 hex digits."""
    digest = text.strip().lower()
    if not _SHA256.fullmatch(digest):
        raise refusal("sha256", "must be 64 hex digits.")
    return digest


_SENTENCES = {
    NameFlaw.NOT_UTF8: "A file name must be valid Unicode.",
    NameFlaw.INVISIBLE: "A file name must not contain control, bidi or other invisible characters.",
    NameFlaw.NO_NAME: "A file name must not be empty or contain '..'.",
    NameFlaw.TOO_LONG: f"A file name must not be longer than {MAX_NAME_BYTES} bytes.",
}


def clean_file_name(text: str, path: str = "filename") -> str:
    """Return the last path component of `text` in NFC, at most 255 bytes of UTF-8.

    Raises `invalid_request` for the field `path` if the file name is invalid.
    """
    if (flaw := find_flaw(text)) is not None:
        raise refusal(path, _SENTENCES[flaw])
    return clean_name(text)


#: A Q&A source is a Markdown file with the question as its heading, so that each chunk has the question.
FILE_NAME, CONTENT_TYPE = "question.md", "text/markdown"


def check_question(text: str, limits: Limits, path: str = "question") -> str:
    """Return the question as one line; raises `invalid_request` if it is blank or too long."""
    words = "".join(character if character.isprintable() else " " for character in text).split()
    question = " ".join(words)
    if not question:
        raise refusal(path, "must not be blank.")
    if len(question) > limits.title_characters:
        raise refusal(path, f"has {len(question)} characters; the limit is {limits.title_characters}.")
    return question


def check_answer(text: str) -> str:
    """Raise `invalid_request` if the answer has no letter or digit, since no search could find it."""
    if not any(map(str.isalnum, text)):
        raise refusal("answer", "must not be blank.")
    return text


def question_text(question: str, answer: str, alternates: Sequence[str]) -> str:
    """Build the Markdown: question, alternate questions, answer."""
    asked = "".join(f"- {alternate}\n" for alternate in alternates)
    return f"# {question}\n\n{asked}\n{answer}\n"
