"""Destinations: the buckets that something new goes into, found before the create and settled in its transaction."""

from dataclasses import dataclass
from sqlite3 import Connection

from svc_daemon.core.destinations import Naming
from svc_daemon.operations.keys import get_usable_bucket
from svc_daemon.store.buckets import Bucket
from svc_daemon.store.keys import Key


@dataclass(frozen=True, slots=True)
class Destination:
    """Buckets as a request names them, and as they were found.

    They may change until the create commits, so `settle_buckets` looks at them again.
    """

    naming: Naming
    #: Each once, in the order of their names.
    buckets: tuple[Bucket, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(bucket.id for bucket in self.buckets)

    @property
    def team_id(self) -> str:
        return self.buckets[0].team_id

    @property
    def identity(self) -> str:
        """What a request's fingerprint holds of it: the same however the buckets are spelled."""
        return ",".join(self.ids)

    @property
    def slug(self) -> str:
        """The first bucket's, where only one can be told."""
        return self.buckets[0].slug


def find_destination(connection: Connection, key: Key, naming: Naming) -> Destination:
    """The named buckets, which must be active and within the key's reach; raises `bucket_not_found`."""
    found = [get_usable_bucket(connection, key, name.text) for name in naming.names]
    return Destination(naming, tuple({bucket.id: bucket for bucket in found}.values()))


def settle_buckets(connection: Connection, key: Key, destination: Destination) -> tuple[str, ...]:
    """In the transaction of the create: the ids of the buckets as they are now; raises as `find_destination`."""
    return find_destination(connection, key, destination.naming).ids
