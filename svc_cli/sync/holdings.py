"""What the bucket has of a mapping, asked for only where the index may be behind it."""

from dataclasses import dataclass, field

from svc_cli.client.api import Client
from svc_cli.sync.index import Index, Row, State
from svc_cli.sync.plan import merge
from svc_daemon.wire import Json

BUCKET_ID, REVISION, ROOT = "bucket_id", "revision", "root"


@dataclass(slots=True)
class Holdings:
    """Rows by path as index and bucket have them together, and sources that are there once too often."""

    rows: dict[str, Row] = field(default_factory=dict)
    surplus: list[Json] = field(default_factory=list)


def adopt_bucket(index: Index, bucket_id: str) -> None:
    """Forget what the index knew of another bucket of this name."""
    if index.find_fact(BUCKET_ID) != bucket_id:
        index.clear()
        index.set_fact(BUCKET_ID, bucket_id)


def look(
    client: Client, index: Index, bucket: Json, mapping: str, *, is_thorough: bool = False, saves: bool = True
) -> Holdings:
    """What is known of the mapping's files; the bucket is listed where it has changed since, or something was open."""
    rows = index.load()
    is_known = index.find_fact(REVISION) == str(bucket["revision"]) and index.find_fact(BUCKET_ID) == bucket["id"]
    if is_known and not is_thorough and not any(row.state == State.SENT for row in rows.values()):
        return Holdings(rows)
    revision, found = _ask(client, bucket["id"], mapping, rows)
    if saves:
        _save(index, revision, found)
    return found


def refresh(client: Client, index: Index, bucket_id: str, mapping: str) -> None:
    """List the mapping's sources and make the index agree."""
    _save(index, *_ask(client, bucket_id, mapping, index.load()))


def _ask(client: Client, bucket_id: str, mapping: str, rows: dict[str, Row]) -> tuple[str, Holdings]:
    """The bucket's revision, empty where it moved meanwhile, and what index and bucket have together."""
    pages = list(client.source_pages(bucket_id, {"status": "all", "mapping": mapping}))
    merged, surplus = merge(rows, (source for page in pages for source in page["sources"]))
    revisions = {page["revision"] for page in pages}
    # Pages of different moments together are no moment's truth: the next run lists again.
    return str(revisions.pop()) if len(revisions) == 1 and not surplus else "", Holdings(merged, surplus)


def _save(index: Index, revision: str, found: Holdings) -> None:
    index.replace_all(found.rows.values())
    index.set_fact(REVISION, revision)
