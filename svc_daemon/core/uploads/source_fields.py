"""The fields of a source as clients send them: file name, tags, metadata, title, checksum, question and answer.

Which file names are refused is decided in `wire.file_names`, which the command line shares.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from svc_daemon.core.requests import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.settings import Limits
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.file_names import MAX_NAME_BYTES, NameFlaw, clean_name, find_flaw

_SHA256 = re.compile(r"[0-9a-f]{64}")


def split_tags(text: str) -> list[str]:
    """The form's comma-separated list; blank parts are nothing."""
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def check_tags(tags: list[str], limits: Limits) -> tuple[str, ...]:
    """Each once, in the order given; raises `too_many_tags` or `invalid_request`."""
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
        if not tag.isprintable():
            raise refusal("tags", "a tag has no control characters.")
    return unique


def check_metadata(metadata: Any, limits: Limits) -> dict[str, Any]:
    """A JSON object within its size; raises `invalid_request` or `metadata_too_large`."""
    if not isinstance(metadata, dict):
        raise refusal("metadata", "must be a JSON object.")
    size_bytes = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())
    if size_bytes > limits.metadata_bytes:
        raise ServiceError(
            ErrorCode.METADATA_TOO_LARGE,
            f"The metadata has {size_bytes} bytes as JSON; a source takes {limits.metadata_bytes}.",
            max_bytes=limits.metadata_bytes,
            size_bytes=size_bytes,
        )
    return metadata


def check_title(title: str, limits: Limits, path: str = "title") -> str:
    """Not blank, not longer than the limit, no control characters; raises `invalid_request` naming `path`."""
    if not title.strip():
        raise refusal(path, "must not be blank.")
    if len(title) > limits.title_characters:
        raise refusal(path, f"has {len(title)} characters; the limit is {limits.title_characters}.")
    if any(ord(character) < 32 or ord(character) == 127 for character in title):
        raise refusal(path, "has control characters.")
    return title


def check_mapping(mapping: str | None, limits: Limits) -> str | None:
    """The name of a sync mapping, None for an empty one; raises `invalid_request` for what is no title either."""
    return check_title(mapping, limits, "mapping") if mapping else None


def refuse_webhook(webhook: Any) -> None:
    """Only imports and pages are called back; raises `invalid_request` rather than letting somebody wait for a call."""
    if webhook is not None:
        raise refusal("webhook", "is for imports and pages only; poll the source until it is ready.")


def check_sha256(text: str) -> str:
    """64 hex digits in lower case; raises `invalid_request`."""
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
    """The last path component of `text` in NFC, at most 255 bytes of UTF-8.

    Raises ServiceError `invalid_request`, naming `path` as the field, for a name that is empty, holds a `..` component
    or invisible characters, or is too long.
    """
    if (flaw := find_flaw(text)) is not None:
        raise refusal(path, _SENTENCES[flaw])
    return clean_name(text)


#: How the text is kept: the question is the heading under which each piece of the answer is found.
FILE_NAME, CONTENT_TYPE = "question.md", "text/markdown"


def check_question(text: str, limits: Limits, path: str = "question") -> str:
    """The question in one line; raises `invalid_request` for one that is blank or too long."""
    words = "".join(character if character.isprintable() else " " for character in text).split()
    question = " ".join(words)
    if not question:
        raise refusal(path, "must not be blank.")
    if len(question) > limits.title_characters:
        raise refusal(path, f"has {len(question)} characters; the limit is {limits.title_characters}.")
    return question


def check_answer(text: str) -> str:
    """Raises `invalid_request` for an answer without a letter or digit, which could never be found."""
    if not any(map(str.isalnum, text)):
        raise refusal("answer", "must not be blank.")
    return text


def question_text(question: str, answer: str, alternates: Sequence[str]) -> str:
    """Markdown with the question as its heading, then the other ways to ask it, then the answer."""
    asked = "".join(f"- {alternate}\n" for alternate in alternates)
    return f"# {question}\n\n{asked}\n{answer}\n"
