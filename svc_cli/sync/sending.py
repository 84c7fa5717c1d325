"""Files on their way into the bucket: each batch is in the index before it is sent, and its rows are when it has ended.

A run that was killed left its batches in the index. They are sent again exactly as they were, under the same key: the
service says which bytes it has and which sources it made, so nothing is sent or made twice.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from svc_cli.client.api import Client
from svc_cli.client.storage import OnSent
from svc_cli.client.uploads import Description
from svc_cli.errors import ApiError
from svc_cli.sync.index import Index, Journaled, Row, State
from svc_cli.sync.mappings import Mapping
from svc_cli.uploads.contents import FileContent
from svc_cli.uploads.items import ReportItem
from svc_cli.uploads.queues import TransferQueue
from svc_cli.uploads.transfers import Transfer, TransferGroup

#: A source that was replaced so often while one file was on its way is not followed any further.
MOST_SUCCESSORS = 20


class Sending:
    """The way out of one sync. Not thread-safe; `items` hears what became of each file."""

    def __init__(
        self,
        client: Client,
        index: Index,
        bucket_id: str,
        jobs: int,
        on_item: Callable[[ReportItem], None],
        *,
        on_sent: OnSent = lambda _: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self.dispatch = TransferQueue(
            client, bucket_id, jobs, on_begin=self._begin, on_end=self._end, on_sent=on_sent, on_wait=on_wait
        )
        self._client = client
        self._index = index
        self._on_item = on_item
        #: What each file's row is to be, by path.
        self._rows: dict[str, Row] = {}
        #: Files that were to replace a source that has just been replaced itself, with their rows; None once they had
        #: their second chance.
        self._displaced: list[tuple[Row, Transfer]] | None = []

    def add(self, mapping: Mapping, row: Row, content: FileContent, place_id: str | None) -> None:
        """Send a file; with `place_id` in the place of that source. Raises SvcError for what would stop every file."""
        description = Description(
            filename=PurePosixPath(row.path).name,
            title=row.path,
            tags=mapping.tags,
            sha256=row.sha256,
            replaces=place_id,
            mapping=mapping.name,
        )
        self._rows[row.path] = row
        self.dispatch.add(Transfer(_item(row, description), content, description))

    def finish(self) -> None:
        """Send the rest, and once more what met the end of the source it was to replace. Raises SvcError as `add`."""
        self.dispatch.finish()
        displaced, self._displaced = self._displaced or [], None
        for row, parcel in displaced:
            item = _item(row, parcel.description)
            item.sent_bytes = parcel.item.sent_bytes
            place_id = find_successor(self._client, parcel.description.replaces)
            self._rows[row.path] = row
            self.dispatch.add(Transfer(item, parcel.content, replace(parcel.description, replaces=place_id)))
        self.dispatch.finish()

    def recover(self, root: Path) -> None:
        """Bring the batches to their end that a run before this one began. Raises SvcError as `add`."""
        for batch in self._index.list_batches():
            parcels = [_parcel(root, row, Description(**batch.body[name])) for name, row in batch.rows.items()]
            self._rows |= {row.path: row for row in batch.rows.values()}
            self.dispatch.send(TransferGroup("batch", tuple(parcels)))
        self.finish()

    def _begin(self, shipment: TransferGroup) -> None:
        if shipment.kind != "batch":
            return
        members = {parcel.member.client_file_id: parcel for parcel in shipment.transfers}
        bodies = {name: parcel.description.body() for name, parcel in members.items()}
        rows = {name: self._rows[parcel.item.path] for name, parcel in members.items()}
        self._index.begin_batch(Journaled(_key(shipment), bodies, rows))

    def _end(self, shipment: TransferGroup) -> None:
        displaced = [parcel for parcel in shipment.transfers if self._is_displaced(parcel)]
        again = {parcel.item.path: (self._rows[parcel.item.path], parcel) for parcel in displaced}
        rows = [row for parcel in shipment.transfers if (row := self._ended(parcel)) is not None]
        self._index.finish_batch(_key(shipment), rows)
        if self._displaced is not None:
            self._displaced += again.values()
        for item in (parcel.item for parcel in shipment.transfers):
            if item.path not in again:
                self._on_item(item)

    def _is_displaced(self, parcel: Transfer) -> bool:
        is_gone = parcel.item.error is not None and parcel.item.error["code"] == "source_not_found"
        return self._displaced is not None and is_gone and parcel.description.replaces is not None

    def _ended(self, parcel: Transfer) -> Row | None:
        """The file's row by now; None where the next run shall try it as if nothing had been."""
        item, row = parcel.item, self._rows.pop(parcel.item.path)
        if item.source_id is None:
            return None
        state = State.READY if item.ready else State.FAILED if item.status == "failed" else State.SENT
        place_id = item.source_id if item.ready else parcel.description.replaces or item.source_id
        reason = json.dumps(item.error) if item.error else None
        return row._replace(source_id=item.source_id, place_id=place_id, state=state, reason=reason)


def find_successor(client: Client, source_id: str | None) -> str | None:
    """The source that stands where this one stood by now; None where nothing does."""
    for _ in range(MOST_SUCCESSORS):
        if source_id is None:
            return None
        try:
            return str(client.source(source_id)["id"])
        except ApiError as error:
            if error.code != "source_not_found":
                raise
            source_id = error.details.get("replaced_by")
    return None


def _parcel(root: Path, row: Row, description: Description) -> Transfer:
    """A file as an earlier run hashed it; one that has changed since refuses to be read."""
    stamp = (row.device, row.inode, row.size_bytes, row.mtime_ns)
    content = FileContent(root / row.raw, row.sha256, row.size_bytes, stamp=stamp)
    return Transfer(_item(row, description), content, description)


def _item(row: Row, description: Description) -> ReportItem:
    """What is to be told of the file, as its way begins."""
    action = "updated" if description.replaces else "created"
    return ReportItem(path=row.path, action=action, size_bytes=row.size_bytes, sha256=row.sha256)


def _key(shipment: TransferGroup) -> str:
    return " ".join(sorted(parcel.member.client_file_id for parcel in shipment.transfers))
