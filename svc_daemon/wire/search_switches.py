"""Models of the operator's switch that turns search off."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from svc_daemon.wire.requests import NoDryRunBody


class SearchSwitchChange(NoDryRunBody):
    """Body of `PUT /admin/search`."""

    enabled: bool
    #: The value of `Retry-After` in the responses to refused searches.
    retry_after_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60


class SearchSwitch(TypedDict):
    object: Literal["search_switch"]
    enabled: bool
    #: The value of `Retry-After` in the responses to refused searches; null if search is enabled.
    retry_after_seconds: int | None
