"""What to do with a file, given the sources of the bucket that carry its title. Pure.

In a bucket a title is the file's identity for the command line. The same title with the same bytes is the same file:
nothing is sent. The same title with other bytes is a conflict, unless the user chose which of both stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from svc_daemon.wire import Json

#: What the user wants if the bucket has other content under a title.
OnConflict = Literal["ask", "replace", "as_new"]


@dataclass(frozen=True, slots=True)
class KnownSources:
    """What the bucket held when the run began. `bucket_id` is None while the bucket does not exist."""

    bucket_id: str | None
    #: Sources by title, oldest first.
    by_title: Mapping[str, Sequence[Json]]


class Decision(NamedTuple):
    """What is done with a file, as a report calls it, and the source of the bucket that it is about.

    `created`: send it; nothing has this title, or the user wants it beside what has. `replaced`: send it in the place
    of the source. `unchanged`: the source has these bytes. `retried`: so it has, and failed; queue it again.
    `conflict`: the source has other bytes, and the user chose nothing.
    """

    action: Literal["created", "replaced", "unchanged", "retried", "conflict"]
    source: Json | None = None


def decide(known: Sequence[Json], sha256: str, on_conflict: OnConflict) -> Decision:
    """Decide about one file. `known` are the bucket's sources of its title, oldest first."""
    leaving = {source["replaces"] for source in known if source.get("replaces") and source["status"] != "failed"}
    staying = [source for source in known if source["id"] not in leaving]
    same = [source for source in staying if source["sha256"] == sha256]
    if same:
        # A ready source is preferred to a pending one, and that to a failed one.
        best = max(same, key=lambda source: (bool(source["ready"]), source["status"] != "failed"))
        return Decision("retried" if best["status"] == "failed" else "unchanged", best)
    if not known or on_conflict == "as_new":
        return Decision("created")
    if on_conflict == "replace":
        # The newest source that is not itself waiting for the place of another one.
        ids = {source["id"] for source in known}
        settled = [source for source in known if source.get("replaces") not in ids]
        return Decision("replaced", (settled or known)[-1])
    return Decision("conflict", (staying or known)[-1])
