"""After a restore, increases the revisions of all buckets, so that clients drop cached lists."""

from svc_daemon.core.ids import Ids
from svc_daemon.core.times import to_text
from svc_daemon.databases.contract import Connection
from svc_daemon.store.buckets import raise_revisions
from svc_daemon.store.installation_facts import put_fact
from svc_daemon.wire.restore_marks import RestoreMark

#: The name under which the table `facts` has the time of the last restore.
RESTORED_AT = "restored_at"
#: A restore sets revisions to the Unix time in seconds, shifted left by this many bits, so that they only increase.
REVISION_BITS = 20


def mark_restored(connection: Connection, make_ids: Ids) -> RestoreMark:
    """Record that the state was restored, and raise the revisions of all buckets."""
    now = make_ids.now()
    # Add random bits: if the clock is set back, two restores can happen at the same clock time.
    part = int.from_bytes(make_ids.random(4), "big") >> (32 - REVISION_BITS)
    revision = (int(now.timestamp()) << REVISION_BITS) + part
    raise_revisions(connection, revision)
    put_fact(connection, RESTORED_AT, to_text(now))
    return RestoreMark(object="restore_mark", restored_at=to_text(now), revision=revision)
