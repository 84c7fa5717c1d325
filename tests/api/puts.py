"""Every kind of PUT to a storage URL in every state of a session or a pack, and what it answers."""

DATA = b"The umber quay was built of grey stone.\n" * 25
SIZE = len(DATA)
HALF = SIZE // 2

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
