"""Decides what to do with a file, given the bucket's sources with the same title.

If a source has the file's title and bytes, nothing is sent. If a source has the title but other bytes, that is a
conflict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from svc_daemon.wire import Json, JsonMapping

#: What to do if the bucket has other content under a file's title.
OnConflict = Literal["ask", "replace", "as_new"]


@dataclass(frozen=True, slots=True)
class KnownSources:
    """The bucket's sources when the run began. `bucket_id` is None if there was no bucket."""

    bucket_id: str | None
    #: Sources by title, oldest first.
    by_title: Mapping[str, Sequence[JsonMapping]]


class Decision(NamedTuple):
    """What to do with a file, and which existing source it concerns, if any.

    created     send it as a new source
    replaced    send it to replace the source
    unchanged   the source has the same bytes
    retried     the source has the same bytes but failed; index it again
    conflict    the source has other bytes; send nothing
    """

    action: Literal["created", "replaced", "unchanged", "retried", "conflict"]
    source: JsonMapping | None = None


def decide(known: Sequence[JsonMapping], sha256: str, on_conflict: OnConflict) -> Decision:
    """Decide what to do with one file. `known` are the sources with the file's title, oldest first."""
    leaving = {source["replaces"] for source in known if source.get("replaces") and source["status"] != "failed"}
    staying = [source for source in known if source["id"] not in leaving]
    same = [source for source in staying if source["sha256"] == sha256]
    if same:
        # Prefer ready to pending, and pending to failed.
        best = max(same, key=lambda source: (bool(source["ready"]), source["status"] != "failed"))
        return Decision("retried" if best["status"] == "failed" else "unchanged", best)
    if not known or on_conflict == "as_new":
        return Decision("created")
    if on_conflict == "replace":
        # Replace the newest source that is not itself waiting to replace another.
        ids = {source["id"] for source in known}
        settled = [source for source in known if source.get("replaces") not in ids]
        return Decision("replaced", (settled or known)[-1])
    return Decision("conflict", (staying or known)[-1])


def title_conflict(source: JsonMapping, hint: str) -> Json:
    """Return the error for a file that was not sent because of a conflict."""
    return {
        "code": "svc_title_conflict",
        "message": f"the bucket has different content under this title ({source['id']}); nothing was sent.",
        "retryable": False,
        "details": {"source_id": source["id"], "sha256": source["sha256"]},
        "hint": hint,
    }
