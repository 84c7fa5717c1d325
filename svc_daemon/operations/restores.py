"""After an older state was restored: give all buckets new revisions, so that no client takes an old list for new."""

from svc_daemon.core.ids import Ids
from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.store.buckets import raise_revisions
from svc_daemon.store.facts import put_fact
from svc_daemon.wire.restores import RestoreMark

#: Name of a row in the table `facts`: the time of the last restore.
RESTORED_AT = "restored_at"
#: Revisions of a restored bucket begin at the time of the restore in seconds, shifted by so many bits. So they are
#: greater than all that the bucket had before, unless it changed a million times a second.
REVISION_BITS = 20


def mark_restored(connection: Connection, make_ids: Ids) -> RestoreMark:
    """Record the restore, and raise the revisions."""
    now = make_ids.now()
    # Random, in case that two restores get the same time because the clock was set back.
    part = int.from_bytes(make_ids.random(4), "big") >> (32 - REVISION_BITS)
    revision = (int(now.timestamp()) << REVISION_BITS) + part
    raise_revisions(connection, revision)
    put_fact(connection, RESTORED_AT, to_text(now))
    return RestoreMark(restored_at=to_text(now), revision=revision)
