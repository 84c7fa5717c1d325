"""Files that go together: one create, their bytes in parallel, then one finalize that makes sources of all of them.

What is pending after a finalize is sent or finalized again as long as that helps; what was rejected or failed is
recorded with its error and not tried again.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future

from svc_cli.client.batches import FinalizeMode, batch_key
from svc_cli.client.transport import Answer
from svc_cli.errors import ApiError, NetworkFailed, SvcError
from svc_cli.uploads.deliveries import Parcel, stops_everything
from svc_cli.uploads.lines import MOST_EPOCHS, Line, too_many_epochs
from svc_cli.uploads.singles import send_one
from svc_daemon.wire import Json

#: Rounds of sending and finalizing: more are needed only where the service loses bytes or runs out of time each time.
MOST_ROUNDS = 10
#: A batch that is refused as a whole with one of these may hold files that are fine by themselves.
_REFUSALS = frozenset({400, 413, 422})

Parcels = dict[str, Parcel]


def send_batch(line: Line, parcels: Sequence[Parcel]) -> None:
    """Send the files, and tell in each one's item what became of it. Raises SvcError for what would stop all."""
    left = list(parcels)
    for epoch in range(MOST_EPOCHS):
        try:
            left = _send(line, {parcel.member.client_file_id: parcel for parcel in left}, epoch)
        except ApiError as error:
            if error.status not in _REFUSALS or stops_everything(error):
                raise
            _send_in_parts(line, left)
            return
        if not left:
            return
    for parcel in left:
        parcel.item.refuse(too_many_epochs())


def _send_in_parts(line: Line, parcels: Sequence[Parcel]) -> None:
    """The service takes none of these files together: find out which it takes, and why not the others."""
    if len(parcels) > 1:
        middle = len(parcels) // 2
        send_batch(line, parcels[:middle])
        send_batch(line, parcels[middle:])
        return
    try:
        send_one(line, parcels[0])
    except SvcError as error:
        _refuse(parcels[0], error)


def _send(line: Line, parcels: Parcels, epoch: int) -> list[Parcel]:
    """One batch, to its end. The files whose turn in this epoch is over without a source."""
    members = [parcel.member for parcel in parcels.values()]
    opened = line.client.open_batch(line.bucket_id, members, batch_key(line.bucket_id, members, epoch))
    batch_id = opened.body["batch_id"]
    line.batch_ids.append(batch_id)
    for rejected in opened.body["rejected"]:
        _refuse(parcels[rejected["client_file_id"]], _error(rejected["error"]))
    open_ids, dead = _standing(line, opened, parcels)
    targets = {item["client_file_id"]: item["upload_url"] for item in opened.body["items"]}
    resume = opened.is_replay
    for _ in range(MOST_ROUNDS):
        if not open_ids:
            break
        _send_bytes(line, {targets[each]: parcels[each] for each in open_ids}, resume=resume)
        open_ids, resume = _finalize(line, batch_id, parcels, open_ids), True
    for each in open_ids:
        _refuse(
            parcels[each],
            _error({"code": "blob_not_uploaded", "message": "its bytes did not arrive.", "retryable": True}),
        )
    return dead


def _standing(line: Line, opened: Answer, parcels: Parcels) -> tuple[list[str], list[Parcel]]:
    """Which files lack bytes or a source still, and which can't get one from this batch any more."""
    if not opened.is_replay:
        return [item["client_file_id"] for item in opened.body["items"]], []
    open_ids, dead = [], []
    for item in line.client.batch(opened.body["batch_id"], items=True)["items"]:
        parcel = parcels[item["client_file_id"]]
        if item["status"] == "pending":
            open_ids.append(item["client_file_id"])
        elif item["knowledge_id"] and (source := line.find_living(item["knowledge_id"], parcel)):
            parcel.item.follow(source)
        else:
            dead.append(parcel)
    return open_ids, dead


def _send_bytes(line: Line, targets: dict[str, Parcel], *, resume: bool) -> None:
    """Send in parallel; what goes wrong with one file is kept in its item."""
    sending = [line.pool.submit(_send_file, line, url, parcel, resume) for url, parcel in targets.items()]
    try:
        for future in sending:
            future.result()
    finally:
        _cancel(sending)


def _send_file(line: Line, upload_url: str, parcel: Parcel, resume: bool) -> None:
    try:
        line.send_bytes(upload_url, parcel, resume=resume)
    except SvcError as error:
        _refuse(parcel, error)


def _finalize(line: Line, batch_id: str, parcels: Parcels, open_ids: Sequence[str]) -> list[str]:
    """Take over what became of the files; those that are still pending. What we gave up is given up there too."""
    is_given_up = any(parcels[each].item.error for each in open_ids)
    mode: FinalizeMode = "abandon_pending" if is_given_up else "finalize_uploaded"
    report = line.client.finalize_batch(line.bucket_id, batch_id, mode)
    for done in report["finalized"] + report["replayed"]:
        state = {"status": done.get("status", "queued"), "ready": done.get("ready", False)}
        parcels[done["client_file_id"]].item.follow({"id": done["knowledge_id"], **state})
    for failed in report["failed"]:
        parcel = parcels[failed["client_file_id"]]
        if parcel.item.error is None:
            _refuse(parcel, _error(failed["error"]))
    return [each["client_file_id"] for each in report["pending"] if parcels[each["client_file_id"]].item.error is None]


def _refuse(parcel: Parcel, error: SvcError) -> None:
    # A line that stayed broken through all retries is no better for the next file; what has arrived is kept.
    if stops_everything(error) or isinstance(error, NetworkFailed):
        raise error
    parcel.item.refuse(error)


def _error(told: Json) -> ApiError:
    """An item's error as if the file had been sent alone."""
    return ApiError(404 if told["code"].endswith("_not_found") else 400, told)


def _cancel(futures: Iterable["Future[None]"]) -> None:
    for future in futures:
        future.cancel()
