"""Decides what a sync does with each file on disk.

    index and bucket have        hash of the file     action
    nothing                      any                  CREATE, or MOVE if a deleted file had the same bytes
    a source                     different            UPDATE: the new source replaces the old one when ready
    another folder's source      different            CONFLICT: the source stays, and nothing is sent
    a ready source               the same             KEEP
    a pending source             the same             WAIT
    a failed source              the same             RETRY if that can help, otherwise FAIL again
    a skipped file               the same             SKIP again

Files that are only in the index were deleted; see `safety`.
"""

import json
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from svc_cli.sync.index import FileRow, State
from svc_cli.transfer.contents import Fingerprint
from svc_daemon.wire import Json, JsonMapping


class Holdings(NamedTuple):
    """The sources of a mapping in its bucket."""

    #: The index's rows by path.
    rows: dict[str, FileRow]
    #: Duplicates: sources with the same title as a source in `rows`.
    surplus: list[JsonMapping]

    @property
    def owned(self) -> int:
        """The number of the mapping's files in the bucket."""
        return sum(row.source_id is not None for row in self.rows.values())


class Verb(StrEnum):
    """What a sync does with a file."""

    CREATE = "create"
    UPDATE = "update"
    MOVE = "move"
    RETRY = "retry"
    WAIT = "wait"
    KEEP = "keep"
    FAIL = "fail"
    SKIP = "skip"
    CONFLICT = "conflict"


def judge(row: FileRow | None, sha256: str, owns: Callable[[FileRow], bool]) -> Verb:
    """Decide what to do about a file with this hash.

    `row` is its row in the index. `owns` says whether the mapping may change the sources of a row.
    """
    if row is None or (row.sha256 != sha256 and row.place_id is None):
        return Verb.CREATE
    if row.sha256 != sha256:
        return Verb.UPDATE if owns(row) else Verb.CONFLICT
    if row.state == State.FAILED:
        return Verb.RETRY if (row.error or {}).get("retryable") and owns(row) else Verb.FAIL
    return _SAME[row.state]


def conflict_of(mapping: str) -> Json:
    """Return the error for a file whose title is taken by a source that may be of another folder with this name."""
    return {
        "code": "svc_mapping_conflict",
        "message": f"the bucket has this as a document of a folder named {mapping!r}, and nothing shows that it is "
        "this one; it stays as it is.",
        "retryable": False,
        "details": {"mapping": mapping},
        "hint": f"if it is this folder's, `svc sync DIR --name {shlex.quote(mapping)}` claims it, and so does "
        "`svc config trust` for a name in svc.toml; another --name keeps the folders apart.",
    }


#: What to do about an unchanged file, by its state when the last sync ended.
_SAME: dict[str, Verb] = {
    State.READY: Verb.KEEP,
    State.SENT: Verb.WAIT,
    State.SKIPPED: Verb.SKIP,
}


#: The fields of a source that `merge` and `row_of` use.
MERGED = ("id", "title", "sha256", "size_bytes", "status", "ready", "replaces", "error")


def merge(rows: Mapping[str, FileRow], sources: Iterable[JsonMapping]) -> Holdings:
    """Update the rows of the local index from the mapping's sources in the bucket.

    If a source was removed from the bucket, its row is dropped, so that its file is sent again. A source that another
    machine added gets a row.
    """
    by_title: defaultdict[str, list[JsonMapping]] = defaultdict(list)
    for source in sorted(sources, key=lambda source: source["id"]):
        by_title[source["title"]].append(source)
    merged = {path: row for path, row in rows.items() if row.source_id is None}
    surplus: list[JsonMapping] = []
    for title, known in by_title.items():
        ids = {source["id"] for source in known}
        settled = [source for source in known if source.get("replaces") not in ids]
        # Newer sources may be waiting to replace `place`.
        place = (settled or known)[-1]
        waiting = [source for source in known if source.get("replaces") == place["id"]]
        merged[title] = row_of((waiting or [place])[-1], rows.get(title), place["id"])
        surplus += [source for source in settled if source is not place]
    return Holdings(merged, surplus)


def row_of(source: JsonMapping, known: FileRow | None, place_id: str | None = None) -> FileRow:
    """Return the index row for a source. If `known` has the same hash, its file metadata is copied."""
    is_same = known is not None and known.sha256 == source["sha256"]
    fingerprint = (
        Fingerprint._make(known[:5])
        if known is not None and is_same
        else Fingerprint(source.get("size_bytes") or 0, 0, 0, 0, 0)
    )
    state = State.FAILED if source["status"] == "failed" else State.READY if source["ready"] else State.SENT
    return FileRow(
        *fingerprint,
        hashed_ns=known.hashed_ns if known is not None and is_same else 0,
        path=source["title"],
        raw=known.raw if known is not None else source["title"],
        sha256=source["sha256"],
        source_id=source["id"],
        place_id=source["id"] if state is State.READY else place_id or source["id"],
        state=state,
        reason=json.dumps(source["error"]) if source.get("error") else None,
    )
