"""Finds a source by id, id prefix, title or file name."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from svc_cli.errors import ApiError, SourceAmbiguous, UsageError
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.api import Client
    from svc_cli.commands.invocations import Invocation


PREFIX = "src_"
_WHOLE_ID = re.compile(rf"{PREFIX}\w{{26,}}", re.ASCII)
#: Maximum number of matching sources that an error message lists.
MOST_CANDIDATES = 5
#: Maximum number of titles compared with a misspelled name.
MOST_TITLES = 1000


def resolve_source(call: "Invocation", client: "Client", name: str, bucket: str | None = None) -> str:
    """Find a source like `find_source`, in the bucket of the flag or settings. If none is set, search all buckets."""
    bucket = call.settings.get("bucket", bucket)
    return find_source(client, name, [bucket] if bucket else None)


def find_source(client: "Client", name: str, buckets: Sequence[str] | None = None) -> str:
    """Return the id of the source with this id prefix, title or file name. Without `buckets`, search all buckets.

    A complete id is not looked up. Raises SourceAmbiguous for several matches, ApiError `source_not_found` for none.
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
        listed = client.sources_page(buckets[0], {"status": "all", "limit": MOST_TITLES})["sources"] if buckets else []
        titles = [title for source in listed for title in (source["title"], source["filename"])]
        if close := get_close_matches(name, titles, n=1):
            error.hint = f"did you mean {close[0]!r}? {error.hint}"
        raise error
    if len(matches) > 1:
        shown = [f"{source['id']} ({source['title']})" for source in matches[:MOST_CANDIDATES]]
        more = [f"{len(matches) - MOST_CANDIDATES} more"] if len(matches) > MOST_CANDIDATES else []
        raise SourceAmbiguous(
            f"{len(matches)} sources match {name!r}.",
            hint=f"use one of these ids: {', '.join([*shown, *more])}.",
            details={"source_ids": [source["id"] for source in matches]},
        )
    return str(matches[0]["id"])


def whole_id(start: str, ids: Iterable[str]) -> str:
    """Return the only id with this prefix, or the prefix itself if no id has it. Raises UsageError for several ids."""
    matches = sorted({each for each in ids if each.startswith(start)})
    if len(matches) > 1:
        raise UsageError(f"{len(matches)} ids start with {start!r}.", hint=f"use one of {', '.join(matches[:5])}.")
    return matches[0] if matches else start


def _candidates(client: "Client", bucket: str, name: str) -> Iterator[JsonMapping]:
    """Yield the sources of the bucket with this title, file name or id prefix."""
    if name.startswith(PREFIX):
        # Sources are listed by id. The ids that begin with a prefix come directly after the prefix itself.
        page = client.sources_page(bucket, {"status": "all", "after": name, "limit": MOST_CANDIDATES + 1})
        yield from (source for source in page["sources"] if source["id"].startswith(name))
    for source in client.sources(bucket, status="all", q=name):
        if name in (source["title"], source["filename"], source["title"].rpartition("/")[2]):
            yield source
