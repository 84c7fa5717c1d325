"""A real Chromium that a test drives through the console, and what it has asked for and complained about."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import pytest

from tests.acceptance.installations import PATIENCE_S, Installation, wait_until

T = TypeVar("T")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1200,900 --lang=en"""

#: Where the console is, by its views.
HOME, ASK = "#/", "#/ask"


def skip_without_browser() -> None:
    """Skip the whole file where there is no browser to drive."""
    pytest.importorskip("selenium", reason="selenium is not installed; the extra `test` brings it")
    if not (BROWSER and DRIVER):
        reason = "no Chromium with its driver is installed; docs/development.md says how to get them"
        pytest.skip(reason, allow_module_level=True)


class Page:
    """One tab, at the console of an installation."""

    def __init__(self, driver: Any, installation: Installation) -> None:
        self.driver = driver
        self.base_url = installation.base_url
        self._installation = installation

    def sign_in(self) -> str:
        """Open the console as `svc console` does; returns the address, which was used up."""
        with self._installation.client() as client:
            code = client.post("/v1/console/sessions").raise_for_status().json()["code"]
        url = f"{self.base_url}/console/#code={code}"
        self.driver.get("about:blank")
        self.driver.get(url)
        self.sees("Live")
        return url

    def open(self, place: str) -> None:
        """Open a view by its address, in a page that is loaded again."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.base_url}/console/{place}")

    def reload(self) -> None:
        self.driver.refresh()

    @property
    def text(self) -> str:
        return str(self.run("return document.body ? document.body.innerText : ''"))

    @property
    def place(self) -> str:
        """The fragment of the address."""
        return str(self.run("return location.hash"))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def sees(self, *texts: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait until the page shows all of these texts."""
        for text in texts:
            self._wait(lambda text=text: text in self.text, f"the page shows {text!r}", timeout_s)  # type: ignore[misc]

    def _wait(self, condition: Callable[[], T | None], what: str, timeout_s: float = PATIENCE_S) -> T:
        try:
            # Each look has the browser lay out the page.
            return wait_until(condition, what, timeout_s, every_s=0.05)
        except AssertionError as late:
            raise AssertionError(f"{late}; it shows:\n{self.text[:3000]}\n{self.complaints()}") from None

    def misses(self, text: str) -> None:
        """Wait until the page no longer shows a text."""
        self._wait(lambda: text not in self.text, f"the page no longer shows {text!r}")

    def find(self, selector: str, text: str = "") -> Any:
        """Wait for a shown element that has the text, and return it."""
        script = """const found = [...document.querySelectorAll(arguments[0])].filter((each) => each.checkVisibility()
            && each.textContent.includes(arguments[1])); return found[0] || null"""
        return self._wait(lambda: self.run(script, selector, text), f"{selector} with {text!r}")

    def click(self, text: str, selector: str = "a, button, summary") -> None:
        """Click a link or button by its words. It may be made again in between."""

        def try_click() -> bool:
            from selenium.common.exceptions import StaleElementReferenceException  # noqa: PLC0415 - may be missing

            try:
                self.find(selector, text).click()
            except StaleElementReferenceException:
                return False
            return True

        wait_until(try_click, f"a click on {text!r}")

    def type(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def choose_files(self, paths: Sequence[Path], label: str = "Add files") -> None:
        """Give files to the input behind a button, as its dialog does, once the button is shown."""
        script = "return document.querySelector(`.drop:not([hidden]) input[aria-label='${arguments[0]}']`)"
        field = self._wait(lambda: self.run(script, label), f"the input of {label!r}")
        field.send_keys("\n".join(map(str, paths)))

    def drop(self, selector: str, path: Path) -> None:
        """Drop a file or folder on an element, as from the file manager."""
        box = self.find(selector).rect
        where = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.driver.execute_cdp_cmd("Input.dispatchDragEvent", {"type": kind, **where, "data": data})

    def complaints(self) -> list[str]:
        """What the browser has logged since the last time: violations of the policy, errors of scripts."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that the page has asked for since the last time."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [each["params"] for each in messages if each["method"] == "Network.requestWillBeSent"]
        return [str(each["request"]["url"]) for each in sent]


def bucket_place(slug: str, query: str = "") -> str:
    return f"#/b/{quote(slug)}{query}"


@contextmanager
def browsing(profile: Path) -> Iterator[Any]:
    """Start a browser with a profile of its own."""
    from selenium import webdriver  # noqa: PLC0415 - may be missing
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


#: Opens the console of an installation in the browser of the file.
OpenPage = Callable[[Installation], Page]
