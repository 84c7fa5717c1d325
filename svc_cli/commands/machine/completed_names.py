"""Prints names for the completion scripts, at each TAB.

It imports little, and takes 82 ms of a processor. Through Typer the same command takes 117, and a TAB may take 120.
"""

import os
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from svc_cli.console import Console
from svc_cli.daemon.connections import connected
from svc_cli.errors import SvcError
from svc_cli.settings import CliSettings
from svc_daemon import paths

#: Most sources of a bucket that are offered.
MOST_SOURCES = 1000
#: What no shell takes for more than a word. bash runs commands that it finds in the words to choose from.
_PLAIN = re.compile(r"[\w./@%+=,-]+")
#: Commands that take a title without -b.
_READING = {("source", "show"), ("source", "text"), ("source", "get")}


def write_bucket_names() -> bool:
    """Print the slug of each bucket, as `svc bucket ls --names` does. Returns False if that fails."""
    return _write("bucket", [])


def write_names(arguments: Sequence[str]) -> bool:
    """Print the names of a kind: a bucket, source, agent, key or watcher. The other arguments are the typed words.

    If that fails, print nothing. Returns True.
    """
    kind, *words = arguments or [""]
    _write(kind, words)
    return True


def _write(kind: str, words: Sequence[str]) -> bool:
    try:
        console = Console(sys.stdout, sys.stderr, os.environ, is_quiet=True)
        names = _list(kind, words, CliSettings.load(os.environ, Path.cwd()), console)
        # Whatever a document is called, only plain words get into a shell.
        console.print("\n".join(name for name in names if kind == "bucket" or _PLAIN.fullmatch(name)))
        console.out.flush()
    except (SvcError, OSError, AttributeError, LookupError):  # AttributeError: standard output is None if it is closed
        return False
    return True


def _list(kind: str, words: Sequence[str], settings: CliSettings, console: Console) -> list[str]:
    if kind == "watcher":
        from svc_cli.sync.mappings import Added, read_mappings

        project = settings.project
        known = read_mappings(project.tables, project.path, settings.get("bucket")) if project else []
        return [each.name for each in (*known, *Added.of(paths.config_dir(settings.environ)).read())]
    with connected(settings, console, autostart=False) as (client, _):
        if kind == "agent":
            return [str(each["id"]) for each in client.agents()["agents"]]
        if kind == "key":
            return [each["id"] for each in client.keys()["keys"]]
        buckets = [bucket["slug"] for bucket in client.buckets(members=False)["buckets"]]
        if kind == "bucket":
            return buckets
        flags = [after for before, after in pairwise(words) if before in ("-b", "--bucket")]
        named = flags or [str(each) for each in [settings.get("bucket")] if each]
        pages = (client.sources_page(each, {"status": "all", "limit": MOST_SOURCES}) for each in named or buckets)
        by_title = bool(flags) or tuple(words[:2]) in _READING
        # Otherwise the command takes no title.
        return [
            str(source["title"] if by_title and _PLAIN.fullmatch(source["title"]) else source["id"])
            for page in pages
            for source in page["sources"]
        ]
