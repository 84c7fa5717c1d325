"""What the console does when files, tabs, addresses, keys or the service are not as they should be."""

import hashlib
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
#: Fills what is left of the tab's storage.
FILL = """for (let size = 0, step = 2 ** 23; step >= 1; step /= 2)
    try { sessionStorage.filler = "x".repeat(size + step); size += step } catch {}"""
#: Holds back the numbers of a bucket for as long as its list takes.
SLOW_NUMBERS = """const send = fetch;
    fetch = async (path, ...rest) => {
        if (path.includes("members=false")) await new Promise((resolve) => setTimeout(resolve, 700));
        return send(path, ...rest);
    };"""
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
    page.run(FILL)
    page.choose_files(paths)
    page.sees("4 of 4 files ready")


def test_answer_is_shown_when_the_tab_s_storage_is_full(
    docs: Installation, open_page: OpenPage, paths: list[Path]
) -> None:
    page = open_docs(open_page, docs)
    page.choose_files(paths[:1])
    page.sees("1 of 1 file ready")
    page.run(FILL)
    page.click("Ask")
    page.type("#question", "What does the zebra eat on Mondays?\n")
    page.sees("the sources don't answer this")


def test_file_that_the_bucket_has_under_its_title_is_not_stored_again(
    docs: Installation, open_page: OpenPage, paths: list[Path]
) -> None:
    page = open_docs(open_page, docs)
    for clear in (True, False):
        page.choose_files(paths)
        page.sees("4 of 4 files ready")
        if clear:
            page.click("Clear the list")
            page.misses("4 of 4 files ready")
    with docs.client() as client:
        for path in paths:
            same = {"title": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            assert len(client.get("/v1/buckets/docs/sources", params=same).json()["sources"]) == 1


def test_files_of_which_none_is_taken_each_say_why(docs: Installation, open_page: OpenPage, tmp_path: Path) -> None:
    page = open_docs(open_page, docs)
    empty = [tmp_path / f"empty-{n}.txt" for n in range(2)]
    for path in empty:
        path.touch()
    page.choose_files(empty)
    page.sees("2 failed, 0 of 2 files ready", "empty-0.txt has no bytes.", "empty-1.txt has no bytes.")
    assert "files.0" not in page.text


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


def make_sources(installation: Installation, slug: str, count: int) -> list[str]:
    """Make a bucket with questions, which need no reading; returns their ids."""
    with installation.client() as client:
        client.put(f"/v1/buckets/{slug}").raise_for_status()
        asked = [{"question": f"Which quay is number {n}?", "answer": f"Quay {n}."} for n in range(count)]
        made = [client.post(f"/v1/buckets/{slug}/qa", json=each).raise_for_status().json()["id"] for each in asked]
        wait_until(
            lambda: client.get(f"/v1/buckets/{slug}").json()["bucketStore"]["status"] == "active", "all are ready"
        )
    return made


def test_number_of_sources_is_that_of_the_bucket_and_not_of_the_rows_read(
    docs: Installation, open_page: OpenPage
) -> None:
    make_sources(docs, "many", 201)
    page = open_docs(open_page, docs)
    page.run(SLOW_NUMBERS)
    page.run(f"location.hash = '{bucket_place('many')}'")
    page.sees("201 sources")


def test_what_is_deleted_elsewhere_is_no_longer_shown(docs: Installation, open_page: OpenPage) -> None:
    ids = make_sources(docs, "leaving", 2)
    page = open_docs(open_page, docs)
    page.open(f"#/s/{ids[0]}")
    page.find(".state.ok", "ready")
    with docs.client() as client:
        client.delete(f"/v1/sources/{ids[0]}").raise_for_status()
        page.sees(f"There is no source '{ids[0]}'.")
        page.misses("ready")
        page.open(bucket_place("leaving"))
        page.sees("1 source")
        client.delete("/v1/buckets/leaving", params={"force": "true"}).raise_for_status()
    page.sees("There is no bucket 'leaving'.")
    assert page.driver.title.startswith("There is no bucket")


def test_chosen_sources_are_deleted_though_one_of_them_is_gone(docs: Installation, open_page: OpenPage) -> None:
    ids = make_sources(docs, "chosen", 3)
    page = open_docs(open_page, docs)
    page.open(bucket_place("chosen"))
    page.sees("3 sources")
    page.find("thead input").click()
    page.click("Delete…")
    page.sees("Delete 3 sources?")
    with docs.client() as client:
        client.delete(f"/v1/sources/{ids[1]}").raise_for_status()
    page.click("Delete 3 sources", "dialog button")
    page.sees("Deleted 3 sources.", "This bucket is empty.")


def test_dialog_ends_with_the_view_that_asked(docs: Installation, open_page: OpenPage) -> None:
    make_sources(docs, "asked", 1)
    page = open_docs(open_page, docs)
    page.open(bucket_place("asked"))
    page.find("tbody input").click()
    page.click("Delete…")
    page.sees("Delete 1 source?")
    page.run("location.hash = '#/search'")
    page.find("#q")
    page.misses("Delete 1 source?")


def test_key_that_may_not_read_can_search_and_ask(docs: Installation, open_page: OpenPage, paths: list[Path]) -> None:
    page = open_docs(open_page, docs)
    page.choose_files(paths[:1])
    page.sees("1 of 1 file ready")
    words = ["key", "create", "searcher", "--can", "knowledge:search", "--can", "answer:create", "--json"]
    key = docs.svc(*words).json["key"]
    page.click("Sign out")
    page.type("#key", key + "\n")
    page.click("Search")
    page.type("#q", "grey quay\n")
    page.find(".hits blockquote", "is grey")
    page.click("Ask")
    page.type("#question", "What does the zebra eat on Mondays?\n")
    page.sees("the sources don't answer this")


def test_what_another_key_has_sent_in_the_tab_is_not_listed(
    docs: Installation, open_page: OpenPage, paths: list[Path]
) -> None:
    page = open_docs(open_page, docs)
    page.choose_files(paths[:1])
    page.sees("1 of 1 file ready")
    page.click("Sign out")
    page.type("#key", docs.key + "\n")
    page.find(".drop")
    assert page.run("return document.querySelector('.uploads').hidden")
