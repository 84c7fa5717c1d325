"""A real daemon keeps pages fresh by itself, through kills and after a restored backup."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.acceptance.backups import make_backup, restore_backup
from tests.acceptance.calls import get_source, make_bucket, search, wait_ended
from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation
from tests.fetch.servers import Exchange, Server, serving

BUCKET, PAGES = "web", 4
KILLS, LARGE_KILLS = 5, 60
#: The daemon may fetch from this machine, and again after a second.
FRESH = {**UNLIMITED, "SVC_FETCH_ALLOW": "127.0.0.0/8", "SVC_LIMIT_REFRESH_SECONDS": "1"}


@dataclass
class Editions:
    """Pages whose text says their edition."""

    server: Server
    now: list[int] = field(default_factory=lambda: [1] * PAGES)


@contextmanager
def publishing() -> Iterator[Editions]:
    shown: list[Editions] = []

    def answer(exchange: Exchange) -> None:
        number = int(exchange.request.path.removeprefix("/page"))
        said = f"Ledger{number} of the harbour is in its edition e{number}x{shown[0].now[number]} now."
        body = f"<html><body><article><h1>Ledger</h1><p>{said}</p></article></body></html>"
        exchange.answer(200, body.encode(), content_type="text/html")

    with serving(answer) as server:
        shown.append(Editions(server))
        yield shown[0]


def add_pages(client: httpx.Client, editions: Editions) -> list[str]:
    """Add the pages, each fetched again every second, and return their ids when they are ready."""
    make_bucket(client, BUCKET)
    ids = []
    for number in range(PAGES):
        body = {"url": editions.server.url(f"/page{number}"), "refresh": {"every_seconds": 1}}
        answer = client.post(f"/v1/buckets/{BUCKET}/pages", json=body).raise_for_status()
        ids.append(str(answer.json()["id"]))
    assert all(wait_ended(client, source_id)["ready"] for source_id in ids)
    return ids


def edition(client: httpx.Client, number: int, source_id: str) -> int:
    """Return the edition that a search finds of this page: exactly one."""
    (text,) = [hit["text"] for hit in search(client, f"ledger{number}", BUCKET) if hit["source_id"] == source_id]
    return int(text.partition(f"e{number}x")[2].split()[0])


def wait_current(client: httpx.Client, ids: list[str], editions: Editions) -> None:
    for number, source_id in enumerate(ids):
        wait_until(
            lambda: edition(client, number, source_id) == editions.now[number],  # noqa: B023
            f"the newest edition of page {number} is found",
        )


def are_current(client: httpx.Client, ids: list[str], editions: Editions) -> bool:
    """Whether all pages are ready and found in their newest editions."""
    if not all(get_source(client, source_id)["ready"] for source_id in ids):
        return False
    try:
        return [edition(client, *each) for each in enumerate(ids)] == editions.now
    except (httpx.HTTPStatusError, ValueError):
        # After a restore, the texts of the index are replaced that the restored state doesn't know.
        return False


@pytest.mark.rule("source.refresh")
def test_kills_during_refreshes_leave_one_edition_of_each_page_and_lose_no_page(
    make_installation: MakeInstallation, large: bool
) -> None:
    installation = make_installation(**FRESH).start()
    chosen = random.Random(35)
    with publishing() as editions:
        with installation.client() as client:
            ids = add_pages(client, editions)
        for _ in range(LARGE_KILLS if large else KILLS):
            editions.now = [each + 1 for each in editions.now]
            # Any moment of a try may be hit, so the moment of the kill is chosen at random.
            time.sleep(chosen.uniform(0.5, 2.0))
            installation.crash()
            with installation.client() as client:
                for number, source_id in enumerate(ids):
                    assert editions.now[number] - 1 <= edition(client, number, source_id) <= editions.now[number]
                    assert get_source(client, source_id)["ready"]
                wait_current(client, ids, editions)
    installation.assert_intact()


@pytest.mark.sqlite
@pytest.mark.folders
def test_a_restored_backup_goes_on_with_its_schedules(make_installation: MakeInstallation, tmp_path: Path) -> None:
    installation = make_installation(**FRESH).start()
    with publishing() as editions:
        with installation.client() as client:
            ids = add_pages(client, editions)
            make_backup(installation.files.root, tmp_path / "backups")
            editions.now = [each + 1 for each in editions.now]
            wait_current(client, ids, editions)
        assert installation.stop() == 0
        other: Installation = make_installation("other", **FRESH)
        assert restore_backup(tmp_path / "backups", other.files.root).is_whole
        editions.now = [each + 1 for each in editions.now]
        with other.start().client() as client:
            wait_until(lambda: are_current(client, ids, editions), "the newest edition of each page is found")
    other.assert_intact()
