"""What is done about one file: bytes on their way, or a move or a retry, which need none."""

from pathlib import PurePosixPath

from svc_cli.errors import ApiError
from svc_cli.sync.comparing import Change
from svc_cli.sync.index import State
from svc_cli.sync.plan import Verb
from svc_cli.sync.scenes import Scene
from svc_cli.sync.sending import Sending
from svc_cli.uploads.items import ReportItem

ACTIONS = {
    Verb.CREATE: "created",
    Verb.UPDATE: "updated",
    Verb.MOVE: "moved",
    Verb.RETRY: "retried",
    Verb.WAIT: "unchanged",
    Verb.KEEP: "unchanged",
    Verb.FAIL: "failed",
    Verb.SKIP: "skipped",
}


def item_of(change: Change) -> ReportItem:
    """The change as a report shows it."""
    now, row = change.now, change.row
    item = ReportItem(path=change.path, action=ACTIONS[change.verb], source_id=row.source_id if row else None)
    item.ready = row is not None and row.state == State.READY
    if now is not None:
        item.size_bytes, item.sha256 = now.size_bytes, now.sha256
    if change.error is not None:
        item.size_bytes = change.size_bytes
        item.refuse(change.error)
    elif change.verb is Verb.FAIL and row is not None:
        item.status = "failed"
        item.fail(row.error or {"code": "svc_source_failed", "message": "indexing failed.", "retryable": False})
    elif change.verb is Verb.SKIP and row is not None:
        item.reason = row.reason
    return item


def send(scene: Scene, sending: Sending, change: Change) -> None:
    """Send a new file, or one that takes the place of its predecessor. Raises SvcError for what would stop all."""
    if change.now is None or change.content is None:
        raise AssertionError("what is sent was read")
    place_id = change.row.place_id if change.verb is Verb.UPDATE and change.row is not None else None
    sending.add(scene.mapping, change.now, change.content, place_id)


def move(scene: Scene, change: Change) -> None:
    """Give the source of a file that moved its new title; its bytes are where they were."""
    item, was, now = item_of(change), change.row, change.now
    if was is None or now is None or was.source_id is None:
        raise AssertionError("a move has a source")
    try:
        names = {"title": now.path, "filename": PurePosixPath(now.path).name}
        item.follow(scene.client.update_source(was.source_id, names))
        moved = now._replace(source_id=was.source_id, place_id=was.place_id, state=was.state, reason=was.reason)
        scene.index.move(was.path, moved)
    except ApiError as error:
        item.refuse(error)
    scene.tell(item)


def retry(scene: Scene, change: Change) -> None:
    """Queue a source that failed again, from its stored bytes."""
    item, row = item_of(change), change.row
    if row is None or row.source_id is None:
        raise AssertionError("a retry has a source")
    try:
        item.follow(scene.client.retry_source(row.source_id))
        scene.index.save([row._replace(state=State.SENT, reason=None)])
    except ApiError as error:
        item.refuse(error)
    scene.tell(item)
