"""Finds what a command names: a source by id, id prefix, title or file name; a key or event by id or id prefix.

What is shaped like an id is one, never a title. A command that only reads may guess. A command that changes something
accepts a complete id, a prefix that only one id has, or the exact title of a source in the bucket given with -b.
"""

import re
import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from svc_cli.client.calls import part
from svc_cli.errors import ApiError, NotExact, SourceAmbiguous, UsageError
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.api import Client


class IdKind(NamedTuple):
    """A kind of object that commands take by id."""

    prefix: str
    noun: str
    #: The field that is shown beside an id.
    label: str
    #: The error code if there is no such object.
    missing: str


SOURCE = IdKind("src_", "source", "title", "source_not_found")
KEY = IdKind("key_", "key", "name", "key_not_found")
EVENT = IdKind("evt_", "event", "event", "not_found")

#: Length of an id after its prefix: ten characters of time, to the millisecond, and sixteen random ones.
ID_LENGTH = 26
#: How much of an id, after its prefix, a command that changes something needs at least.
LEAST_LENGTH = 8
#: Maximum number of matching objects that an error message lists.
MOST_CANDIDATES = 5
#: Maximum number of titles compared with a misspelled name.
MOST_TITLES = 1000


def is_id(name: str, prefix: str) -> bool:
    """Whether the name is shaped like an id, or the beginning of one."""
    return re.fullmatch(f"{prefix}[0-9A-Za-z]*", name) is not None


def is_whole_id(name: str, prefix: str) -> bool:
    return is_id(name, prefix) and len(name) >= len(prefix) + ID_LENGTH


def before(name: str, prefix: str) -> str:
    """Return a text that sorts before the ids that start with `name`, to list them from there."""
    # A list leaves out the id that is given as `after`, but not the ids of which that is a prefix.
    return name[:-1] if is_whole_id(name, prefix) else name


def find_source(
    client: "Client", name: str, bucket: str | None = None, *, guess: bool = True, anywhere: bool = False
) -> str:
    """Return the id of the source with this id prefix, title or file name. Without `bucket`, search all buckets.

    Without `guess`, a prefix must be long enough, and a title exact and in `bucket`. With `anywhere`, sources outside
    of `bucket` are found by their ids. A complete id is looked up only if it has to be in a bucket.

    Raises SourceAmbiguous for several matches, NotExact for what would be a guess, and ApiError `source_not_found`.
    """
    name = unicodedata.normalize("NFC", name)
    by_id = is_id(name, SOURCE.prefix)
    if is_whole_id(name, SOURCE.prefix) and (guess or anywhere or bucket is None):
        return name
    found = _candidates(client, name, None if anywhere and by_id else bucket)
    titled = [] if by_id else [source for source in found if source["title"] == name]
    if not guess and not bucket:
        titled = []
    exact = titled or (found if guess else _with_id(SOURCE, name, found))
    if len(exact) == 1:
        return str(exact[0]["id"])
    if anywhere and bucket and not exact:
        found = _candidates(client, name, None)
    if not found:
        raise _no_source(client, name, None if anywhere else bucket, by_file_name=guess)
    where = "Here" if anywhere else "Without -b BUCKET"
    needed = f"{where}, a source is named by its id, not by {name!r}."
    if bucket:
        needed = f"No source in the bucket {bucket} has exactly the title {name!r}."
    raise _unclear(SOURCE, name, exact, found, needed)


def exact_id(kind: IdKind, name: str, rows: Sequence[JsonMapping]) -> str:
    """Return the id of the row that has this id, or that alone has this prefix of an id, if it is long enough.

    Raises NotExact for what would be a guess, such as a name, and ApiError if no row has this id or name.
    """
    part(name)
    is_prefix = is_id(name, kind.prefix)
    found = [row for row in rows if (row["id"].startswith(name) if is_prefix else row[kind.label] == name)]
    exact = _with_id(kind, name, found)
    if len(exact) == 1:
        return str(exact[0]["id"])
    if not found:
        raise ApiError(404, {"code": kind.missing, "message": f"There is no {kind.noun} {name!r}."})
    raise _unclear(kind, name, exact, found, f"A {kind.noun} is named by its id, not by {name!r}.")


def _with_id(kind: IdKind, name: str, found: Sequence[JsonMapping]) -> Sequence[JsonMapping]:
    """Return what was found if the name is an id, or a prefix that is long enough for a command that changes it."""
    return found if is_id(name, kind.prefix) and len(name) >= len(kind.prefix) + LEAST_LENGTH else []


def _candidates(client: "Client", name: str, bucket: str | None) -> list[JsonMapping]:
    """Return the sources with this id prefix, or with this title or file name, each with the `bucket` that has it."""
    if bucket is not None:
        places = [(bucket, bucket)]
    else:
        listed = client.buckets(include_archived=True, members=False)["buckets"]
        places = [(each["id"], each["slug"]) for each in listed]
    found: dict[str, JsonMapping] = {}
    for place, slug in places:
        if is_id(name, SOURCE.prefix):
            page = client.sources_page(
                place, {"status": "all", "after": before(name, SOURCE.prefix), "limit": MOST_CANDIDATES + 1}
            )
            rows = [each for each in page["sources"] if each["id"].startswith(name)]
        else:
            rows = [
                each
                for each in client.sources(place, status="all", q=name)
                if name in (each["title"], each["filename"], each["title"].rpartition("/")[2])
            ]
        found |= {row["id"]: {**row, "bucket": slug} for row in rows if row["id"] not in found}
    return list(found.values())


def _no_source(client: "Client", name: str, bucket: str | None, *, by_file_name: bool) -> ApiError:
    """Build the error for a source that does not exist. Suggests a similar title if a title was looked up."""
    what = f"with the title {'or file name ' if by_file_name else ''}{name!r}"
    if is_whole_id(name, SOURCE.prefix):
        what = f"with the id {name!r}"
    elif is_id(name, SOURCE.prefix):
        what = f"whose id starts with {name!r}, and what is shaped like an id is never a title"
    message = f"There is no source{f' in the bucket {bucket}' if bucket else ''} {what}."
    error = ApiError(404, {"code": SOURCE.missing, "message": message, "details": {"source": name}})
    if bucket and not is_id(name, SOURCE.prefix):
        listed = client.sources_page(bucket, {"status": "all", "limit": MOST_TITLES})["sources"]
        titles = [source["title"] for source in listed]
        titles += [source["filename"] for source in listed] if by_file_name else []
        if close := get_close_matches(name, titles, n=1):
            error.hint = f"did you mean {close[0]!r}? {error.hint}"
    return error


def _unclear(
    kind: IdKind, name: str, exact: Sequence[JsonMapping], found: Sequence[JsonMapping], needed: str
) -> UsageError:
    """Build the error for several exact matches, or else for what is not exact. Lists the candidates."""
    matches = exact or found
    number = len(matches) if len(matches) <= MOST_CANDIDATES else f"more than {MOST_CANDIDATES}"
    if exact and is_id(name, kind.prefix):
        message = f"{number} ids start with {name!r}; those of {kind.noun}s that were added together start alike."
    elif exact:
        message = f"{number} {kind.noun}s match {name!r}."
    elif is_id(name, kind.prefix):
        message = f"{name!r} is too short: give at least {LEAST_LENGTH} characters after {kind.prefix}."
    else:
        message = needed
    candidates = [{each: row[each] for each in ("id", kind.label, "bucket") if each in row} for row in matches]
    shown = [
        f"{each['id']} ({' in '.join(str(each[name]) for name in (kind.label, 'bucket') if name in each)})"
        for each in candidates[:MOST_CANDIDATES]
    ]
    shown += ["and others"] if len(matches) > MOST_CANDIDATES else []
    error = SourceAmbiguous if exact and kind is SOURCE else NotExact
    ids = {"source_ids": [each["id"] for each in matches]} if kind is SOURCE else {}
    hint = f"use one of these ids: {', '.join(shown)}." if len(matches) > 1 else f"use the id: {shown[0]}."
    return error(message, hint=hint, details={**ids, "candidates": candidates})
