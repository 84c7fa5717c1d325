"""A site that changes, fails, moves and disappears over many rounds of its schedules, while searches go on."""

import random
import threading
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.api.answers import body_of
from tests.api.daemons import Daemon
from tests.api.sites import Site

DAY = 86_400
PAGES, ROUNDS, LARGE_PAGES, LARGE_ROUNDS = 5, 5, 30, 20
#: What happens to a page in a round, and how often.
FATES = {"changes": 6, "stays": 4, "is down": 3, "is gone": 4, "moves": 2, "asks for a password": 1}


@dataclass(slots=True)
class Page:
    """A page of the site, and what the service must know of it."""

    number: int
    on_gone: str
    source_id: str = ""
    version: int = 1
    #: Where it has moved to, by redirects; 0 for its own URL.
    place: int = 0
    #: The version that searches find.
    found: int = 1
    #: Answers in a row that there is no such page.
    missing: int = 0
    #: Failures in a row.
    failures: int = 0

    @property
    def path(self) -> str:
        return f"/page{self.number}"

    @property
    def is_deleted(self) -> bool:
        return self.missing >= 3 and self.on_gone == "delete"

    def show(self, site: Site) -> None:
        """Have the site answer with the page, after a redirect if it has moved."""
        said = f"Ledger{self.number} of the harbour is in its edition e{self.number}x{self.version} now."
        body = f"<html><head><title>Ledger</title></head><body><article><h1>Ledger</h1><p>{said}</p></article></body>"
        path = f"{self.path}/{self.place}" if self.place else self.path
        site.put(path, body.encode(), etag=f'"{self.version}"')
        if self.place:
            site.put(self.path, b"", status=301, location=path)

    def meet(self, fate: str, site: Site) -> int:
        """Let this happen to the page. Returns how many requests a try needs."""
        self.version += fate in ("changes", "moves")
        self.place += fate == "moves"
        if fate in ("changes", "stays", "moves"):
            self.show(site)
            self.found, self.missing, self.failures = self.version, 0, 0
            return 2 if self.place else 1
        self.failures += 1
        self.missing = self.missing + 1 if fate == "is gone" else 0
        if fate == "asks for a password":
            site.put(self.path, b"%PDF-1.4\n", "application/pdf")
        else:
            status = 503 if fate == "is down" else 404 if self.number % 2 else 410
            site.put(self.path, b"<h1>no</h1>", status=status)
        return 1


@dataclass(slots=True)
class Searching:
    """Searches for each page again and again, and notes what is wrong."""

    daemon: Daemon
    pages: list[Page]
    #: The versions that may be found of each page.
    allowed: dict[int, set[int]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    count: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        try:
            while not self.is_over.wait(0.03):
                for page in self.pages:
                    self.look(page)
        except AssertionError as error:
            self.wrong.append(f"a search was refused: {error}")

    def look(self, page: Page) -> None:
        before = set(self.allowed[page.number])
        answer = self.daemon.search(f"ledger{page.number}", buckets=["inbox"])
        if answer.status_code == 504:
            # The clock was set ahead during the search.
            return
        data = body_of(answer)["data"]
        self.count += 1
        texts = [hit["text"] for hit in data if hit["source_id"] == page.source_id]
        known = range(1, page.version + 1)
        found = {version for version in known for text in texts if f"e{page.number}x{version} " in text}
        if len(texts) != 1 or len(found) != 1:
            # A page that is deleted in this round may be found or not.
            if 0 not in before | self.allowed[page.number] or texts:
                self.wrong.append(f"{page.number}: {sorted(found)} in {len(texts)} hits")
        elif not found <= before | self.allowed[page.number]:
            self.wrong.append(f"{page.number}: {sorted(found)}, not {sorted(before)}")


def play(daemon: Daemon, site: Site, pages: list[Page], searching: Searching, chosen: random.Random) -> None:
    """Let something happen to each page, and check that each was tried once and is found as it must be."""
    live = [page for page in pages if not page.is_deleted]
    asked, needed, before = len(site.server.requests), Counter[str](), {page.number: page.found for page in live}
    for page in live:
        # The first page, which is to be deleted then, and the second one, which is not, are soon gone for good.
        is_gone = page.number < 2 and page.version > 1
        fate = "is gone" if is_gone else chosen.choices(list(FATES), list(FATES.values()))[0]
        fate = "changes" if page.number < 2 and not is_gone else fate
        needed[page.path] = page.meet(fate, site)
        after = 0 if page.is_deleted else page.found
        searching.allowed[page.number] = {before[page.number], after}
    daemon.advance(1.2 * DAY)
    now = daemon.context.clock.timestamp(-60)

    left = list(live)

    def is_settled(page: Page) -> bool:
        answer = daemon.ask("GET", f"/v1/sources/{page.source_id}")
        if page.is_deleted:
            return answer.status_code == 404
        schedule = body_of(answer)["refresh"]
        if (schedule["tried_at"] or "") < now or schedule["failures"] != page.failures:
            return False
        hits = body_of(daemon.search(f"ledger{page.number}", buckets=["inbox"]))["data"]
        return any(f"e{page.number}x{page.found} " in hit["text"] for hit in hits)

    def are_settled() -> bool:
        while left and is_settled(left[-1]):
            left.pop()
        return not left

    wait_until(are_settled, "all pages are as they must be", PATIENCE_S * (1 + len(live) / 5))
    made = Counter("/" + request.path.split("/")[1] for request in site.server.requests[asked:])
    assert made == needed
    for page in live:
        searching.allowed[page.number] = {0 if page.is_deleted else page.found}
    searching.pages = [page for page in pages if not page.is_deleted]


@pytest.mark.rule("source.refresh")
def test_searches_find_one_version_of_each_page_of_a_site_that_changes_fails_moves_and_disappears(
    working: Daemon, site: Site, large: bool
) -> None:
    count, rounds = (LARGE_PAGES, LARGE_ROUNDS) if large else (PAGES, ROUNDS)
    pages = [Page(number, "delete" if number % 3 == 0 else "report") for number in range(count)]
    for page in pages:
        page.show(site)
        body = {"url": site.url(page.path), "refresh": {"every_seconds": DAY, "on_gone": page.on_gone}}
        page.source_id = str(working.post("/v1/buckets/inbox/pages", 201, json=body)["id"])
    working.wait_ready(*(page.source_id for page in pages))
    searching = Searching(working, list(pages), {page.number: {1} for page in pages})
    thread = threading.Thread(target=searching.run)
    thread.start()
    try:
        chosen = random.Random(35)
        for _ in range(rounds):
            play(working, site, pages, searching, chosen)
    finally:
        searching.is_over.set()
        thread.join()
    assert (searching.wrong, searching.count >= count) == ([], True)
    left = {page.source_id for page in pages if not page.is_deleted}
    assert set(working.members()) == left
    assert pages[0].is_deleted and pages[1].missing >= 3 and any(page.version > 2 for page in pages)
    working.wait(lambda: len(working.blob_names()) == len(left), "the bytes of deleted pages are removed")
