"""Ids of objects: a prefix for the kind and a ULID, so that ids of one kind sort by creation time."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ulid import ULID

from svc_daemon.errors import StorageError

TEAM = "team"
BUCKET = "bkt"
SOURCE = "src"
TASK = "task"
SESSION = "upl"
BATCH = "bat"
KEY = "key"
EVENT = "evt"
BLOB = "blob"
REQUEST = "req"
INSTALLATION = "ins"
AGENT = "agt"
RESPONSE = "resp"
MESSAGE = "msg"
COMPLETION = "chatcmpl"

_ULID = "[0-9A-Za-z]{26}"
_BASE_32 = "0123456789abcdefghjkmnpqrstvwxyz"
#: All pairs of base-32 digits; each stands for ten bits.
_DIGIT_PAIRS = [first + second for first in _BASE_32 for second in _BASE_32]
#: All characters that a name may have which becomes the name of a file.
FILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
#: The ids of each kind of object, by the prefix of the kind.
SHAPES = {kind: re.compile(f"{kind}_{_ULID}") for kind in (TEAM, BUCKET, SOURCE, TASK, SESSION, BATCH, KEY)}
TEAM_ID = SHAPES[TEAM]
#: Names of stored files: the source's id and, after a refresh, another ULID. In older releases, `blob_` and a ULID.
BLOB_NAME = re.compile(f"({SOURCE}_{_ULID})(?:_{_ULID})?|{BLOB}_{_ULID}")
#: Names of the files of upload sessions.
PART_NAME = SHAPES[SESSION]


@dataclass(frozen=True, slots=True)
class Ids:
    """Generates ids from a clock and a source of randomness."""

    now: Callable[[], datetime]
    #: Returns the given number of unpredictable bytes.
    random: Callable[[int], bytes]

    def make(self, prefix: str) -> str:
        """Make an id such as `src_01k2…`: 48 bits of milliseconds, then 80 random bits."""
        milliseconds = int(self.now().timestamp() * 1000)
        return f"{prefix}_{str(ULID(milliseconds.to_bytes(6, 'big') + self.random(10))).lower()}"

    def make_many(self, prefix: str, count: int) -> list[str]:
        """Make several ids at once, in ascending order, which is much faster than one by one.

        They differ in the 20 bits after the time, so that a short prefix is enough to identify each.
        """
        made: list[str] = []
        while len(made) < count:
            first = self.make(prefix)
            time, rest = first[:-16], first[-12:]
            made += [
                time + _DIGIT_PAIRS[place >> 10] + _DIGIT_PAIRS[place & 1023] + rest
                for place in range(min(count - len(made), 2**20))
            ]
        return made


def source_of(name: str) -> str | None:
    """Return the id of the source of a stored file; None for names of older releases."""
    match = BLOB_NAME.fullmatch(name)
    return match[1] if match else None


def file_name(name: object, shape: re.Pattern[str] = FILE_NAME, *, row: str = "A name") -> str:
    """Return the name if it has this shape, so that no path made of it leads out of its folder.

    Every name that comes from a database, an archive or a backup passes this check before it becomes a path. `row` says
    where it comes from. Raises StorageError.
    """
    if not isinstance(name, str) or not shape.fullmatch(name):
        raise StorageError(f"{row} is {name!r}, which can't be the name of a file.")
    return name


def is_id(text: str, prefix: str) -> bool:
    return text.startswith(prefix + "_")
