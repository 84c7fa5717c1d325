"""The response to `svc-daemon restore`, after the command has restored a cluster's database."""

from typing import Literal

from svc_daemon.wire.base_models import WireModel


class RestoreMark(WireModel):
    """Confirms that the service has recorded a restore and has raised the revisions of all buckets."""

    object: Literal["restore_mark"] = "restore_mark"
    restored_at: str
    #: The revision of every bucket is at least this number now.
    revision: int
