"""The type of a source's state after a wait."""

from typing import NotRequired, TypedDict

from svc_cli.client.types import SourceErrorDict


class SettledSource(TypedDict):
    """The state of a source after a wait. If `status` is `gone`, the optional fields may be missing."""

    id: str
    status: str
    """`active`, `failed` or, if it was deleted or replaced meanwhile, `gone`."""
    ready: bool
    error: NotRequired[SourceErrorDict | None]
    """Why the source has failed."""
    warnings: NotRequired[list[str]]
    title: NotRequired[str]
    replaced_by: NotRequired[str | None]
    """The source that replaced it, if that is known."""
