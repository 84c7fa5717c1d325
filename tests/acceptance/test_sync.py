"""`svc sync` in daily use: what is sent, what is not, and that every file gets a true word."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.calls import search
from tests.acceptance.holding_proxies import holding
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.sync_folders import (
    BUCKET,
    assert_equal,
    count_requests,
    counts,
    fill,
    forget,
    held,
    items,
    sync,
    titles,
    write,
)

#: Names that sync brings into the bucket as they are.
FINE_NAMES = [
    "emoji 😀.md",
    f"{'x' * 252}.md",
    "Case.md",
    "case.md",
    " lead.md",
    "trail.md ",
    "two  spaces.md",
    "back\\slash.md",
    'q?*<>|".md',
    "%41.md",
    "nbsp\u00a0.md",
    "ﬁ.md",
    "un\u0378assigned.md",
    "\u0958.md",
    "~$lock.md",
]


@pytest.fixture
def docs(installation: Installation) -> Path:
    folder = installation.root / "docs"
    fill(folder, 12)
    assert counts(sync(installation)) == {"created": 12}
    return folder


def _ingest_requests(installation: Installation) -> int:
    asked = count_requests(installation)
    return sum(number for name, number in asked.items() if name.split()[0] in {"POST", "PUT", "PATCH", "DELETE"})


def test_a_second_run_asks_for_two_things_and_changes_nothing(installation: Installation, docs: Path) -> None:
    before = count_requests(installation)
    finished = sync(installation)
    assert (finished.exit, counts(finished), finished.json["items"]) == (0, {"unchanged": 12}, [])
    after = count_requests(installation)
    # The log is written as answers go out.
    asked = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
    assert not any(name.split()[0] != "GET" for name in asked), asked
    assert_equal(installation, docs)


def test_changed_new_and_gone_files_make_bucket_and_folder_equal(installation: Installation, docs: Path) -> None:
    write(docs, "000/01.md", "Other words altogether.")
    write(docs, "new/place.md", "New words.")
    (docs / "000" / "02.md").unlink()
    finished = sync(installation, "--prune", "detach")
    assert counts(finished) == {"created": 1, "updated": 1, "detached": 1, "unchanged": 10}
    assert finished.json["bytes_sent"] == len("Other words altogether.") + len("New words.")
    assert_equal(installation, docs)


def test_moving_files_sends_no_byte(installation: Installation, docs: Path) -> None:
    ids = {source["id"] for source in held(installation)}
    (docs / "000").rename(docs / "renamed")
    (docs / "renamed" / "05.md").rename(docs / "five.md")
    finished = sync(installation, "--prune", "detach")
    assert (counts(finished), finished.json["bytes_sent"]) == ({"moved": 12}, 0)
    assert {source["id"] for source in held(installation)} == ids
    assert_equal(installation, docs)
    with installation.client() as client:
        (hit,) = search(client, "wren5", BUCKET)
    assert hit["title"] == "five.md"
    assert counts(sync(installation)) == {"unchanged": 12}


def test_files_that_swap_their_names_end_right(installation: Installation, docs: Path) -> None:
    one, two, aside = docs / "000/01.md", docs / "000/02.md", docs / "aside"
    one.rename(aside)
    two.rename(one)
    aside.rename(two)
    assert sync(installation, "--prune", "detach").exit == 0
    assert_equal(installation, docs)


def test_a_fresh_clone_uploads_nothing_and_may_prune(installation: Installation, docs: Path) -> None:
    shutil.copytree(docs, installation.root / "clone")
    (installation.root / "clone" / "000" / "03.md").unlink()
    forget(installation)
    words = ("--name", "docs", "--prune", "detach")
    finished = sync(installation, *words, folder="clone")
    assert (finished.exit, counts(finished)) == (0, {"detached": 1, "unchanged": 11})
    assert finished.json["bytes_sent"] == 0
    assert_equal(installation, installation.root / "clone")


def test_a_lost_or_damaged_index_is_made_again_from_the_bucket(installation: Installation, docs: Path) -> None:
    forget(installation)
    lost = sync(installation)
    assert (lost.exit, counts(lost), lost.json["bytes_sent"]) == (0, {"unchanged": 12}, 0)
    (index,) = (installation.root / "state" / "sync").glob("*.db")
    index.write_bytes(b"no database at all" * 1000)
    damaged = sync(installation)
    assert (damaged.exit, counts(damaged), damaged.json["bytes_sent"]) == (0, {"unchanged": 12}, 0)
    assert index.with_suffix(".damaged").exists()


def test_a_daemon_at_another_port_is_the_same_service(installation: Installation, docs: Path) -> None:
    installation.stop()
    installation.start()
    assert counts(sync(installation)) == {"unchanged": 12}
    assert len(list((installation.root / "state" / "sync").glob("*.db"))) == 1


def test_what_was_done_behind_its_back_is_mended(installation: Installation, docs: Path) -> None:
    by_title = {source["title"]: source["id"] for source in held(installation)}
    with installation.client() as client:
        client.delete(f"/v1/sources/{by_title['000/01.md']}").raise_for_status()
        client.patch(f"/v1/sources/{by_title['000/02.md']}", json={"title": "renamed.md"}).raise_for_status()
        client.delete(f"/v1/buckets/{BUCKET}/sources/{by_title['000/03.md']}").raise_for_status()
    finished = sync(installation, "--verify-remote", "--prune", "detach")
    assert (finished.exit, counts(finished)) == (0, {"created": 2, "moved": 1, "unchanged": 9})
    assert_equal(installation, docs)


def test_all_takes_each_mapping_and_a_missing_one_stops_only_itself(installation: Installation) -> None:
    for name in ("one", "three"):
        write(installation.root, f"{name}/a.md", f"Words of {name}.")
    tables = "\n".join(f'[[map]]\ndir = "{name}"' for name in ("one", "two", "three"))
    (installation.root / "svc.toml").write_text(f'bucket = "{BUCKET}"\n{tables}\n')
    finished = installation.svc("sync", "--all", "--json")
    assert finished.exit == 5
    told = {each["mapping"]: (each["counts"]["created"], each["exit_code"]) for each in finished.json["mappings"]}
    assert told == {"one": (1, 0), "two": (0, 5), "three": (1, 0)}
    assert len(titles(installation)) == 2
    (installation.root / "two").mkdir()
    assert installation.svc("sync", "--all", "--json").exit == 0


def test_odd_names_are_synced_or_listed_with_their_reason(installation: Installation) -> None:
    folder = installation.root / "docs"
    for name in FINE_NAMES:
        write(folder, name, f"Words of {name!r}.")
    for raw in (b"nfc-\xc3\xa9.md", b"nfc-e\xcc\x81.md", b"latin-\xe9.md", b"new\nline.md", b"zwj-\xe2\x80\x8d.md"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + raw)).write_bytes(b"Words of " + raw.hex().encode())
    (folder / "loop").symlink_to("..")
    (folder / "dangling.md").symlink_to("nowhere")
    os.mkfifo(folder / "fifo.md")
    (folder / "empty.md").touch()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(folder / "socket.md"))
    finished = sync(installation)
    reasons = {path: item["reason"] for path, item in items(finished).items() if item["action"] == "skipped"}
    assert finished.exit == 0
    assert reasons == {
        r"nfc-\xe9.md": "another file has this name, spelled with other code points",
        "latin-\udce9.md": "name is not UTF-8",
        "new\nline.md": "name holds an invisible character",
        "zwj-\u200d.md": "name holds an invisible character",
        "loop/": "link",
        "dangling.md": "link",
        "fifo.md": "not a regular file",
        "socket.md": "not a regular file",
        "empty.md": "empty",
    }
    assert counts(finished)["created"] == len(FINE_NAMES) + 1
    forget(installation)
    again = sync(installation)
    assert (again.exit, again.json["counts"]["unchanged"], again.json["bytes_sent"]) == (0, len(FINE_NAMES) + 1, 0)


def test_links_are_followed_on_request_and_never_in_a_circle(installation: Installation) -> None:
    folder = installation.root / "docs"
    write(folder, "real/a.md", "Words.")
    (folder / "alias").symlink_to("real")
    (folder / "real" / "loop").symlink_to("..")
    (folder / "out").symlink_to(installation.root)
    finished = sync(installation, "--follow-links")
    assert finished.exit == 0
    assert titles(installation) == ["alias/a.md", "real/a.md"]


def test_a_name_that_no_source_can_carry_is_refused_before_anything_is_done(installation: Installation) -> None:
    folder = installation.root / "docs"
    write(folder, "a.md", "Words.")
    for name in ("a\nb", "x" * 5000, " "):
        finished = sync(installation, "--name", name)
        assert (finished.exit, finished.json["error"]["code"]) == (2, "svc_usage")
    assert sync(installation).exit == 0


def test_two_syncs_at_once_are_one_and_a_refusal(installation: Installation) -> None:
    fill(installation.root / "docs", 30, 4000)
    port = int(installation.base_url.rpartition(":")[2])
    installation.environ["SVC_API_KEY"] = installation.key
    with holding(port, 20_000) as proxy:
        first = installation.spawn_svc("sync", "docs", "-b", BUCKET, "--json", "--base-url", proxy.url)
        assert proxy.holds.wait(60)
        second = sync(installation)
        first.kill()
        first.communicate()
    assert (second.exit, second.json["error"]["code"]) == (14, "svc_sync_running")
    assert sync(installation).exit == 0


def test_an_update_overtakes_one_that_is_not_ready(installation: Installation, docs: Path) -> None:
    for number in range(6):
        write(docs, "000/01.md", f"# Turn {number}\n\nThe word is plover{number}.")
        assert sync(installation, "--wait", "accepted").exit == 0
    assert sync(installation).exit == 0
    assert_equal(installation, docs)
    with installation.client() as client:
        assert [hit["title"] for hit in search(client, "plover5", BUCKET)] == ["000/01.md"]
        assert search(client, "plover4", BUCKET) == []


def test_a_failed_update_leaves_the_old_version_and_a_mended_one_replaces_it(
    installation: Installation, docs: Path
) -> None:
    good = (docs / "000" / "01.md").read_bytes()
    write(docs, "000/01.md", b"\0\1\2 no text")
    for sent in (11, 0):
        failed = sync(installation)
        assert (failed.exit, failed.json["counts"]["failed"], failed.json["bytes_sent"]) == (3, 1, sent)
    with installation.client() as client:
        assert [hit["title"] for hit in search(client, "wren1", BUCKET)] == ["000/01.md"]
    write(docs, "000/01.md", good + b"More.")
    assert sync(installation).exit == 0
    assert_equal(installation, docs)


def test_a_replaced_document_is_found_exactly_once_all_the_time(installation: Installation, docs: Path) -> None:
    write(docs, "turns.md", "# Turns\n\nThe heron stands in turn 0.")
    assert sync(installation).exit == 0
    stop, found = threading.Event(), []

    def ask() -> None:
        with installation.client() as client:
            while not stop.wait(0.1):
                hits = search(client, "heron", BUCKET)
                found.append([(hit["title"], hit["source_id"]) for hit in hits])

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for turn in range(1, 5):
            write(docs, "turns.md", f"# Turns\n\nThe heron stands in turn {turn}.")
            assert counts(sync(installation)) == {"updated": 1, "unchanged": 12}
    finally:
        stop.set()
        asking.join()
    assert len(found) >= 10
    assert {len(hits) for hits in found} == {1}
    assert len({hits[0][1] for hits in found}) > 1, "the document was replaced while it was asked for"


def test_a_file_that_never_holds_still_is_told_and_comes_when_it_does(installation: Installation) -> None:
    folder = installation.root / "docs"
    write(folder, "still.md", "Words that stay.")
    busy = write(folder, "busy.md", "x" * 200_000)
    stop = threading.Event()

    def scribble() -> None:
        with busy.open("r+b") as file:
            while not stop.is_set():
                file.seek(0)
                file.write(os.urandom(8).hex().encode())
                file.flush()

    scribbling = threading.Thread(target=scribble)
    scribbling.start()
    try:
        finished = sync(installation)
    finally:
        stop.set()
        scribbling.join()
    assert finished.exit == 3
    assert items(finished)["busy.md"]["error"]["code"] == "svc_file_unstable"
    assert titles(installation) == ["still.md"]
    assert sync(installation).exit == 0
    assert_equal(installation, folder)


def test_a_revoked_key_ends_it_with_its_own_code(installation: Installation, docs: Path) -> None:
    made = installation.svc("key", "create", "ci", "--preset", "ingest", "--json")
    assert made.exit == 0, made.stdout
    installation.environ["SVC_API_KEY"] = made.json["key"]
    assert sync(installation).exit == 0
    with installation.client() as client:
        client.delete(f"/v1/keys/{made.json['id']}").raise_for_status()
    write(docs, "new.md", "New words.")
    finished = sync(installation)
    assert (finished.exit, finished.json["error"]["code"]) == (4, "invalid_project_key")
    del installation.environ["SVC_API_KEY"]
    assert counts(sync(installation)) == {"created": 1, "unchanged": 12}


def test_a_state_folder_without_room_is_told_and_loses_nothing(installation: Installation) -> None:
    fill(installation.root / "docs", 300)
    assert sync(installation, "--dry-run").exit == 0
    # A limit on the size of files is what a full disk looks like to SQLite.
    words = [sys.executable, "-m", "svc_cli", "sync", "docs", "-b", BUCKET, "--json"]
    full = subprocess.run(
        ["/bin/sh", "-c", 'trap "" XFSZ; ulimit -f 64; exec "$@"', "sh", *words],
        env=installation.environ,
        cwd=installation.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert full.returncode == 2, full.stdout + full.stderr
    assert '"svc_file_refused"' in full.stdout
    assert "Traceback" not in full.stderr
    assert sync(installation).exit == 0
    assert_equal(installation, installation.root / "docs")


def test_a_state_folder_that_cannot_be_made_is_a_usage_error(installation: Installation) -> None:
    write(installation.root / "docs", "a.md", "Words.")
    (installation.root / "state").write_text("in the way")
    finished = sync(installation)
    assert (finished.exit, finished.json["error"]["code"]) == (2, "svc_file_refused")


def test_with_no_terminal_few_plain_lines_are_written(installation: Installation, large: bool) -> None:
    count = 10_000 if large else 400
    fill(installation.root / "docs", count)
    finished = installation.svc("sync", "docs", "-b", BUCKET)
    assert finished.exit == 0
    assert f"{count} files" in finished.stdout
    assert len(finished.stderr.splitlines()) <= 25
    assert "\x1b" not in finished.stdout + finished.stderr


def test_diff_tells_by_its_exit_code_and_changes_nothing(installation: Installation, docs: Path) -> None:
    assert sync(installation, verb="diff").exit == 0
    write(docs, "new.md", "New words.")
    (docs / "000" / "01.md").rename(docs / "one.md")
    before = held(installation)
    planned = sync(installation, verb="diff")
    assert (planned.exit, counts(planned)) == (10, {"created": 1, "moved": 1, "unchanged": 11})
    assert held(installation) == before
    assert counts(sync(installation)) == {"created": 1, "moved": 1, "unchanged": 11}


def test_ctrl_c_stops_cleanly_and_the_next_run_goes_on(installation: Installation) -> None:
    fill(installation.root / "docs", 250, 3000)
    installation.environ["SVC_API_KEY"] = installation.key
    port = int(installation.base_url.rpartition(":")[2])
    with holding(port, 300_000) as proxy:
        running = installation.spawn_svc("sync", "docs", "-b", BUCKET, "--json", "--base-url", proxy.url)
        assert proxy.holds.wait(60)
        running.send_signal(signal.SIGINT)
        wait_until(lambda: running.poll() is not None or _end(running), "the end of the sync", 90, every_s=2)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    finished = sync(installation)
    assert finished.exit == 0
    assert_equal(installation, installation.root / "docs")


def _end(running: "subprocess.Popen[Any]") -> bool:
    """Ctrl-C a second time, as somebody does who does not want to wait for a line that is dead."""
    running.send_signal(signal.SIGINT)
    return False


def test_a_file_of_mode_zero_is_synced_by_root_and_told_to_others(installation: Installation) -> None:
    folder = installation.root / "docs"
    path = write(folder, "secret.md", "Words.")
    path.chmod(0)
    finished = sync(installation)
    if os.geteuid() == 0:
        assert counts(finished) == {"created": 1}
    else:
        assert items(finished)["secret.md"]["error"]["code"] == "svc_file_unreadable"
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert sync(installation).exit == 0


def test_touching_files_reads_them_and_sends_nothing(installation: Installation, docs: Path) -> None:
    ago_ns = time.time_ns() - 10**10
    for path in docs.rglob("*.md"):
        os.utime(path, ns=(ago_ns, ago_ns))
    finished = sync(installation)
    assert (counts(finished), finished.json["bytes_sent"]) == ({"unchanged": 12}, 0)
