"""Finds the buckets that a request names for a new source, and creates missing buckets together with the source."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from svc_daemon.core.access import api_keys
from svc_daemon.core.json_bodies import refusal
from svc_daemon.core.uploads.destination_buckets import ID, BucketName, ManifestNaming, Naming
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import NotFound, ServiceError
from svc_daemon.operations.buckets import new_bucket
from svc_daemon.operations.shared.authorization import require
from svc_daemon.operations.shared.events import bucket_event, record_events
from svc_daemon.operations.shared.reachable_rows import get_usable_bucket
from svc_daemon.process.contexts import Context
from svc_daemon.store.rows.buckets import BucketRow, create_bucket
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.wire.buckets import SLUG_PATTERN, BucketFields
from svc_daemon.wire.events import EventType
from svc_daemon.wire.light.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class Destination:
    """The buckets that a request names for a new source: at least one, without duplicates.

    The buckets may change before the commit, so `settle_buckets` looks them up again.
    """

    naming: Naming
    #: The existing buckets, in the request's order.
    buckets: tuple[BucketRow, ...]
    #: Slugs of missing buckets, which are created together with the source.
    missing: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(bucket.id for bucket in self.buckets)

    @property
    def slugs(self) -> tuple[str, ...]:
        """Return the slugs of all buckets, existing buckets first."""
        return (*(bucket.slug for bucket in self.buckets), *self.missing)

    @property
    def slug(self) -> str:
        """Return the first bucket's slug, for responses that name only one bucket."""
        return self.slugs[0]

    @property
    def identity(self) -> str:
        """Return a text that identifies the buckets, to recognize a repeated request.

        The text is the same whether the request names ids or slugs.
        """
        return ",".join(sorted(self.slugs) if self.naming.in_body else self.ids)


def find_destination(connection: Connection, context: Context, key: KeyRow, naming: Naming) -> Destination:
    """Return the active buckets that a request names; raises the errors of `find_destinations`."""
    return find_destinations(connection, context, key, [naming])[0]


def find_destinations(
    connection: Connection, context: Context, key: KeyRow, namings: Sequence[Naming]
) -> list[Destination]:
    """Return the buckets that each item of a request names.

    Raises `bucket_not_found` if the bucket in the URL can't be used, and `bucket_assignment_failed` if a bucket in the
    body can't. Raises `forbidden_project_key` if the key may not create missing buckets.
    """
    if any(naming.creates_missing for naming in namings):
        require(key, api_keys.BUCKET_CREATE)
    known = _look_up(connection, key, namings, context.limits.destination_buckets)
    failed: list[_Failed] = []
    found = [_find(key, naming, known, failed) for naming in namings]
    if failed:
        buckets = [{"path": one.name.path, "bucket": one.name.text, "reason": one.reason} for one in failed]
        raise ServiceError(ErrorCode.BUCKET_ASSIGNMENT_FAILED, failed[0].message, buckets=buckets)
    return found


def find_in_manifest(
    connection: Connection, context: Context, key: KeyRow, naming: ManifestNaming
) -> list[Destination]:
    """Return the buckets of each item in the manifest. Buckets named at the manifest's top level apply to all items.

    Raises the errors of `find_destinations`, and `invalid_request` if an item names other buckets than the top level.
    """
    distinct = list(dict.fromkeys(each for each in (naming.root, *naming.items) if each is not None))
    by_naming = dict(zip(distinct, find_destinations(connection, context, key, distinct), strict=True))
    if naming.root is None:
        return [by_naming[own] for own in naming.items if own is not None]
    shared = by_naming[naming.root]
    for place, own in enumerate(naming.items):
        if own is not None and set(by_naming[own].slugs) != set(shared.slugs):
            raise refusal(f"manifest.items.{place}", "names other buckets than the manifest's root; name them once.")
    return [shared] * len(naming.items)


def settle_buckets(connection: Connection, context: Context, key: KeyRow, destination: Destination) -> tuple[str, ...]:
    """Create the missing buckets, in the caller's transaction. Returns the ids of all buckets."""
    found = find_destination(connection, context, key, destination.naming)
    if not found.missing:
        return found.ids
    new = [new_bucket(context, key, slug, BucketFields()) for slug in found.missing]
    for bucket in new:
        create_bucket(connection, bucket)
    made = [bucket_event(EventType.BUCKET_CREATED, bucket, key.id) for bucket in new]
    record_events(connection, context.ids, key.team_id, made)
    return find_destination(connection, context, key, destination.naming).ids


@dataclass(frozen=True, slots=True)
class _Failed:
    """A bucket in a request body that can't be used, and why."""

    name: BucketName
    #: `not_found`, `invalid_slug`, `archived` or `deleting`.
    reason: str
    message: str


def _look_up(
    connection: Connection, key: KeyRow, namings: Sequence[Naming], most: int
) -> dict[str, BucketRow | NotFound]:
    """Return the bucket or the error for each name.

    Raises `invalid_request` if there are more than `most` distinct names.
    """
    texts: set[str] = set()
    for name in (name for naming in namings for name in naming.names):
        texts.add(name.text)
        if len(texts) > most:
            raise refusal(name.path, f"is one bucket too many: a request may name {most}.")
    known: dict[str, BucketRow | NotFound] = {}
    for text in texts:
        try:
            known[text] = get_usable_bucket(connection, key, text)
        except NotFound as error:
            known[text] = error
    return known


def _find(key: KeyRow, naming: Naming, known: dict[str, BucketRow | NotFound], failed: list[_Failed]) -> Destination:
    buckets: dict[str, BucketRow] = {}
    missing: list[str] = []
    for name in naming.names:
        bucket = known[name.text]
        if isinstance(bucket, BucketRow) and not name.means(bucket.id, bucket.slug):
            bucket = NotFound(ErrorCode.BUCKET_NOT_FOUND, f"There is no bucket with the {name.kind} {name.text!r}.")
        if isinstance(bucket, BucketRow):
            buckets[bucket.id] = bucket
        elif not naming.in_body:
            raise bucket
        elif _may_be_made(key, naming, name, bucket):
            missing.append(name.text)
        else:
            failed.append(_failure(naming, name, bucket))
    return Destination(naming, tuple(buckets.values()), tuple(dict.fromkeys(missing)))


def _may_be_made(key: KeyRow, naming: Naming, name: BucketName, error: NotFound) -> bool:
    """Return whether the key may create the missing bucket.

    A key limited to some buckets may not create others, because the key couldn't reach them.
    """
    may_create = naming.creates_missing and name.kind != ID and not key.is_limited and "status" not in error.details
    return may_create and re.fullmatch(SLUG_PATTERN, name.text) is not None


def _failure(naming: Naming, name: BucketName, error: NotFound) -> _Failed:
    if status := error.details.get("status"):
        return _Failed(name, status, error.message)
    if name.kind != ID and not re.fullmatch(SLUG_PATTERN, name.text):
        return _Failed(
            name,
            "invalid_slug",
            f"{error.message} A slug has 1 to 63 of a-z, 0-9 and hyphens, with no hyphen at either end.",
        )
    hint = "" if naming.creates_missing or name.kind == ID else " Check its spelling, or send create_missing_buckets."
    return _Failed(name, "not_found", error.message + hint)
