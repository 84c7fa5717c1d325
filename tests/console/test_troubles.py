"""What the console does when files, tabs, addresses, keys or the service are not as they should be."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.installations import Installation, wait_until
from tests.console.browsers import HOME, OpenPage, Page, bucket_place, skip_without_browser

skip_without_browser()

#: Holds back the bytes of uploads until `window.go` is set, and counts how often the list of them is kept.
HOLD = """window.go = false; window.kept = 0;
    const send = fetch, keep = Storage.prototype.setItem;
    fetch = async (path, ...rest) => {
        while (!go && String(path).includes("/storage/")) await new Promise((resolve) => setTimeout(resolve, 20));
        return send(path, ...rest);
    };
    Storage.prototype.setItem = function (...given) { kept++; return keep.apply(this, given); };"""
#: Drops a folder whose second entry, and whose folder within, can't be read.
DROP = """const file = (name) => ({name, isFile: true, file: (take, fail) =>
        name.startsWith("closed") ? fail(new DOMException("no", "NotReadableError")) : take(new File(["quay"], name))});
    const folder = (name, ...entries) => ({name, createReader: () => ({readEntries: (take, fail) =>
        name === "locked" ? fail(new DOMException("no", "NotFoundError")) : take(entries.splice(0))})});
    const dropped = folder("papers", file("open.txt"), file("closed.txt"), folder("locked"), file("last.txt"));
    const event = new Event("drop", {bubbles: true, cancelable: true});
    event.dataTransfer = {types: ["Files"], items: [{webkitGetAsEntry: () => dropped}]};
    document.querySelector(".drop").dispatchEvent(event);"""


@pytest.fixture(scope="module")
def docs(shared_installation: Installation) -> Installation:
    """An installation with a bucket `docs`."""
    assert shared_installation.svc("bucket", "create", "docs").exit == 0
    return shared_installation


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[list[Path]]:
    """Files of a folder, each with other content."""
    found = [tmp_path / f"quay-{n}.txt" for n in range(4)]
    for path in found:
        path.write_text(f"The quay of {path} is grey.\n" * 100)
    yield found


def open_docs(open_page: OpenPage, installation: Installation) -> Page:
    """The bucket `docs`, without what earlier tests have added to the list of uploads."""
    page = open_page(installation)
    page.open(bucket_place("docs"))
    page.find(".drop")
    return page


def test_files_that_change_while_they_are_sent_are_stored_as_they_were_added(
    docs: Installation, open_page: OpenPage, paths: list[Path]
) -> None:
    page = open_docs(open_page, docs)
    page.run(HOLD)
    page.choose_files(paths)
    page.sees("being sent")
    paths[1].unlink()
    paths[2].write_text("longer " * 1000)
    page.run("go = true")
    page.sees("4 of 4 files ready")
    # The list is kept from time to time, not with each file.
    assert page.run("return kept") < 10


def test_what_cannot_be_read_is_named_and_the_rest_is_sent(docs: Installation, open_page: OpenPage) -> None:
    page = open_docs(open_page, docs)
    page.run(DROP)
    page.sees("2 failed, 2 of 4 files ready", "papers/closed.txt", "papers/locked", "It can't be read.")


def test_upload_goes_on_when_the_tab_s_storage_is_full(
    docs: Installation, open_page: OpenPage, paths: list[Path]
) -> None:
    page = open_docs(open_page, docs)
    page.run(
        "for (let size = 0, step = 2 ** 23; step >= 1; step /= 2)"
        "try { sessionStorage.filler = 'x'.repeat(size + step); size += step } catch {}"
    )
    page.choose_files(paths)
    page.sees("4 of 4 files ready")


def test_copy_of_a_tab_leaves_the_upload_to_the_first(
    docs: Installation, open_page: OpenPage, paths: list[Path]
) -> None:
    page = open_docs(open_page, docs)
    first = page.driver.current_window_handle
    page.run(HOLD)
    page.choose_files(paths)
    page.sees("being sent")
    wait_until(lambda: "bat_" in page.run("return sessionStorage['svc.uploads'] || ''"), "the batch is noted")
    page.run("window.open(location.href)")
    copy = next(each for each in page.driver.window_handles if each != first)
    page.driver.switch_to.window(copy)
    page.sees("4 failed, 0 of 4 files ready")
    page.driver.close()
    page.driver.switch_to.window(first)
    page.run("go = true")
    page.sees("4 of 4 files ready")


def test_service_that_takes_nothing_says_why_while_an_upload_waits(
    docs: Installation, open_page: OpenPage, paths: list[Path]
) -> None:
    page = open_docs(open_page, docs)
    page.run(
        "const send = fetch; window.refusal = {error: {message: 'The disk is full.', retryable: true, details: {}}};"
        "fetch = async (path, ...rest) => window.refusal && path.endsWith('/batches')"
        "? new Response(JSON.stringify(refusal), {status: 503}) : send(path, ...rest)"
    )
    page.choose_files(paths)
    page.sees("being sent", "The disk is full.")
    page.run("refusal = null")
    page.sees("4 of 4 files ready")
    assert "The disk is full." not in page.text


def test_service_that_is_silent_is_not_called_live(docs: Installation, open_page: OpenPage) -> None:
    page = open_page(docs)
    assert docs.pid is not None
    os.kill(docs.pid, signal.SIGSTOP)
    try:
        # As if three heartbeats had been missed.
        page.run("const now = performance.now.bind(performance); performance.now = () => now() + 45000")
        page.sees("Not live: the service does not answer.")
    finally:
        os.kill(docs.pid, signal.SIGCONT)
    page.sees("Live")


def test_address_that_cannot_be_decoded_says_so_and_leads_on(docs: Installation, open_page: OpenPage) -> None:
    page = open_page(docs)
    for place in ("#/b/%", "#/%E0%A4%A/x"):
        page.open(place)
        page.sees("URI malformed", "Sign out")
        page.click("Buckets")
        page.sees("docs")


def test_filter_that_comes_too_late_does_not_change_the_address_of_the_next_view(
    docs: Installation, open_page: OpenPage
) -> None:
    page = open_docs(open_page, docs)
    page.run(
        "const words = document.querySelector('.words'); words.value = 'late';"
        "words.dispatchEvent(new Event('input')); location.hash = '#/search'"
    )
    page.find("#q")
    page.driver.execute_async_script("setTimeout(arguments[0], 400)")
    assert page.place == "#/search"


@pytest.mark.parametrize("is_own", [True, False])
def test_signing_out_ends_the_console_s_own_key_and_never_one_that_was_pasted(
    docs: Installation, open_page: OpenPage, is_own: bool
) -> None:
    """Whatever the key may do, and also if somebody has called it `console`."""
    preset = "read" if is_own else "admin"
    key = docs.svc("key", "create", "console", "--preset", preset, "--json").json["key"]
    page = open_page(docs)
    page.click("Sign out")
    page.sees("You have signed out.")
    if is_own:
        with docs.client(Authorization=f"Bearer {key}") as client:
            code = client.post("/v1/console/sessions").raise_for_status().json()["code"]
        page.open(f"#code={code}")
    else:
        page.type("#key", key + "\n")
    page.sees("Live", "This key (console) may read, search, ask")
    assert ("may read, search, ask in all buckets" in page.text) == is_own
    used = page.run("return JSON.parse(sessionStorage['svc.key']).key")
    page.click("Sign out")
    page.sees("You have signed out.")
    with docs.client(Authorization=f"Bearer {used}") as client:
        assert (client.get("/v1/limits").status_code, used == key) == ((401, False) if is_own else (200, True))
    page.open(HOME)
    page.sees("Sign in")
