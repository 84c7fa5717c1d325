"""The upload session: its state, and the decision about a PUT.

Rules of this file. It decides from plain values and changes nothing; the caller stores what was decided. The protocol
is that of Google's resumable uploads: `Content-Range` is where a chunk goes, 308 with `Range` is what is stored.

Theory of operation. Only three things about a session are stored: how it ended (finalized, canceled), when it expires,
and its bytes, whose number on the disk is the offset. The state is computed from these:

    state       what is so                              a PUT              finalize
    pending     no byte is stored                       stores             blob_not_uploaded
    uploading   some bytes are stored                   stores             blob_not_uploaded
    uploaded    all bytes are stored                    confirms it        makes the source
    finalized   the source was made                     confirms it        returns the same source
    canceled    the client gave up                      session_canceled   session_canceled
    expired     its idle time or its life is over       session_expired    session_expired

What was acknowledged is on the disk and survives a kill. A chunk that begins before the stored end is taken from there
on; one that begins behind it is a gap, and nothing of it is kept.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import Enum

from svc_daemon.core.requests import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode

PENDING, UPLOADING, UPLOADED = "pending", "uploading", "uploaded"
FINALIZED, CANCELED, EXPIRED = "finalized", "canceled", "expired"

_RANGE = re.compile(r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15}|\*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ContentRange:
    """A parsed `Content-Range`: a span with both ends inclusive, or a question (`first` is None)."""

    first: int | None
    last: int | None
    #: None where the client doesn't know it, or doesn't send it.
    total: int | None


class Step(Enum):
    """What to do with a PUT."""

    #: Answer with the stored range: 308.
    REPORT = "report"
    #: All bytes are there: answer 200 and take nothing.
    DONE = "done"
    #: Take the body.
    TAKE = "take"


@dataclass(frozen=True, slots=True)
class PutDecision:
    """The decision about one PUT."""

    step: Step
    #: Bytes at the beginning of the body that are stored already.
    skip_bytes: int = 0
    #: Bytes to take behind these, at most.
    take_bytes: int = 0


def parse_range(text: str | None) -> ContentRange | None:
    """The header's meaning, None without a header; raises `invalid_request` for anything else than RFC 9110 has."""
    if text is None:
        return None
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise refusal("Content-Range", f"must be 'bytes FIRST-LAST/TOTAL' or 'bytes */TOTAL', not {text[:80]!r}.")
    first, last, total = (int(part) if part and part != "*" else None for part in match.groups())
    if first is not None and last is not None and (last < first or (total is not None and last >= total)):
        raise refusal("Content-Range", f"{text!r} ends before it begins, or behind its total.")
    return ContentRange(first, last, total)


def state_of(stored_status: str, received_bytes: int, size_bytes: int, *, is_expired: bool) -> str:
    """The state of a session whose stored status is `open`, `finalized`, `canceled` or `expired`."""
    if stored_status in (FINALIZED, CANCELED, EXPIRED):
        return stored_status
    if is_expired:
        return EXPIRED
    if received_bytes >= size_bytes:
        return UPLOADED
    return UPLOADING if received_bytes else PENDING


def judge_put(state: str, received_bytes: int, size_bytes: int, asked: ContentRange | None) -> PutDecision:
    """What a PUT with this range does to a session in this state.

    Raises `session_canceled`, `session_expired`, `size_mismatch` and, with the stored range, `offset_mismatch`.
    """
    if state in (CANCELED, EXPIRED):
        raise ServiceError(ErrorCode.SESSION_CANCELED if state == CANCELED else ErrorCode.SESSION_EXPIRED)
    if asked is not None and asked.total is not None and asked.total != size_bytes:
        raise ServiceError(
            ErrorCode.SIZE_MISMATCH,
            f"The session was created for {size_bytes} bytes, not {asked.total}.",
            declared_bytes=size_bytes,
            sent_bytes=asked.total,
        )
    if state in (FINALIZED, UPLOADED):
        return PutDecision(Step.DONE)
    if asked is not None and asked.first is None:
        return PutDecision(Step.REPORT)
    first, end = _span(asked, size_bytes)
    if first > received_bytes:
        raise ServiceError(
            ErrorCode.OFFSET_MISMATCH,
            f"The chunk starts at {first}; {received_bytes} bytes are stored.",
            received_bytes=received_bytes,
            range=stored_range(received_bytes),
        )
    if end <= received_bytes:
        return PutDecision(Step.REPORT)
    return PutDecision(Step.TAKE, skip_bytes=received_bytes - first, take_bytes=end - received_bytes)


def check_length(asked: ContentRange | None, size_bytes: int, body_bytes: int) -> None:
    """Raises `size_mismatch` for a body that is longer than its range, or one without a range that isn't the file.

    `body_bytes` is its length as declared or counted. A body shorter than its range is fine: its prefix is kept.
    """
    first, end = _span(asked, size_bytes)
    if body_bytes > end - first or (asked is None and body_bytes < size_bytes):
        raise ServiceError(
            ErrorCode.SIZE_MISMATCH,
            f"The body has {body_bytes} bytes; {end - first} were announced.",
            declared_bytes=end - first,
            sent_bytes=body_bytes,
        )


def stored_range(received_bytes: int) -> str | None:
    """The `Range` header for the stored bytes; no header while nothing is stored."""
    return f"bytes=0-{received_bytes - 1}" if received_bytes else None


def token(secret: bytes, session_id: str, generation: int) -> str:
    """The secret token in an upload URL, 256 bits in hex; derived, so that it is not stored."""
    return hmac.new(secret, f"upload:{session_id}:{generation}".encode(), hashlib.sha256).hexdigest()


def is_token(text: str, secret: bytes, session_id: str, generation: int) -> bool:
    return text.isascii() and hmac.compare_digest(text, token(secret, session_id, generation))


def _span(asked: ContentRange | None, size_bytes: int) -> tuple[int, int]:
    """First byte and exclusive end; without a range the body is the whole file."""
    if asked is None or asked.first is None or asked.last is None:
        return 0, size_bytes
    if asked.last >= size_bytes:
        raise ServiceError(
            ErrorCode.SIZE_MISMATCH,
            f"The session was created for {size_bytes} bytes; the chunk ends at {asked.last}.",
            declared_bytes=size_bytes,
            sent_bytes=asked.last + 1,
        )
    return asked.first, asked.last + 1
