"""Every kind of PUT to a storage URL in every state of a session or a pack, and what it answers."""

from itertools import pairwise
from typing import Any

from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.sessions import (
    finalize,
    finalize_batch,
    open_pack,
    open_session,
    part_kept,
    put,
    put_part,
    session_path,
    state_of,
)

DATA = b"The umber quay was built of grey stone.\n" * 25
SIZE = len(DATA)
HALF = SIZE // 2
#: Where the items of a pack of `DATA` begin and end: the first has a single byte, and the third ends at HALF.
CUTS = (0, 1, 300, HALF, SIZE)
PIECES = [(f"p{number}", DATA[first:end]) for number, (first, end) in enumerate(pairwise(CUTS))]

#: The bytes that a session or a pack in the state has stored.
STATES = {"pending": 0, "uploading": HALF, "uploaded": SIZE, "finalized": SIZE, "canceled": 0}

#: A kind of PUT: its body and its Content-Range.
PUTS: dict[str, tuple[bytes, str | None]] = {
    "whole": (DATA, None),
    "question": (b"", f"bytes */{SIZE}"),
    "question without a total": (b"", "bytes */*"),
    "first": (DATA[:100], f"bytes 0-99/{SIZE}"),
    "overlap": (DATA[100 : HALF + 10], f"bytes 100-{HALF + 9}/{SIZE}"),
    "rest": (DATA[HALF:], f"bytes {HALF}-{SIZE - 1}/*"),
    "gap": (DATA[HALF + 1 :], f"bytes {HALF + 1}-{SIZE - 1}/{SIZE}"),
    "wrong total": (DATA[:100], f"bytes 0-99/{SIZE + 1}"),
    "wrong question": (b"", f"bytes */{SIZE - 1}"),
    "beyond the end": (DATA + b"x", f"bytes 0-{SIZE}/*"),
    "too long": (DATA[: HALF + 2], f"bytes 0-{HALF}/{SIZE}"),
    "too short": (DATA[: HALF + 1], f"bytes 0-{HALF + 10}/{SIZE}"),
    "empty": (b"", None),
    "short whole": (DATA[:-1], None),
    "long whole": (DATA + b"x", None),
}
#: What each answers in the first states, where that is not BY_DEFAULT's.
#: A number of stored bytes is a 308, `done` a 200, anything else the code of a refusal.
TABLE: dict[str, tuple[int | str, ...]] = {
    "whole": ("done", "done"),
    "question": (0, HALF),
    "question without a total": (0, HALF),
    "first": (100, HALF),
    "overlap": ("offset_mismatch", HALF + 10),
    "rest": ("offset_mismatch", "done"),
    "gap": ("offset_mismatch", "offset_mismatch"),
    "wrong total": ("size_mismatch",) * 4,
    "wrong question": ("size_mismatch",) * 4,
    "too short": (HALF + 1, HALF + 1),
}
BY_DEFAULT = ("size_mismatch", "size_mismatch", "done", "done", "session_canceled")


def expected_of(kind: str, state: str) -> int | str:
    """What a PUT of this kind answers in this state."""
    row = TABLE.get(kind, ())
    return (row + BY_DEFAULT[len(row) :])[list(STATES).index(state)]


def in_state(daemon: Daemon, state: str, kind: str = "session") -> dict[str, Any]:
    """Open a session or a pack for `DATA`, bring it into the state, and return it; `put` takes either."""
    is_pack = kind == "pack"
    upload = open_pack(daemon, PIECES) if is_pack else open_session(daemon, DATA)
    if state == "uploading" or (state == "canceled" and not is_pack):
        assert part_kept(put_part(daemon, upload, DATA, 0, HALF - 1)) == f"bytes=0-{HALF - 1}"
    if state in ("uploaded", "finalized"):
        body_of(put(daemon, upload, DATA))
    if state == "finalized":
        finalize_batch(daemon, upload) if is_pack else body_of(finalize(daemon, upload), 201)
    if state == "canceled":
        finalize_batch(daemon, upload, mode="abandon_pending") if is_pack else daemon.delete(session_path(upload))
    return upload


def received(daemon: Daemon, upload: dict[str, Any]) -> int:
    """Return the number of bytes that a session, or all sessions of a pack, have received."""
    return sum(state_of(daemon, each)[1] for each in upload.get("items", [upload]))
