"""What people do in the console, in a real browser: add files, find out why some failed, search, ask, delete."""

import json
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.installations import Installation, wait_until
from tests.conftest import UNLIMITED, MakeInstallation
from tests.console.browsers import ASK, HOME, OpenPage, bucket_place, skip_without_browser
from tests.samples import make_corrupt_pdf

skip_without_browser()

GUIDE = """# Guide {n}

## Parental leave

Parents may take {weeks} weeks of leave in the harbour of number {n}. The team lead has to know four weeks before.

## Travel

Trains are preferred over flights below {n} km.
"""
SHOWN_BY_SEARCH = "Parents may take 14 weeks of leave"


@pytest.fixture(scope="module")
def handbook(shared_installation: Installation) -> Installation:
    """An installation whose bucket `handbook` has three guides."""
    folder = shared_installation.root / "guides"
    folder.mkdir()
    for n in range(4, 7):
        (folder / f"guide-{n}.md").write_text(GUIDE.format(n=n, weeks=n + 10))
    assert shared_installation.svc("upload", str(folder), "-b", "handbook").exit == 0
    with shared_installation.client() as client:
        (found,) = client.get("/v1/buckets/handbook/sources?q=guide-4").json()["sources"]
        assert client.patch(f"/v1/sources/{found['id']}", json={"tags": ["leave, paid"]}).status_code == 200
    return shared_installation


@pytest.fixture
def fixed(make_installation: MakeInstallation) -> Iterator[Installation]:
    """An installation that keeps its address when it is started again."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    yield make_installation("fixed", SVC_LISTEN=f"127.0.0.1:{port}", **UNLIMITED).start()


def make_files(folder: Path, good: int, broken: int, empty: int) -> list[Path]:
    folder.mkdir()
    contents = {f"note-{n:03}.txt": f"The quay number {n} is grey.\n".encode() for n in range(good)}
    contents |= {f"broken-{n}.pdf": make_corrupt_pdf() for n in range(broken)}
    contents |= {f"empty-{n}.txt": b"" for n in range(empty)}
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return sorted(folder.iterdir())


def test_files_of_two_packs_are_added_and_those_that_fail_say_why(
    fixed: Installation, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(fixed)
    page.sees("No buckets yet")
    page.type("#slug", "docs")
    page.click("Create")
    page.sees("This bucket is empty.")
    make_files(tmp_path / "files", 108, 8, 4)
    page.drop(".drop", tmp_path / "files")
    page.sees("12 failed, 108 of 120 files ready", "document unreadable", "8 failed, 108 ready", timeout_s=90)
    page.sees("The PDF is damaged", "empty-0.txt")
    # A summary is never better than what it sums up, and a reload keeps the list of the files.
    page.reload()
    page.sees("12 failed, 108 of 120 files ready", "8 failed, 108 ready")
    page.open(HOME)
    page.sees("8 failed, 108 ready")
    # The reason is one click away from the first view, and a source that has it two more.
    page.click("docs")
    page.sees("The PDF is damaged")
    page.click("Show them")
    page.sees("8 matches")
    page.click("broken-0.pdf", "tbody a")
    page.sees("files/broken-0.pdf", "document unreadable", "The PDF is damaged")
    page.click("Try again")
    page.sees("document unreadable")


def test_daemon_that_is_killed_and_started_again_is_shown_as_away_and_then_live(
    fixed: Installation, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(fixed)
    fixed.svc("bucket", "create", "docs")
    page.open(bucket_place("docs"))
    page.choose_files(make_files(tmp_path / "files", 2, 3, 0))
    page.sees("3 failed, 2 of 5 files ready", "3 failed, 2 ready")
    fixed.kill()
    page.sees("Not live", "3 failed, 2 ready")
    page.click("Search")
    page.sees("The service does not answer.", "svc daemon start")
    # As if the failures had been passing ones.
    with closing(sqlite3.connect(fixed.files.state)) as state, state:
        state.execute("UPDATE sources SET error = json_set(error, '$.retryable', json('true')) WHERE status = 'failed'")
    fixed.start()
    # The view comes by itself.
    page.find("#q")
    page.sees("Live")
    page.run("history.back()")
    page.click("Retry 3")
    page.sees("3 sources will be tried again.")
    page.reload()
    page.sees("3 failed")
    page.misses("Retry 3")
    page.sees("3 failed, 2 ready")


def test_upload_goes_on_after_the_daemon_was_killed(fixed: Installation, open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(fixed)
    fixed.svc("bucket", "create", "docs")
    page.open(bucket_place("docs"))
    paths = [tmp_path / f"large-{n}.txt" for n in range(3)]
    for n, path in enumerate(paths):
        path.write_text(f"The umber quay {n} was built of grey stone.\n" + " " * 8_000_000)
    # The first response is cut off in its middle, too.
    page.run(
        "const send = fetch, cut = new ReadableStream({start: (each) => each.error(new TypeError('cut off'))});"
        "fetch = async (path, ...rest) =>"
        " path.endsWith('/batches') && !cut.locked ? new Response(cut) : send(path, ...rest)"
    )
    page.choose_files(paths)
    page.sees("being sent")
    wait_until(lambda: any(fixed.part_sizes().values()), "some bytes have arrived")
    fixed.crash()
    page.sees("3 of 3 files ready")
    fixed.assert_intact()


def test_reload_in_the_middle_of_an_upload_says_what_was_not_sent(
    fixed: Installation, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(fixed)
    fixed.svc("bucket", "create", "docs")
    page.open(bucket_place("docs"))
    paths = make_files(tmp_path / "files", 3, 0, 0)
    # What is never answered is never sent.
    page.run(
        "const send = fetch;"
        "fetch = (path, ...rest) => path.includes('/storage/') ? new Promise(() => {}) : send(path, ...rest)"
    )
    page.choose_files(paths)
    page.sees("being sent")
    page.reload()
    page.sees("3 failed, 0 of 3 files ready", "Add it again")
    page.choose_files(paths)
    page.sees("3 failed, 3 of 6 files ready", "3 ready")
    # What was sent before is not sent again.
    page.click("Clear the list")
    page.misses("of 6 files")


def test_search_leads_to_the_place_in_the_text(handbook: Installation, open_page: OpenPage) -> None:
    page = open_page(handbook)
    page.click("Search")
    page.type("#q", "parents 14 weeks\n")
    page.sees(SHOWN_BY_SEARCH, "Has the words")
    page.reload()
    page.sees(SHOWN_BY_SEARCH)
    page.click("guide-4.md", ".hits a")
    page.find(".hit mark", "Parents")
    assert page.run("return document.querySelector('.hit').getBoundingClientRect().top < innerHeight")
    page.reload()
    page.find(".hit mark", "Parents")
    page.type("#would", "flights and trains\n")
    page.sees("Yes: result")
    page.run("history.back()")
    page.sees("Has the words", SHOWN_BY_SEARCH)
    assert "14" in page.place
    # Of two guides that have the same words, one has a tag with a comma.
    page.open("#/search?q=trains")
    page.sees("guide-5.md", "guide-6.md")
    page.click("leave, paid", ".hits .chip")
    page.sees("Tag: leave, paid", "guide-4.md")
    page.misses("guide-6.md")
    page.click("Tag: leave, paid")
    page.sees("guide-6.md")


def test_answer_shows_that_its_quote_is_proven_and_opens_it_at_its_place(
    handbook: Installation, open_page: OpenPage
) -> None:
    page = open_page(handbook)
    page.open(ASK)
    page.type("#question", "How many weeks of leave may parents take in the harbour of number 4?\n")
    # A reload in the middle keeps the question.
    page.reload()
    page.click("Ask", "button")
    page.find(".state.ok", "proven")
    assert "not proven" not in page.text
    page.click("[1]", ".cite")
    page.find("aside mark", "weeks of leave")
    page.reload()
    page.find(".state.ok", "proven")
    # A kept answer proves nothing by itself.
    page.run("sessionStorage['svc.answer'] = sessionStorage['svc.answer'].replaceAll('14 weeks', '15 weeks')")
    page.reload()
    page.find(".state.bad", "not proven: the source does not contain these words")
    page.type("#question", "What does the zebra eat on Mondays?\n")
    page.sees("the sources don't answer this")


def test_sources_are_filtered_sorted_and_deleted_after_a_preview(handbook: Installation, open_page: OpenPage) -> None:
    page = open_page(handbook)
    page.open(bucket_place("handbook", "?q=guide-6"))
    page.sees("1 match")
    page.misses("guide-5.md")
    page.type("input[type=search]", "guide")
    page.sees("3 matches")
    page.click("Title", "thead button")
    titles = "return [...document.querySelectorAll('.long tbody th a')].map((each) => each.textContent.slice(-10))"
    wait_until(lambda: page.run(titles) == ["guide-4.md", "guide-5.md", "guide-6.md"], "they are sorted by title")
    assert "sort=title" in page.place
    for answer in ("a reload", "Cancel", "Delete 1 source"):
        if not (box := page.find("input[aria-label*='guide-5.md']")).is_selected():
            box.click()
        page.click("Delete…")
        page.sees("Delete 1 source?", "They are deleted for good, with their stored files.", "guide-5.md")
        page.reload() if answer == "a reload" else page.click(answer, "dialog button")
        page.misses("Delete 1 source?")
        page.sees("guide-6.md", *(() if answer == "Delete 1 source" else ("guide-5.md",)))
    page.misses("guide-5.md")
    assert [
        each["title"] for each in json.loads(handbook.svc("source", "ls", "-b", "handbook", "--json").stdout)["sources"]
    ] == ["guides/guide-4.md", "guides/guide-6.md"]
    page.open(HOME)
    page.sees("2 ready")


def test_new_tab_gets_the_key_of_an_open_one_and_signing_out_ends_both(
    handbook: Installation, open_page: OpenPage
) -> None:
    page = open_page(handbook)
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.open(bucket_place("handbook"))
    page.sees("guide-4.md")
    page.click("Sign out")
    page.sees("You have signed out.")
    page.driver.close()
    page.driver.switch_to.window(first)
    page.sees("You signed out in another tab.", "svc console")
    page.type("#key", handbook.key + "\n")
    page.sees("handbook", "may read")


def test_rebuild_takes_all_from_ready_until_it_is_done(
    fixed: Installation, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(fixed)
    fixed.svc("upload", *map(str, make_files(tmp_path / "files", 40, 0, 0)), "-b", "docs")
    page.sees("40 ready", "all ready")
    team = fixed.operate("team", "ls", "--json").json["teams"][0]["id"]
    assert fixed.operate("team", "rebuild", team).exit == 0
    # What is asked meanwhile is answered when that can be done in full.
    page.click("Search")
    page.type("#q", "grey quay number 7\n")
    page.sees("note-007.txt", "Has the words")
    page.click("Buckets")
    page.sees("40 ready", "all ready")
