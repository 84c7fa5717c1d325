"""The buckets that a request names for a new source: in its path, its body, or the manifest of a batch.

A batch names buckets at the top of its manifest, in every item, or both. If both do, they must name the same buckets.
"""

from dataclasses import dataclass

from svc_daemon.core.json_bodies import refusal
from svc_daemon.errors import ServiceError
from svc_daemon.wire.legacy import DestinationFields, LegacyManifest
from svc_daemon.wire.light.error_codes import ErrorCode

#: What a name in a request can be: only a bucket's id, only its slug, or either of them.
ID, SLUG, EITHER = "id", "slug", "either"

_WAYS = "Name one of bucket_ids, bucket_slugs and bucket."


@dataclass(frozen=True, slots=True)
class BucketName:
    """A bucket as a request names it."""

    text: str
    #: Dotted path of the request field that names the bucket.
    path: str
    kind: str = EITHER

    def means(self, bucket_id: str, slug: str) -> bool:
        """Return whether this names the bucket with this id and slug."""
        return (self.kind != SLUG and self.text == bucket_id) or (self.kind != ID and self.text == slug)


@dataclass(frozen=True, slots=True)
class Naming:
    """The buckets, at least one, that a request names for a new source."""

    names: tuple[BucketName, ...]
    #: Whether to create a bucket for each slug that no bucket has yet.
    creates_missing: bool = False
    #: Whether the buckets are named in the body, not in the path. One error then reports all unusable buckets.
    in_body: bool = False


@dataclass(frozen=True, slots=True)
class ManifestNaming:
    """The buckets that a batch names: at the top, for each item, or both."""

    root: Naming | None
    #: For each item, the buckets that it names, or None if it names none.
    items: tuple[Naming | None, ...]


def in_path(bucket: str) -> Naming:
    """Return the bucket named in a route's path."""
    return Naming((BucketName(bucket, "bucket"),))


def in_body(fields: DestinationFields) -> Naming:
    """Return the buckets named in a body. Raises `bucket_required` if there are none.

    Raises `invalid_request` if two fields name buckets.
    """
    found = _find(fields, "", creates_missing=fields.create_missing_buckets)
    if found is None:
        raise ServiceError(ErrorCode.BUCKET_REQUIRED, f"The request names no bucket. {_WAYS}")
    return found


def in_manifest(manifest: LegacyManifest) -> ManifestNaming:
    """Return the buckets named in a manifest. Raises `bucket_required` or `invalid_request`, as `in_body` does."""
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
    """Return the buckets named in these fields; None if no bucket is named. Empty lists and strings don't count."""
    ways = {
        "bucket_ids": [BucketName(text, f"{path}bucket_ids.{n}", ID) for n, text in enumerate(fields.bucket_ids)],
        "bucket_slugs": [BucketName(t, f"{path}bucket_slugs.{n}", SLUG) for n, t in enumerate(fields.bucket_slugs)],
        "bucket": [BucketName(fields.bucket, f"{path}bucket")] if fields.bucket else [],
    }
    used = [way for way, names in ways.items() if names]
    if len(used) > 1:
        raise refusal(path + used[1], f"is sent together with {used[0]}. {_WAYS}")
    return Naming(tuple(ways[used[0]]), creates_missing=creates_missing, in_body=True) if used else None
