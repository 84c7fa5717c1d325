"""Deleted text leaves no trace in the files of the data directory, but where the threat model says so."""

import os
import re
import threading
import time
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from string import ascii_lowercase

import pytest

from svc_daemon.provider.embedded.provider import EmbeddedProvider
from tests.acceptance.installations import PATIENCE_S
from tests.api.daemons import Daemon
from tests.workers.test_deleting_buckets import FORCE
from tests.workers.test_syncing import wait_round

pytestmark = [pytest.mark.sqlite, pytest.mark.folders, pytest.mark.index_files]

DAY_S = 86_400
#: Enough for pages of the database to be split and joined.
SOURCES = 120
_COMPRESSED = re.compile(rb"\x78[\x01\x5e\x9c\xda]")


@dataclass
class Made:
    id: str
    title: str
    text: str


def draw(words: Random) -> str:
    """Return a word that occurs nowhere else."""
    return "".join(words.choices(ascii_lowercase.replace("s", ""), k=20))


def add(daemon: Daemon, words: Random, **options: str) -> Made:
    """Upload a file with a word of its own in its title and another one in its text, without waiting."""
    title, text = draw(words), draw(words)
    data = f"# Quays\n\nThe umber quay is called {text}. It was built of grey stone.\n".encode()
    fields = {"title": title, "filename": f"{title}.md", "repeat_key": title} | options
    return Made(daemon.add_source(data, **fields), title, text)


def traces(daemon: Daemon, words: Collection[str]) -> dict[str, set[str]]:
    """Return which of the words are in the data directory, by file."""
    found = {}
    # Files and folders may be removed meanwhile.
    for path in (Path(folder, name) for folder, _, names in os.walk(daemon.files.root) for name in names):
        # The index has words without their beginning, if the word before begins in the same way.
        texts = list(_texts(_read(path).lower())) if path.is_file() else []
        if seen := {word for word in words if any(word[4:].encode() in text for text in texts)}:
            found[path.relative_to(daemon.files.root).parts[0]] = seen
    return found


def _texts(data: bytes) -> Iterator[bytes]:
    """Yield the bytes, and what is compressed in them."""
    yield data
    for match in _COMPRESSED.finditer(data):
        with suppress(zlib.error):
            yield zlib.decompressobj().decompress(data[match.start() :], 100_000).lower()


def is_cleared(daemon: Daemon) -> bool:
    """Whether only tombstones of replaced sources are left, and nothing is queued."""
    return not daemon.read(
        lambda connection: connection.execute(
            "SELECT 1 FROM tombstones WHERE cleaned_at IS NULL UNION SELECT 1 FROM tasks WHERE finished_at IS NULL"
        ).fetchall()
    )


def change_everything(daemon: Daemon, words: Random) -> tuple[list[Made], list[Made]]:
    """Delete and replace sources, and a bucket with its sources. Return those that are kept and those that are gone."""
    daemon.make_bucket("second")
    made = [add(daemon, words, bucket=("inbox", "second")[number % 2]) for number in range(SOURCES)]
    daemon.wait_ready(*(each.id for each in made))
    replaced, retitled, *inbox = made[::2]
    deleted = inbox[: len(inbox) // 2]
    successor = add(daemon, words, replaces=replaced.id)
    daemon.wait_ready(successor.id)
    for each in (*deleted, successor):
        daemon.delete(f"/v1/sources/{each.id}")
    former = draw(words)
    for title in (former, "Quays"):
        daemon.patch(f"/v1/sources/{retitled.id}", title=title)
    daemon.delete("/v1/buckets/second", **FORCE)
    daemon.wait(lambda: is_cleared(daemon), "the end of all deletions")
    return inbox[len(deleted) :], [replaced, successor, *deleted, *made[1::2], Made(retitled.id, former, former)]


def test_deleted_text_is_in_no_file_of_a_stopped_service_and_titles_are_only_in_its_history(working: Daemon) -> None:
    kept, gone = change_everything(working, Random(1))
    texts, titles = ({getattr(each, name) for each in gone} for name in ("text", "title"))
    working.stop()
    assert traces(working, texts - titles) == {}
    assert traces(working, titles).keys() == {"state.db"}
    shown = {each.text for each in kept}
    assert traces(working, shown)["index"] == shown
    working.advance(32 * DAY_S)
    working.start("sweeping")
    wait_round(working, lambda: not traces(working, titles), "the history is deleted")


def test_deleted_text_leaves_the_files_at_once_and_later_texts_within_an_hour(working: Daemon) -> None:
    words = Random(2)
    first, second, kept = [add(working, words, title="Quays", filename="a.md") for _ in range(3)]
    working.wait_ready(first.id, second.id, kept.id)
    for source, pause_s in ((first, 0.0), (second, 3600.0)):
        assert traces(working, {source.text}).keys() >= {"blobs", "index"}
        working.delete(f"/v1/sources/{source.id}")
        working.wait(lambda: is_cleared(working), "the source is cleared")
        working.advance(pause_s)
        working.wait(lambda source=source: not traces(working, {source.text}), "the text is gone")  # type: ignore[misc]
    assert working.found("quay") == [kept.id]


def test_stop_waits_only_a_moment_for_the_purge_of_a_large_index(
    working: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    purges, is_closed, close = list[str](), threading.Event(), EmbeddedProvider.close

    def purge_until_closed(_: EmbeddedProvider, team_id: str) -> bool:
        purges.append(team_id)
        return len(purges) == 1 or is_closed.wait(PATIENCE_S)

    def say_and_close(provider: EmbeddedProvider) -> None:
        is_closed.set()
        close(provider)

    monkeypatch.setattr(EmbeddedProvider, "purge", purge_until_closed)
    monkeypatch.setattr(EmbeddedProvider, "close", say_and_close)
    words = Random(3)
    for source in (add(working, words), add(working, words)):
        working.wait_ready(source.id)
        working.delete(f"/v1/sources/{source.id}")
        working.wait(lambda: is_cleared(working) and bool(purges), "the source is cleared")
    began_s = time.monotonic()
    working.stop()
    assert len(purges) == 2
    assert time.monotonic() - began_s < PATIENCE_S / 2


def _read(path: Path) -> bytes:
    # Files of the search index come and go.
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
