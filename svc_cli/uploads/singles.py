"""A file that goes by itself: in one call, or through a session that goes on where it was cut."""

from dataclasses import fields

from svc_cli.client.uploads import Description, Upload, idempotency_key, session_key
from svc_cli.errors import ApiError
from svc_cli.uploads.deliveries import Parcel
from svc_cli.uploads.lines import MOST_EPOCHS, Line, too_many_epochs
from svc_daemon.wire import Json


def send_one(line: Line, parcel: Parcel) -> None:
    """Send the whole file in one request."""
    described = {each.name: getattr(parcel.description, each.name) for each in fields(Description)}
    upload = Upload(**described, data=parcel.content.whole())
    for epoch in range(MOST_EPOCHS):
        answer = line.client.send_upload(line.bucket_id, upload, idempotency_key(line.bucket_id, upload, epoch))
        parcel.item.sent_bytes += parcel.size_bytes
        line.on_sent(parcel.size_bytes)
        source = line.find_living(answer.body["id"], parcel) if answer.is_replay else answer.body
        if source is not None:
            parcel.item.follow(source)
            return
    raise too_many_epochs()


def send_session(line: Line, parcel: Parcel) -> None:
    """Send the file through a session of its own; one that was begun by an earlier run goes on."""
    for epoch in range(MOST_EPOCHS):
        key = session_key(line.bucket_id, parcel.description, parcel.size_bytes, epoch)
        opened = line.client.open_upload(line.bucket_id, parcel.description, parcel.size_bytes, key)
        if opened.body["status"] == "canceled":  # or failed for good
            continue
        if opened.body["status"] != "finalized":
            line.send_bytes(opened.body["upload_url"], parcel, resume=opened.is_replay)
        source = _finalize(line, opened.body["session_id"], parcel, is_replay=opened.is_replay)
        if source is not None:
            parcel.item.follow(source)
            return
    raise too_many_epochs()


def _finalize(line: Line, session_id: str, parcel: Parcel, *, is_replay: bool) -> Json | None:
    """The session's source; None where an earlier run made it and it is gone by now."""
    try:
        source = line.client.finalize_upload(line.bucket_id, session_id).body
    except ApiError as error:
        if is_replay and error.code == "source_not_found":
            return None
        raise
    return source if not is_replay or line.is_here(source, parcel) else None
