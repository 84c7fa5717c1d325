"""Sources that keep themselves up to date: what a schedule fetches, when, and what stays when a try fails."""

from typing import Any

from tests.api.daemons import Daemon
from tests.api.sites import PAGE, Site

HOUR, DAY = 3600, 86_400


def add(daemon: Daemon, url: str, route: str = "pages", every: int = DAY, **refresh: Any) -> str:
    """Create a source that is fetched again at this interval, wait until it is ready, and return its id."""
    body = {"url": url, "refresh": {"every_seconds": every, **refresh}}
    source_id = str(daemon.post(f"/v1/buckets/inbox/{route}", 201, json=body)["id"])
    daemon.wait_ready(source_id)
    return source_id


def schedule(daemon: Daemon, source_id: str) -> dict[str, Any]:
    found: dict[str, Any] = daemon.source(source_id)["refresh"]
    return found


def let_pass(daemon: Daemon, seconds: float, site: Site, tries: int = 1) -> None:
    """Set the clock ahead, and wait until the site was asked so many times more."""
    asked = len(site.server.requests)
    daemon.advance(seconds)
    daemon.wait(lambda: len(site.server.requests) >= asked + tries, "the site is asked")


def test_a_page_with_an_interval_is_found_by_its_new_text_and_keeps_its_id(working: Daemon, site: Site) -> None:
    source_id = add(working, site.url("/page"))
    before = working.source(source_id)
    assert (before["refresh"]["every_seconds"], before["refresh"]["on_gone"]) == (DAY, "report")
    site.put("/page", PAGE.replace(b"ochre", b"crimson"))
    let_pass(working, 1.2 * DAY, site)
    working.wait(lambda: working.found("crimson") == [source_id], "the new text is found")
    after = working.source(source_id)
    assert working.found("ochre") == []
    assert (after["ready"], after["task"], after["sha256"] == before["sha256"]) == (True, before["task"], False)
    assert b"crimson" in working.ask("GET", f"/v1/sources/{source_id}/content").content
