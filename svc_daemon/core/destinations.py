"""Where something new goes, as a request names it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BucketName:
    """A bucket as one place of a request names it."""

    #: An id or a slug.
    text: str
    #: Where it stands, dotted.
    path: str


@dataclass(frozen=True, slots=True)
class Naming:
    """All buckets that one new thing is to belong to: at least one."""

    names: tuple[BucketName, ...]


def in_path(bucket: str) -> Naming:
    """The one bucket that a route's path names."""
    return Naming((BucketName(bucket, "bucket"),))
