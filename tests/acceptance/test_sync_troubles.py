"""`svc sync` where something is odd: names, files that are none, a full disk, a key that ends."""

import os
import socket
import subprocess
import sys
import threading

from tests.acceptance.installations import Installation
from tests.acceptance.proxies import held
from tests.acceptance.sync_folders import (
    BUCKET,
    assert_equal,
    counts,
    fill,
    forget,
    items,
    sync,
    titles,
    write,
)

#: Names that sync brings into the bucket as they are.
FINE_NAMES = (
    *("emoji 😀.md", f"{'x' * 252}.md", "Case.md", "case.md", " lead.md", "trail.md ", "two  spaces.md"),
    *("back\\slash.md", 'q?*<>|".md', "%41.md", "nbsp\u00a0.md", "ﬁ.md", "un\u0378assigned.md", "\u0958.md"),
    "~$lock.md",
)
#: Of the first two, one is fine.
OTHER_NAMES = (
    *(b"nfc-\xc3\xa9.md", b"nfc-e\xcc\x81.md", b"latin-\xe9.md", b"new\nline.md", b"zwsp-\xe2\x80\x8b.md"),
    *(b" ", b"up\\..\\b.md"),
)


def test_odd_names_are_synced_or_listed_with_their_reason(installation: Installation) -> None:
    folder = installation.root / "docs"
    for name in (*FINE_NAMES, *map(os.fsdecode, OTHER_NAMES)):
        write(folder, name, f"Words of {name!r}.")
    (folder / "loop").symlink_to("..")
    (folder / "dangling.md").symlink_to("nowhere")
    os.mkfifo(folder / "fifo.md")
    (folder / "empty.md").touch()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(folder / "socket.md"))
    finished = sync(installation)
    reasons = {path: item["reason"] for path, item in items(finished).items() if item["action"] == "skipped"}
    assert reasons == {
        r"nfc-\xe9.md": "another file has this name, spelled with other code points",
        "latin-\udce9.md": "name is not UTF-8",
        "new\nline.md": "name holds an invisible character",
        "zwsp-\u200b.md": "name holds an invisible character",
        " ": "name is blank or a path",
        "up\\..\\b.md": "name is blank or a path",
        "loop/": "link",
        "dangling.md": "link",
        "fifo.md": "not a regular file",
        "socket.md": "not a regular file",
        "empty.md": "empty",
    }
    synced = len(FINE_NAMES) + 1
    assert (finished.exit, counts(finished)["created"]) == (0, synced)
    forget(installation)
    again = sync(installation)
    assert (again.exit, again.json["counts"]["unchanged"], again.json["bytes_sent"]) == (0, synced, 0)


def test_links_are_followed_on_request_and_never_in_a_circle(installation: Installation) -> None:
    folder = installation.root / "docs"
    write(folder, "real/a.md", "Words.")
    (folder / "alias").symlink_to("real")
    (folder / "real" / "loop").symlink_to("..")
    (folder / "out").symlink_to(installation.root)
    assert sync(installation, "--follow-links").exit == 0
    assert titles(installation) == ["alias/a.md", "real/a.md"]


def test_what_no_source_and_no_state_folder_can_carry_is_refused_before_anything_is_done(
    installation: Installation,
) -> None:
    write(installation.root / "docs", "a.md", "Words.")
    (installation.root / "state").write_text("in the way")
    assert sync(installation).failure == (2, "svc_file_refused")
    (installation.root / "state").unlink()
    for name in ("a\nb", "x" * 5000, " "):
        assert sync(installation, "--name", name).failure == (2, "svc_usage"), name
    table = f'[[map]]\ndir = "docs"\nbucket = "{BUCKET}"\n'
    write(installation.root, "svc.toml", f"{table}tags = {[f'tag{number}' for number in range(21)]}\n")
    assert "21 tags are too many" in sync(installation).json["error"]["message"]
    write(installation.root, "svc.toml", f'{table}tags = ["one"]\n')
    assert counts(sync(installation)) == {"created": 1}


def test_two_syncs_at_once_are_one_and_a_refusal(installation: Installation) -> None:
    fill(installation.root / "docs", 30, 4000)
    with held(installation, 20_000, "sync", "docs", "-b", BUCKET):
        assert sync(installation).failure == (14, "svc_sync_running")
    assert sync(installation).exit == 0


def test_a_file_that_never_holds_still_is_reported_and_comes_when_it_does(installation: Installation) -> None:
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
    assert (finished.exit, items(finished)["busy.md"]["error"]["code"]) == (3, "svc_file_unstable")
    assert titles(installation) == ["still.md"]
    assert sync(installation).exit == 0
    assert_equal(installation, folder)


def test_a_revoked_key_ends_it_with_its_own_code(installation: Installation) -> None:
    docs = installation.root / "docs"
    fill(docs, 12)
    made = installation.svc("key", "create", "ci", "--preset", "ingest", "--json").json
    installation.svc("bucket", "create", BUCKET)
    installation.environ["SVC_API_KEY"] = made["key"]
    assert sync(installation).exit == 0
    with installation.client() as client:
        client.delete(f"/v1/keys/{made['id']}").raise_for_status()
    write(docs, "new.md", "New words.")
    assert sync(installation).failure == (4, "invalid_project_key")
    del installation.environ["SVC_API_KEY"]
    assert counts(sync(installation)) == {"created": 1, "unchanged": 12}


def test_a_state_folder_without_room_is_reported_and_loses_nothing(installation: Installation) -> None:
    docs = installation.root / "docs"
    fill(docs, 120)
    assert sync(installation, "--dry-run").exit == 0
    # A limit on the size of files is what a full disk looks like to SQLite.
    words = [sys.executable, "-m", "svc_cli", "sync", "docs", "-b", BUCKET, "--json"]
    full = subprocess.run(
        ["/bin/sh", "-c", 'trap "" XFSZ; ulimit -f 40; exec "$@"', "sh", *words],
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
    assert_equal(installation, docs)
