"""The response to `svc-daemon restore`, after the command has restored a cluster's database."""

from typing import Literal

from typing_extensions import TypedDict


class RestoreMark(TypedDict):
    """Confirms that the service has recorded a restore and has raised the revisions of all buckets."""

    object: Literal["restore_mark"]
    restored_at: str
    #: The revision of every bucket is at least this number now.
    revision: int
