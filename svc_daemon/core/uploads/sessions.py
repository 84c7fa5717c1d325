"""Upload sessions: the sizes that one may have, its state, and what to do with a PUT request that sends bytes.

The protocol is that of Google's resumable uploads: `Content-Range` is the position of a chunk, and a 308 response with
`Range` reports what is stored.

Three things are stored: a status (`open`, or how the session ended), when it expires, and its bytes. The state follows
from these:

    state       meaning                                 a PUT              finalize
    pending     no byte is stored                       stores             blob_not_uploaded
    uploading   some bytes are stored                   stores             blob_not_uploaded
    uploaded    all bytes are stored                    reports success    creates the source
    finalized   the source was created                  reports success    returns the same source
    canceled    the client canceled it                  session_canceled   session_canceled
    expired     its idle time or lifetime is over       session_expired    session_expired

    status      meaning                                 shown as
    open        it has not ended                        pending, uploading, uploaded or expired
    finalized   the source was created                  finalized
    canceled    the client canceled it                  canceled
    expired     the sweeper has deleted its bytes       expired
    failed      no source can be created, for good      canceled; as a file of a batch, failed with the error

Acknowledged bytes survive a crash of the process. Bytes that are already stored are skipped. A chunk that would leave
a gap is refused.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import Enum

from svc_daemon.core.json_bodies import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.settings.limits import Limits
from svc_daemon.wire.light.error_codes import ErrorCode

PENDING, UPLOADING, UPLOADED = "pending", "uploading", "uploaded"
OPEN, FINALIZED, CANCELED, EXPIRED, FAILED = "open", "finalized", "canceled", "expired", "failed"

_RANGE = re.compile(r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15}|\*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ContentRange:
    """The byte range in a `Content-Range` header, both ends inclusive.

    Without `first` and `last`, the request sends no bytes, and only asks how many bytes are stored.
    """

    first: int | None
    last: int | None
    #: Total size of the file; None if not sent.
    total: int | None


class Step(Enum):
    """What to do with a PUT request."""

    #: Store nothing: respond with 308 and the stored range.
    REPORT = "report"
    #: All bytes are stored: respond with 200 and ignore the body.
    DONE = "done"
    #: Store the body.
    TAKE = "take"


@dataclass(frozen=True, slots=True)
class PutDecision:
    """What to do with a PUT request, and which bytes to store."""

    step: Step
    #: How many of the body's first bytes are already stored.
    skip_bytes: int = 0
    #: Maximum number of bytes to store after the skipped ones.
    take_bytes: int = 0


def parse_range(text: str | None) -> ContentRange | None:
    """Parse a Content-Range header; None if there is none.

    Raises `invalid_request` if it does not conform to RFC 9110.
    """
    if text is None:
        return None
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise refusal("Content-Range", f"must be 'bytes FIRST-LAST/TOTAL' or 'bytes */TOTAL', not {text[:80]!r}.")
    first, last, total = (int(part) if part and part != "*" else None for part in match.groups())
    if first is not None and last is not None and (last < first or (total is not None and last >= total)):
        raise refusal("Content-Range", f"{text!r} ends before it begins, or behind its total.")
    return ContentRange(first, last, total)


def check_size(filename: str, size_bytes: int, limits: Limits) -> None:
    """Raise `empty_file` or `file_too_large`, so that a client learns it before it sends the file."""
    if size_bytes == 0:
        raise ServiceError(ErrorCode.EMPTY_FILE, f"{filename} has no bytes.")
    if size_bytes > (most := limits.file_bytes):
        message = f"{filename} has {size_bytes} bytes; the limit is {most}."
        raise ServiceError(ErrorCode.FILE_TOO_LARGE, message, max_bytes=most, size_bytes=size_bytes)


def is_expired(stored_status: str, expires_at: str, now: str) -> bool:
    """Whether the session's time is over. The sweeper stores this later, when it deletes the session's bytes."""
    if stored_status != OPEN:
        return stored_status == EXPIRED
    return now >= expires_at


def state_of(stored_status: str, received_bytes: int, size_bytes: int, *, is_expired: bool) -> str:
    """Compute the state of a session."""
    if stored_status == FAILED:
        return CANCELED
    if stored_status in (FINALIZED, CANCELED, EXPIRED):
        return stored_status
    if is_expired:
        return EXPIRED
    if received_bytes >= size_bytes:
        return UPLOADED
    return UPLOADING if received_bytes else PENDING


def refuse_ended(state: str) -> None:
    """Raise `session_canceled` or `session_expired` if no more bytes can be sent to the session."""
    if state in (CANCELED, EXPIRED):
        raise ServiceError(ErrorCode.SESSION_CANCELED if state == CANCELED else ErrorCode.SESSION_EXPIRED)


def judge_put(state: str, received_bytes: int, size_bytes: int, asked: ContentRange | None) -> PutDecision:
    """Decide what to do with a PUT request for this range.

    Raises `session_canceled`, `session_expired`, `size_mismatch` or `offset_mismatch`.
    """
    refuse_ended(state)
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
    """Raise `size_mismatch` if a body is too long or, without a range, not the whole file.

    A body may be shorter than its range: the bytes that were received are kept.
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
    """Format the `Range` header of the stored bytes; None if nothing is stored."""
    return f"bytes=0-{received_bytes - 1}" if received_bytes else None


def token(secret: bytes, session_id: str, generation: int) -> str:
    """Derive the secret token of an upload URL, 256 bits in hex, so that it need not be stored."""
    return hmac.new(secret, f"upload:{session_id}:{generation}".encode(), hashlib.sha256).hexdigest()


def is_token(text: str, secret: bytes, session_id: str, generation: int) -> bool:
    return text.isascii() and hmac.compare_digest(text, token(secret, session_id, generation))


def _span(asked: ContentRange | None, size_bytes: int) -> tuple[int, int]:
    """Return the offsets in the file at which the body begins and ends (exclusive).

    Without a range, the body is the whole file.
    """
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
