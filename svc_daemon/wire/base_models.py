"""The base classes of request and response bodies."""

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict


class WireModel(BaseModel):
    """Base class of request bodies and their parts. A model's schema is built when it is first used."""

    model_config = ConfigDict(defer_build=True)


class Paging(TypedDict, total=False):
    """The fields that a list has only if the request has `limit`."""

    has_more: bool
    #: The value of `after` for the next page; null if the page is empty.
    last_id: str | None
