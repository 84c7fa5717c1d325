"""Sends files into one bucket: in a single request, through a session, or up to 100 together as a batch.

Idempotency keys are derived from the content, so a repeated run uses the same keys and continues an interrupted run.
Each key contains a counter, the epoch. If the source created with a key has been deleted, the next epoch is used.

A batch goes through these steps:
1. One request opens the batch.
2. The bytes of its files are sent together (a pack), or one by one if the service refuses that.
3. A finalize request creates all sources.
4. Files whose bytes are incomplete are sent one by one, and finalized again, at most MOST_ROUNDS times.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

from svc_cli.client.api import Client
from svc_cli.client.batches import FinalizeMode, Member, batch_key
from svc_cli.client.new_files import Description, NewFile, idempotency_key, session_key
from svc_cli.client.sessions import OnSent
from svc_cli.errors import UNFORESEEN, ApiError, FileRefused, NetworkFailed, SvcError, understood
from svc_cli.exits import Exit
from svc_cli.transfer.contents import BLOCK_BYTES, FileContent, changed
from svc_cli.transfer.reports import ReportItem
from svc_daemon.wire import JsonMapping

#: Maximum number of idempotency keys to try for a file.
MOST_EPOCHS = 1000
#: Maximum rounds of sending and finalizing a batch.
MOST_ROUNDS = 10


@dataclass(frozen=True)
class Transfer:
    """A file to be sent; `item` gets the result."""

    item: ReportItem
    content: FileContent
    description: Description

    @property
    def size_bytes(self) -> int:
        return self.content.size_bytes

    @cached_property
    def member(self) -> Member:
        """Return the file as a member of a batch."""
        return Member(self.description, self.size_bytes)


@dataclass(frozen=True, slots=True)
class TransferGroup:
    """Files that are sent together: a batch, or a single file."""

    kind: Literal["one", "session", "batch"]
    transfers: tuple[Transfer, ...]


class Pack:
    """The bytes of a batch's files, one after the other, as the body of a request."""

    def __init__(self, opened: JsonMapping, transfers: Mapping[str, Transfer]) -> None:
        """`opened` is the response that opened the batch. `transfers` maps client_file_ids to the batch's files."""
        self.upload_url: str = opened["pack"]["upload_url"]
        self.size_bytes: int = opened["pack"]["size_bytes"]
        places = [(item["offset"], transfers[item["client_file_id"]]) for item in opened["items"]]
        self._places = sorted(places, key=lambda place: place[0])

    def blocks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` on.

        If a file has changed since it was hashed, zeros are sent instead, and the service refuses the file.
        """
        for begin, transfer in self._places:
            left_bytes = begin + transfer.size_bytes - max(begin, offset)
            if left_bytes <= 0:
                continue
            try:
                if transfer.item.error is None:
                    for block in transfer.content.blocks(transfer.size_bytes - left_bytes):
                        yield block
                        left_bytes -= len(block)
            except FileRefused as error:
                transfer.item.refuse(error)
            while left_bytes:
                yield bytes(min(BLOCK_BYTES, left_bytes))
                left_bytes -= min(BLOCK_BYTES, left_bytes)

    def count(self, sent_bytes: int) -> None:
        """Record, for each file, how many of its bytes are among the last `sent_bytes` bytes of the pack."""
        first = self.size_bytes - sent_bytes
        for begin, transfer in self._places:
            if transfer.item.error is None:
                end = begin + transfer.size_bytes
                transfer.item.sent_bytes += max(0, end - max(begin, first))


class Sender:
    """Sends files into one bucket. Threads may share it."""

    def __init__(
        self, client: Client, bucket_id: str, pool: Executor, *, on_sent: OnSent, on_batch: Callable[[str], None]
    ) -> None:
        """`on_sent` gets the size of each block sent, `on_batch` the id of each batch opened, both in any thread."""
        self.client = client
        self.bucket_id = bucket_id
        self._pool = pool
        self._on_sent = on_sent
        self._on_batch = on_batch

    def send(self, group: TransferGroup) -> None:
        """Send the files, and record the results. Raises SvcError for errors that affect every file."""
        if group.kind == "batch":
            self._send_batch(group.transfers)
            return
        (transfer,) = group.transfers
        try:
            (self._send_one if group.kind == "one" else self._send_session)(transfer)
        except (SvcError, *UNFORESEEN) as error:
            if isinstance(error, SvcError) and stops_everything(error):
                raise
            transfer.item.refuse(understood(error))

    def _send_one(self, transfer: Transfer) -> None:
        """Send the whole file in one request."""
        described = {each.name: getattr(transfer.description, each.name) for each in fields(Description)}
        upload = NewFile(**described, data=transfer.content.whole())
        for epoch in range(MOST_EPOCHS):
            key = idempotency_key(self.bucket_id, upload, epoch)
            reply = self.client.send_upload(self.bucket_id, upload, key)
            transfer.item.sent_bytes += transfer.size_bytes
            self._on_sent(transfer.size_bytes)
            source = self._find_living(reply.body["id"], transfer) if reply.is_replay else reply.body
            if source is not None:
                transfer.item.follow(source)
                return
        raise too_many_epochs()

    def _send_session(self, transfer: Transfer) -> None:
        """Send the file through an upload session. Continues the session of an earlier run, if there is one."""
        for epoch in range(MOST_EPOCHS):
            key = session_key(self.bucket_id, transfer.description, transfer.size_bytes, epoch)
            opened = self.client.open_upload(self.bucket_id, transfer.description, transfer.size_bytes, key)
            if opened.body["status"] == "canceled":
                # An earlier session with this key was canceled, or has failed permanently. Try the next key.
                continue
            if opened.body["status"] != "finalized":
                self._send_bytes(opened.body["upload_url"], transfer, resume=opened.is_replay)
            made = self.client.finalize_upload(self.bucket_id, opened.body["session_id"]).body
            source = self._find_living(made["id"], transfer) if opened.is_replay else made
            if source is not None:
                transfer.item.follow(source)
                return
        raise too_many_epochs()

    def _send_batch(self, transfers: Sequence[Transfer]) -> None:
        left = list(transfers)
        for epoch in range(MOST_EPOCHS):
            if not left:
                return
            try:
                left = self._send_epoch({each.member.client_file_id: each for each in left}, epoch)
            except (SvcError, *UNFORESEEN) as error:
                if not is_of_files(error):
                    raise
                # Send each half on its own, to find which files are refused.
                middle = len(left) // 2
                if middle:
                    self._send_batch(left[:middle])
                    self._send_batch(left[middle:])
                else:
                    with _refusing(left[0]):
                        self._send_one(left[0])
                return
        for transfer in left:
            transfer.item.refuse(too_many_epochs())

    def _send_epoch(self, transfers: Mapping[str, Transfer], epoch: int) -> list[Transfer]:
        """Send one batch. Returns the files that need another idempotency key."""
        members = [transfer.member for transfer in transfers.values()]
        key = batch_key(self.bucket_id, members, epoch)
        opened = self.client.open_batch(self.bucket_id, members, key, pack=True)
        batch_id = opened.body["batch_id"]
        self._on_batch(batch_id)
        for rejected in opened.body["rejected"]:
            _refuse(transfers[rejected["client_file_id"]], _error(rejected["error"]))
        urls = {item["client_file_id"]: item["upload_url"] for item in opened.body["items"]}
        unsent, dead = self._sort_replayed(batch_id, transfers) if opened.is_replay else (list(urls), [])
        open_ids, resume = unsent, opened.is_replay
        if opened.body.get("pack") and len(unsent) == len(urls):
            unsent = [] if self._send_pack(Pack(opened.body, transfers), resume=resume) else unsent
            resume = True
        for _ in range(MOST_ROUNDS):
            if not open_ids:
                break
            self._send_all({urls[each]: transfers[each] for each in unsent}, resume=resume)
            open_ids, unsent = self._finalize(batch_id, transfers, open_ids)
            resume = True
        missing = {"code": "blob_not_uploaded", "message": "its bytes did not arrive.", "retryable": True}
        for transfer in (transfers[each] for each in open_ids):
            if transfer.item.error is None:
                _refuse(transfer, _error(missing))
        return dead

    def _send_pack(self, pack: Pack, *, resume: bool) -> bool:
        """Send the bytes of all files in one request. Returns False if the service refuses it."""
        try:
            pack.count(self.client.send_bytes(pack.upload_url, pack, resume=resume, on_sent=self._on_sent))
        except ApiError as error:
            if stops_everything(error):
                raise
            return False
        return True

    def _sort_replayed(self, batch_id: str, transfers: Mapping[str, Transfer]) -> tuple[list[str], list[Transfer]]:
        """Record the results of a batch that an earlier run opened.

        Returns the ids of the pending files, and the files that need another idempotency key.
        """
        open_ids, dead = [], []
        for item in self.client.batch(batch_id, items=True)["items"]:
            transfer = transfers[item["client_file_id"]]
            if item["status"] == "pending":
                open_ids.append(item["client_file_id"])
            elif item["knowledge_id"] and (source := self._find_living(item["knowledge_id"], transfer)):
                transfer.item.follow(source)
            else:
                dead.append(transfer)
        return open_ids, dead

    def _send_all(self, targets: Mapping[str, Transfer], *, resume: bool) -> None:
        """Send the bytes of several files in parallel. An error that affects only one file is stored in its item."""
        sending = [
            (transfer, self._pool.submit(self._send_bytes, url, transfer, resume=resume))
            for url, transfer in targets.items()
        ]
        try:
            for transfer, future in sending:
                with _refusing(transfer):
                    future.result()
        finally:
            for _, future in sending:
                future.cancel()

    def _finalize(
        self, batch_id: str, transfers: Mapping[str, Transfer], open_ids: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Finalize the batch and record the results.

        Returns two lists of `client_file_id`s: files that are not finalized yet, and those of them whose bytes must be
        sent again. If sending one of `open_ids` failed, the service is asked to abandon all files with missing bytes.
        """
        is_given_up = any(transfers[each].item.error for each in open_ids)
        mode: FinalizeMode = "abandon_pending" if is_given_up else "finalize_uploaded"
        report = self.client.finalize_batch(self.bucket_id, batch_id, mode)
        for done in report["finalized"] + report["replayed"]:
            if done["client_file_id"] not in open_ids:
                # It was finalized in an earlier run or round.
                continue
            state = {"status": done.get("status", "queued"), "ready": done.get("ready", False)}
            transfers[done["client_file_id"]].item.follow({"id": done["knowledge_id"], **state})
        for failed in report["failed"]:
            transfer = transfers[failed["client_file_id"]]
            if transfer.item.error is None:
                _refuse(transfer, _error(failed["error"]))
        pending = {each["client_file_id"]: each["reason"] for each in report["pending"]}
        lacking = [each for each, reason in pending.items() if reason != "time_budget_exhausted"]
        return list(pending), [each for each in lacking if transfers[each].item.error is None]

    def _send_bytes(self, upload_url: str, transfer: Transfer, *, resume: bool) -> None:
        """Send the bytes of a file. Raises FileRefused if the file has changed."""
        try:
            transfer.item.sent_bytes += self.client.send_bytes(
                upload_url, transfer.content, resume=resume, on_sent=self._on_sent
            )
        except ApiError as error:
            if error.code == "checksum_mismatch":
                raise changed() from error
            raise

    def _find_living(self, source_id: str, transfer: Transfer) -> JsonMapping | None:
        """Return the source that an earlier run created; None if it was deleted, renamed or removed from the bucket."""
        try:
            source = self.client.source(source_id)
        except ApiError as error:
            if error.code == "source_not_found":
                return None
            raise
        is_here = source["title"] == transfer.description.title and self.bucket_id in source["bucket_ids"]
        return source if is_here else None


def stops_everything(error: SvcError) -> bool:
    """Whether the error affects every file, such as a refused key."""
    is_bucket = error.code in {"bucket_not_found", "bucket_assignment_failed"}
    return is_bucket or error.is_dead or error.exit in {Exit.DENIED, Exit.UNREACHABLE, Exit.INCOMPATIBLE, Exit.USAGE}


def is_of_files(error: Exception) -> bool:
    """Whether only some files cause the error, so that other files may be accepted, now or later."""
    if not isinstance(error, SvcError) or isinstance(error, FileRefused):
        return True  # nobody foresaw it, or it is of one file, which may be stable later
    is_lasting = not error.retryable and error.exit in {Exit.FAILED, Exit.MISSING, Exit.CONFLICT}
    return is_lasting and not stops_everything(error)


def too_many_epochs() -> FileRefused:
    """Return the error for a file that has used up its idempotency keys."""
    return FileRefused("it was removed and sent again too often this week.", code="svc_too_many_epochs")


def _refuse(transfer: Transfer, error: SvcError) -> None:
    # After such an error, the next file would fail too. The service keeps the uploaded bytes for the next run.
    if stops_everything(error) or isinstance(error, NetworkFailed):
        raise error
    transfer.item.refuse(error)


@contextmanager
def _refusing(transfer: Transfer) -> Iterator[None]:
    try:
        yield
    except (SvcError, *UNFORESEEN) as error:
        _refuse(transfer, understood(error))


def _error(body: JsonMapping) -> ApiError:
    """Convert the error of a batch item to an ApiError."""
    return ApiError(404 if body["code"].endswith("_not_found") else 400, body)
