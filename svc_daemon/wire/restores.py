"""The response of the operator's route that `svc-daemon restore` calls after it has restored a cluster's state."""

from typing import Literal

from svc_daemon.wire.models import WireModel


class RestoreMark(WireModel):
    """The number to which a restore has raised the buckets' revisions, and the time at which that was recorded."""

    object: Literal["restore_mark"] = "restore_mark"
    restored_at: str
    #: The revision of every bucket is at least this number now.
    revision: int
