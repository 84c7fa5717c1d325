"""Cursors: opaque texts that name a place in a team's event log, from which a client continues.

A key may have read past events that it must not see. So a cursor is the id of the last event read, encrypted and
authenticated (as in RFC 5297: the pad is derived from the tag, so no nonce is needed). The same event always has the
same cursor, on each node and after a restart. Only the installation that made a cursor can read it, and only for the
same team.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

from svc_daemon.core import ids

PREFIX = "cur_"
TAG_BYTES = 16
_EVENT = f"{ids.EVENT}_"


@dataclass(frozen=True, slots=True)
class EventCursors:
    """The cursors of one team."""

    #: Derived from the installation's secret.
    key: bytes

    @classmethod
    def of_team(cls, installation_secret: bytes, team_id: str) -> "EventCursors":
        return cls(hmac.digest(installation_secret, f"events:{team_id}".encode(), "sha256"))

    def of(self, event_id: str | None) -> str | None:
        """Return the cursor of the event with this id; None without an event."""
        if event_id is None:
            return None
        text = event_id.removeprefix(_EVENT).encode()
        tag = hashlib.blake2b(text, key=self.key, digest_size=TAG_BYTES, person=b"tag").digest()
        return PREFIX + base64.urlsafe_b64encode(tag + self._mask(tag, text)).decode()

    def find_event_id(self, cursor: str) -> str | None:
        """Return the id of the cursor's event; None if this is no cursor of this team."""
        try:
            sealed = base64.urlsafe_b64decode(cursor.removeprefix(PREFIX).encode())
            event_id = _EVENT + self._mask(sealed[:TAG_BYTES], sealed[TAG_BYTES:]).decode()
        except (binascii.Error, ValueError):
            return None
        return event_id if cursor.isascii() and hmac.compare_digest(self.of(event_id) or "", cursor) else None

    def _mask(self, tag: bytes, text: bytes) -> bytes:
        """Encrypt or decrypt the text."""
        size = len(text)
        pad = hashlib.blake2b(tag, key=self.key, digest_size=size, person=b"pad").digest()
        return (int.from_bytes(text) ^ int.from_bytes(pad)).to_bytes(size)
