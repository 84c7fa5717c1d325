"""Ids: a prefix that names the kind and a ULID, so that ids of one kind sort by the time they were made."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from ulid import ULID

TEAM = "team"
BUCKET = "bkt"
SOURCE = "src"
TASK = "task"
UPLOAD = "upl"
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
TEAM_ID = re.compile(f"{TEAM}_{_ULID}")
#: Names of stored bytes: the id of their source, with a ULID of their own where they came by a refresh. Older ones of
#: these don't say their source.
BLOB_NAME = re.compile(f"({SOURCE}_{_ULID})(?:_{_ULID})?|{BLOB}_{_ULID}")
#: Names of the bytes of upload sessions: the session's id.
PART_NAME = re.compile(f"{UPLOAD}_{_ULID}")


@dataclass(frozen=True, slots=True)
class Ids:
    """Makes ids from a clock and a source of randomness, both given."""

    now: Callable[[], datetime]
    #: Takes a number of bytes, returns that many unpredictable ones.
    random: Callable[[int], bytes]

    def make(self, prefix: str) -> str:
        """Such as `src_01k2…`: 48 bits of milliseconds, then 80 random bits, in lower-case base 32."""
        milliseconds = int(self.now().timestamp() * 1000)
        return f"{prefix}_{str(ULID(milliseconds.to_bytes(6, 'big') + self.random(10))).lower()}"


def source_of(name: str) -> str | None:
    """The id of the source whose stored bytes have this name; None where the name doesn't say."""
    match = BLOB_NAME.fullmatch(name)
    return match[1] if match else None


def is_id(text: str, prefix: str) -> bool:
    return text.startswith(prefix + "_")
