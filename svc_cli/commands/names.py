"""Finds a source by its id, the start of its id, its title or its file name."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from svc_cli.errors import ApiError, SourceAmbiguous, UsageError
from svc_daemon.wire import Json

if TYPE_CHECKING:
    from svc_cli.client.api import Client
    from svc_cli.commands.options import Invocation


PREFIX = "src_"
_WHOLE_ID = re.compile(rf"{PREFIX}\w{{26,}}", re.ASCII)
#: Candidates that an error names.
MOST_CANDIDATES = 5
#: How many titles are compared with a misspelled one.
MOST_TITLES = 1000


def resolve_source(call: "Invocation", client: "Client", name: str, bucket: str | None = None) -> str:
    """The id of the source with this name in the bucket of the flag or the settings, else in any bucket."""
    bucket = call.settings.get("bucket", bucket)
    return find_source(client, name, [bucket] if bucket else None)


def find_source(client: "Client", name: str, buckets: Sequence[str] | None = None) -> str:
    """The id of the one source with this name in these buckets, or in any; a whole id is not looked up.

    Raises SourceAmbiguous where several have it, ApiError `source_not_found` where none has.
    """
    if _WHOLE_ID.fullmatch(name):
        return name
    name = unicodedata.normalize("NFC", name)
    places = buckets or [bucket["id"] for bucket in client.buckets(include_archived=True, members=False)["buckets"]]
    found = {source["id"]: source for bucket in places for source in _candidates(client, bucket, name)}
    titled = [source for source in found.values() if source["title"] == name]
    matches = titled or list(found.values())
    if not matches:
        where = f" in the bucket {buckets[0]}" if buckets else ""
        message = f"There is no source{where} whose id starts with {name!r}, or with this title or file name."
        error = ApiError(404, {"code": "source_not_found", "message": message, "details": {"source": name}})
        page = client.sources_page(buckets[0], {"status": "all", "limit": MOST_TITLES}) if buckets else {"sources": []}
        titles = [title for source in page["sources"] for title in (source["title"], source["filename"])]
        if close := get_close_matches(name, titles, n=1):
            error.hint = f"did you mean {close[0]!r}? {error.hint}"
        raise error
    if len(matches) > 1:
        listed = [f"{source['id']} ({source['title']})" for source in matches[:MOST_CANDIDATES]]
        more = [f"{len(matches) - MOST_CANDIDATES} more"] if len(matches) > MOST_CANDIDATES else []
        raise SourceAmbiguous(
            f"{len(matches)} sources match {name!r}.",
            hint=f"use one of these ids: {', '.join([*listed, *more])}.",
            details={"source_ids": [source["id"] for source in matches]},
        )
    return str(matches[0]["id"])


def whole_id(start: str, ids: Iterable[str]) -> str:
    """The only id with this start; the text itself if there is none, for the service to refuse. Raises UsageError."""
    matches = sorted({each for each in ids if each.startswith(start)})
    if len(matches) > 1:
        raise UsageError(f"{len(matches)} ids start with {start!r}.", hint=f"use one of {', '.join(matches[:5])}.")
    return matches[0] if matches else start


def _candidates(client: "Client", bucket: str, name: str) -> Iterator[Json]:
    """The bucket's sources whose id starts with the name, or whose title or file name it is."""
    if name.startswith(PREFIX):
        # Ids are listed in order, and a part of an id sorts before it.
        page = client.sources_page(bucket, {"status": "all", "after": name, "limit": MOST_CANDIDATES + 1})
        yield from (source for source in page["sources"] if source["id"].startswith(name))
    for source in client.sources(bucket, status="all", q=name):
        if name in (source["title"], source["filename"], source["title"].rpartition("/")[2]):
            yield source
