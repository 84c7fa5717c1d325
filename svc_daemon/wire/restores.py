"""The response to `svc-daemon restore` after it has restored a cluster's state."""

from typing import Literal

from svc_daemon.wire.models import WireModel


class RestoreMark(WireModel):
    """The time of a restore, and the revision that it gave to the buckets."""

    object: Literal["restore_mark"] = "restore_mark"
    restored_at: str
    #: Every bucket's revision is at least this number now.
    revision: int
