"""What the creates have in common whose work two doors share."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from svc_daemon.core.uploads.idempotency import Claim, fingerprint
from svc_daemon.operations.destinations import Destination
from svc_daemon.operations.replays import Repeatable
from svc_daemon.operations.views import view_source
from svc_daemon.store.keys import KeyRow
from svc_daemon.store.sources import SourceRow


@dataclass(frozen=True, slots=True)
class Creating:
    """A create at one door."""

    #: Who asks.
    key: KeyRow
    repeat_key: str | None
    #: Method and route template: an idempotency key belongs to one of them.
    route: str

    def claiming(self, fingerprint: str | None) -> Repeatable:
        """The create as `replaying` takes it; None where the key alone decides."""
        return Repeatable(self.key, self.repeat_key, Claim(route=self.route, fingerprint=fingerprint))


def meaning_of(body: BaseModel) -> str:
    """The fingerprint of a body: the same of a dry run as of the create that it stands for."""
    return fingerprint(body.model_dump() | {"dry_run": False})


def told_of(*destinations: Destination) -> dict[str, Any]:
    """Where it goes, as a dry run tells it: ids, and the slugs of buckets that would be made."""
    bucket_ids = dict.fromkeys(bucket_id for each in destinations for bucket_id in each.ids)
    missing = dict.fromkeys(slug for each in destinations for slug in each.missing)
    told: dict[str, Any] = {"bucket_ids": list(bucket_ids)}
    return told | {"missing_buckets": list(missing)} if missing else told


def told_of_source(source: SourceRow, key: KeyRow) -> dict[str, Any]:
    """The source that a finalize would make, as far as it is known before."""
    known = {"object", "type", "bucket_ids", "filename", "title", "content_type", "size_bytes", "sha256"}
    return view_source(source, key).model_dump(include=known)
