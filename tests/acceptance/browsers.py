"""A real browser without a window: opens a page, lets its script come to an end, and tells what the page then says."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fetch.servers import Exchange, serving

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Of the page's own clock, which stands still while a request is on its way.
SCRIPT_MS = 30_000
TIMEOUT_S = 120


def find_browser() -> str | None:
    """Its program, where one is installed."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def read_page(browser: str, url: str, folder: Path) -> str:
    """What stands in the page, as HTML, once its script has ended; the browser's files are kept in the folder."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]
    command = [browser, *flags, f"--virtual-time-budget={SCRIPT_MS}", f"--user-data-dir={folder / 'profile'}", url]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextmanager
def page_elsewhere(script: str) -> Iterator[str]:
    """The URL of a page with this script, on an origin of its own."""
    page = f"<!doctype html><title>x</title><body><pre></pre><script type=module>{script}</script></body>".encode()

    def answer(exchange: Exchange) -> None:
        exchange.answer(200, page, content_type="text/html; charset=utf-8")

    with serving(answer) as server:
        yield server.url("/", host="localhost")
