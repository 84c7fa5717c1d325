"""Ids: a prefix that names the kind and a ULID, so that ids of one kind sort by the time they were made."""

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


def is_id(text: str, prefix: str) -> bool:
    return text.startswith(prefix + "_")
