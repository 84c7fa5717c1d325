"""What to do with a file, given the sources of the bucket that carry its title. Pure.

In a bucket a title is the file's identity for the command line. The same title with the same bytes is the same file:
nothing is sent. The same title with other bytes is a conflict, unless the user said which of both shall stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from svc_daemon.wire import Json

#: What the user said about a title that is taken by other bytes.
OnConflict = Literal["ask", "replace", "as_new"]


class Verb(StrEnum):
    """What is done with a file."""

    #: Send it; nothing has this title, or the user wants it beside what has.
    CREATE = "create"
    #: Send it in the place of `source`.
    REPLACE = "replace"
    #: `source` has these bytes: send nothing.
    UNCHANGED = "unchanged"
    #: `source` has these bytes and failed: queue it again.
    RETRY = "retry"
    #: `source` has other bytes and the user did not say what to do: send nothing.
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verb and the source of the bucket that it is about."""

    verb: Verb
    source: Json | None = None


def decide(known: Sequence[Json], sha256: str, on_conflict: OnConflict) -> Decision:
    """Decide about one file. `known` are the bucket's sources of its title, oldest first."""
    leaving = {source["replaces"] for source in known if source.get("replaces") and source["status"] != "failed"}
    staying = [source for source in known if source["id"] not in leaving]
    same = [source for source in staying if source["sha256"] == sha256]
    if same:
        best = max(same, key=_standing)
        return Decision(Verb.RETRY if best["status"] == "failed" else Verb.UNCHANGED, best)
    if not known or on_conflict == "as_new":
        return Decision(Verb.CREATE)
    if on_conflict == "replace":
        return Decision(Verb.REPLACE, _place(known))
    return Decision(Verb.CONFLICT, (staying or list(known))[-1])


def _standing(source: Json) -> tuple[bool, bool]:
    """Ready beats on its way beats failed."""
    return bool(source["ready"]), source["status"] != "failed"


def _place(known: Sequence[Json]) -> Json:
    """The source whose place a new one takes: the newest that is not itself waiting for another one's place."""
    ids = {source["id"] for source in known}
    settled = [source for source in known if source.get("replaces") not in ids]
    return (settled or list(known))[-1]
