"""The base class of lists in responses."""

from typing_extensions import TypedDict


class Paging(TypedDict, total=False):
    """The fields that a list has only if the request has `limit`."""

    has_more: bool
    #: The value of `after` for the next page; null if the page is empty.
    last_id: str | None
