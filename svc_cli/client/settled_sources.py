"""The last state of a source that was waited for."""

from typing import NotRequired, TypedDict

from svc_cli.client.types import SourceErrorDict


class SettledSource(TypedDict):
    """A source after a wait. With the status `gone`, it has no more fields."""

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
