"""The buckets that a request names for a new source: one in the path, or several in the body of a legacy route.

A body names its buckets in one of three ways. In a batch they are at the manifest's root or on every item. Where both
name some, the item's are its own, and the lookup refuses an item whose buckets differ from the root's:
taking either would put a file where half of the request did not want it.
"""

from dataclasses import dataclass

from svc_daemon.core.requests import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.legacy import DestinationFields, LegacyManifest

#: Whether a name is an id or a slug; some fields accept both.
ID, SLUG, EITHER = "id", "slug", "either"

_WAYS = "Name one of bucket_ids, bucket_slugs and bucket."


@dataclass(frozen=True, slots=True)
class BucketName:
    """A bucket as one place of a request names it."""

    text: str
    #: Its place in the request, dotted.
    path: str
    kind: str = EITHER

    def means(self, bucket_id: str, slug: str) -> bool:
        """Whether this names the bucket."""
        return (self.kind != SLUG and self.text == bucket_id) or (self.kind != ID and self.text == slug)


@dataclass(frozen=True, slots=True)
class Naming:
    """All buckets for one new source: at least one."""

    names: tuple[BucketName, ...]
    #: Whether buckets are to be made for slugs that nobody has.
    creates_missing: bool = False
    #: Whether the names are from a body, where a missing bucket gets another error than in the path.
    in_body: bool = False


@dataclass(frozen=True, slots=True)
class ManifestNaming:
    """The buckets of a batch: at least one of the two is where an item goes."""

    root: Naming | None
    #: Each item's own, in their order.
    items: tuple[Naming | None, ...]


def in_path(bucket: str) -> Naming:
    """The one bucket that a route's path names."""
    return Naming((BucketName(bucket, "bucket"),))


def in_body(fields: DestinationFields) -> Naming:
    """The buckets that a body names; raises `bucket_required`, and `invalid_request` where it names them twice."""
    found = _find(fields, "", creates_missing=fields.create_missing_buckets)
    if found is None:
        raise ServiceError(ErrorCode.BUCKET_REQUIRED, f"The request names no bucket. {_WAYS}")
    return found


def in_manifest(manifest: LegacyManifest) -> ManifestNaming:
    """The buckets that a manifest names, at its root, on every item, or both; raises as `in_body`."""
    for_all = manifest.create_missing_buckets
    root = _find(manifest, "manifest.", creates_missing=for_all)
    items = tuple(
        _find(item, f"manifest.items.{place}.", creates_missing=for_all or item.create_missing_buckets)
        for place, item in enumerate(manifest.items)
    )
    lacking = [f"manifest.items.{place}" for place, own in enumerate(items) if own is None]
    if root is None and lacking:
        raise ServiceError(
            ErrorCode.BUCKET_REQUIRED,
            f"{lacking[0]} names no bucket. {_WAYS} They go at the manifest's root or on every item.",
            items=lacking,
        )
    return ManifestNaming(root, items)


def _find(fields: DestinationFields, path: str, *, creates_missing: bool) -> Naming | None:
    """An empty list or text names nothing."""
    ways = {
        "bucket_ids": [BucketName(text, f"{path}bucket_ids.{n}", ID) for n, text in enumerate(fields.bucket_ids)],
        "bucket_slugs": [BucketName(t, f"{path}bucket_slugs.{n}", SLUG) for n, t in enumerate(fields.bucket_slugs)],
        "bucket": [BucketName(fields.bucket, f"{path}bucket")] if fields.bucket else [],
    }
    used = [way for way, names in ways.items() if names]
    if len(used) > 1:
        raise refusal(path + used[1], f"is sent together with {used[0]}. {_WAYS}")
    return Naming(tuple(ways[used[0]]), creates_missing=creates_missing, in_body=True) if used else None
