"""Sends files to the bucket in batches, each of which is first recorded in the sync index.

The next run sends the batches of a killed run again with the same idempotency keys, so nothing is created twice.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from svc_cli.client.api import Client
from svc_cli.client.new_files import Description
from svc_cli.client.storage import OnSent
from svc_cli.errors import ApiError
from svc_cli.sync.index import FileRow, Index, Journaled, State
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.plan import conflict_of
from svc_cli.uploads.contents import FileContent
from svc_cli.uploads.items import ReportItem
from svc_cli.uploads.queues import TransferQueue
from svc_cli.uploads.rooted_files import Root
from svc_cli.uploads.transfers import Transfer, TransferGroup

#: Maximum number of sources to look up: a replaced source, the source that replaced it, and so on.
MOST_SUCCESSORS = 20


class SyncQueue(TransferQueue):
    """The upload queue of one sync. Not thread-safe."""

    def __init__(
        self,
        client: Client,
        index: Index,
        bucket_id: str,
        jobs: int,
        on_item: Callable[[ReportItem], None],
        *,
        may_replace: Callable[[str], bool] = lambda _: True,
        on_sent: OnSent = lambda _: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_item` is called with the outcome of each file.

        `may_replace` says of a source's successor whether the mapping may replace it.
        """
        super().__init__(
            client, bucket_id, jobs, on_begin=self._begin, on_end=self._end, on_sent=on_sent, on_wait=on_wait
        )
        self._index = index
        self._on_item = on_item
        self._may_replace = may_replace
        #: The index row to write after a file was sent, by path.
        self._rows: dict[str, FileRow] = {}
        #: Files to send once more, because the sources to replace no longer exist. None during the second attempt.
        self._displaced: list[tuple[FileRow, Transfer]] | None = []

    def add_file(self, mapping: Mapping, row: FileRow, content: FileContent, place_id: str | None) -> None:
        """Send a file, which replaces the source `place_id` if given.

        Raises SvcError for errors that every file would get, such as a revoked key.
        """
        description = Description(
            filename=PurePosixPath(row.path).name,
            title=row.path,
            tags=mapping.tags,
            sha256=row.sha256,
            replaces=place_id,
            mapping=mapping.name,
        )
        self._rows[row.path] = row
        self.add(_transfer(row, content, description))

    def finish(self) -> None:
        """Send the remaining files.

        If the source that a file should replace no longer exists, the file is sent again, to replace that source's
        successor, if any. Raises SvcError like `add_file`.
        """
        super().finish()
        displaced, self._displaced = self._displaced or [], None
        for row, before in displaced:
            place_id = find_successor(self._client, before.description.replaces)
            after = _transfer(row, before.content, before.description)
            after.item.sent_bytes = before.item.sent_bytes
            if place_id is not None and not self._may_replace(place_id):
                after.item.conflict(place_id, conflict_of(str(before.description.mapping)))
                self._on_item(after.item)
                continue
            self._rows[row.path] = row
            self.add(replace(after, description=replace(before.description, replaces=place_id)))
        super().finish()

    def recover(self, root: Root) -> None:
        """Finish the batches of an earlier run. Raises SvcError like `add_file`."""
        for batch in self._index.list_batches():
            transfers = []
            for name, row in batch.rows.items():
                # Use the size and time that the killed run recorded: reading fails if the file has changed since then.
                stamp = (row.device, row.inode, row.size_bytes, row.mtime_ns)
                place = Path(root.find(row.raw) or row.raw)
                content = FileContent(place, row.sha256, row.size_bytes, stamp=stamp, root=root)
                transfers.append(_transfer(row, content, Description(**batch.body[name])))
                self._rows[row.path] = row
            self.send(TransferGroup("batch", tuple(transfers)))
        self.finish()

    def _begin(self, group: TransferGroup) -> None:
        batch: Journaled | None = None
        if group.kind == "batch":
            transfers = {each.member.client_file_id: each for each in group.transfers}
            bodies = {name: each.description.body() for name, each in transfers.items()}
            rows = {name: self._rows[each.item.path] for name, each in transfers.items()}
            batch = Journaled(_key(group), bodies, rows)
        self._index.begin([self._rows[each.item.path] for each in group.transfers], batch)

    def _end(self, group: TransferGroup) -> None:
        """Write the rows of the sync index for a group that was sent, and report its files.

        A file without a source gets no row, so the next run sends it again.
        """
        ended, again = [], []
        for transfer in group.transfers:
            item, row, replaces = transfer.item, self._rows.pop(transfer.item.path), transfer.description.replaces
            if item.source_id is not None:
                state = State.READY if item.ready else State.FAILED if item.status == "failed" else State.SENT
                place_id = item.source_id if item.ready else replaces or item.source_id
                reason = json.dumps(item.error) if item.error else None
                ended.append(row._replace(source_id=item.source_id, place_id=place_id, state=state, reason=reason))
            is_gone = item.error is not None and item.error["code"] == "source_not_found"
            if self._displaced is not None and is_gone and replaces is not None:
                again.append((row, transfer))
        self._index.finish(_key(group), ended)
        if self._displaced is not None:
            self._displaced += again
        displaced = [transfer for _, transfer in again]
        for transfer in group.transfers:
            if transfer not in displaced:
                self._on_item(transfer.item)


def find_successor(client: Client, source_id: str | None) -> str | None:
    """Return `source_id` if that source exists, otherwise the id of the source that has replaced it, or None."""
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


def _transfer(row: FileRow, content: FileContent, description: Description) -> Transfer:
    action = "updated" if description.replaces else "created"
    item = ReportItem(path=row.path, action=action, size_bytes=row.size_bytes, sha256=row.sha256)
    return Transfer(item, content, description)


def _key(group: TransferGroup) -> str:
    return " ".join(sorted(each.member.client_file_id for each in group.transfers))
