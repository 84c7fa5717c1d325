"""One browser for all tests, and an installation with a handbook for it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.installations import Installation
from tests.console.browsers import OpenPage, Page, browsing


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browsing(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def open_page(browser: Any) -> Iterator[OpenPage]:
    """Opens a signed-in page, and holds it to its word after the test: nothing foreign asked for, nothing refused."""
    opened: list[Page] = []

    def open_one(installation: Installation) -> Page:
        page = Page(browser, installation)
        # The page of an earlier test may still look for its daemon.
        browser.get("about:blank")
        page.requests()
        page.complaints()
        page.sign_in()
        opened.append(page)
        return page

    yield open_one
    for page in opened:
        foreign = [
            url for url in page.requests() if not url.startswith((page.base_url, "about:", "blob:", "data:", "chrome:"))
        ]
        refused = [each for each in page.complaints() if "Content Security Policy" in each or "TypeError" in each]
        assert (foreign, refused) == ([], [])
        # The console keeps its list of uploads when it is left.
        page.run("sessionStorage.clear(); addEventListener('pagehide', () => sessionStorage.clear())")
