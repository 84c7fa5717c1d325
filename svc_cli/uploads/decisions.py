"""Decides what to do with a file, given the bucket's sources that have the same title. Pure.

The command line identifies the files of a bucket by title. A file with the same title and the same bytes as a source
is not sent again. The same title with different bytes is a conflict, unless the user chose what to do (`OnConflict`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from svc_daemon.wire import Json, JsonMapping

#: What to do if the bucket has a source with the file's title but different bytes.
OnConflict = Literal["ask", "replace", "as_new"]


@dataclass(frozen=True, slots=True)
class KnownSources:
    """The bucket's sources when the run began. `bucket_id` is None if the bucket did not exist."""

    bucket_id: str | None
    #: Sources by title, oldest first.
    by_title: Mapping[str, Sequence[JsonMapping]]


class Decision(NamedTuple):
    """The action for a file, as named in the report, and the existing source that it concerns, if any.

    `created`: send it; no source has this title, or the user wants to keep both. `replaced`: send it to replace the
    source. `unchanged`: the source has the same bytes. `retried`: the source has the same bytes but failed; queue it
    again. `conflict`: the source has other bytes, and the user chose neither to replace it nor to keep both.
    """

    action: Literal["created", "replaced", "unchanged", "retried", "conflict"]
    source: JsonMapping | None = None


def decide(known: Sequence[JsonMapping], sha256: str, on_conflict: OnConflict) -> Decision:
    """Decide what to do with one file. `known` holds the bucket's sources with its title, oldest first."""
    leaving = {source["replaces"] for source in known if source.get("replaces") and source["status"] != "failed"}
    staying = [source for source in known if source["id"] not in leaving]
    same = [source for source in staying if source["sha256"] == sha256]
    if same:
        # Prefer a ready source to a pending one, and a pending one to a failed one.
        best = max(same, key=lambda source: (bool(source["ready"]), source["status"] != "failed"))
        return Decision("retried" if best["status"] == "failed" else "unchanged", best)
    if not known or on_conflict == "as_new":
        return Decision("created")
    if on_conflict == "replace":
        # Replace the newest source that is not itself waiting to replace another one.
        ids = {source["id"] for source in known}
        settled = [source for source in known if source.get("replaces") not in ids]
        return Decision("replaced", (settled or known)[-1])
    return Decision("conflict", (staying or known)[-1])


def title_conflict(source: JsonMapping, hint: str) -> Json:
    """Return the error for a file that was not sent, because a source in the bucket has its title and other content."""
    return {
        "code": "svc_title_conflict",
        "message": f"the bucket has different content under this title ({source['id']}); nothing was sent.",
        "retryable": False,
        "details": {"source_id": source["id"], "sha256": source["sha256"]},
        "hint": hint,
    }
