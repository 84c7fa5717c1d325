"""The response of the operator's route that `svc-daemon restore` uses in a cluster."""

from typing import Literal

from svc_daemon.wire.models import WireModel


class RestoreMark(WireModel):
    """What was recorded after the state was restored."""

    object: Literal["restore_mark"] = "restore_mark"
    restored_at: str
    #: The revision of every bucket is at least this number.
    revision: int
