"""A link that is put into a folder, or in its place, during or between runs makes nothing from elsewhere be sent."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from svc_cli.client.api import Client
from svc_cli.progress import Silent
from svc_cli.sync.mappings import Mapping
from svc_cli.sync.run_state import SyncOptions
from svc_cli.sync.syncs import sync as run_sync
from svc_cli.transfer.snapshots import Filters
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.sync_folders import BUCKET, counts, list_held, sync, titles, write
from tests.acceptance.watches import run_state, watching

#: The word of each file that must not be sent.
SECRET = "nightjar"


def is_stored(installation: Installation, word: str = SECRET) -> bool:
    """Whether the word is in any file of the data directory."""
    # Files and folders of the search index come and go.
    files = (Path(folder, name) for folder, _, names in os.walk(installation.root / "data") for name in names)
    return any(word.encode() in _read(path) for path in files)


def _read(path: Path) -> bytes:
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return b""


@pytest.fixture
def site(installation: Installation) -> Path:
    """The folder `site/docs`, which was synced, and is beside `foreign/docs`."""
    folder = installation.root / "site" / "docs"
    for name in ("a", "b"):
        write(folder, f"{name}.md", f"Own words of {name}.")
        write(installation.root / "foreign" / "docs", f"{name}.md", f"{SECRET} {name}")
    assert sync(installation, folder="site/docs").exit == 0
    return folder


@pytest.mark.parametrize("linked", ["site/docs", "site"])
def test_folder_that_has_become_a_link_is_synced_only_if_that_is_accepted(
    installation: Installation, site: Path, linked: str
) -> None:
    (installation.root / linked).rename(installation.root / "away")
    (installation.root / linked).symlink_to(installation.root / linked.replace("site", "foreign"))
    before = list_held(installation)
    for verb, words in (("sync", ("--prune", "detach")), ("diff", ()), ("sync", ("--dry-run",))):
        stopped = sync(installation, *words, folder="site/docs", verb=verb)
        assert stopped.failure == (11, "svc_safety_stop"), verb
        assert f"{linked} has become a symbolic link" in stopped.json["error"]["message"]
        assert "--accept-root" in stopped.json["error"]["hint"]
    assert (list_held(installation), is_stored(installation)) == (before, False)
    assert counts(sync(installation, "--accept-root", folder="site/docs")) == {"updated": 2}
    assert counts(sync(installation, folder="site/docs")) == {"unchanged": 2}, "the link is known now"
    assert is_stored(installation)


def test_watcher_of_a_folder_that_has_become_a_link_stops_until_it_is_flushed_by_name(
    installation: Installation, site: Path
) -> None:
    with watching(installation, "site/docs", "-b", BUCKET, "--name", "docs") as watch:
        site.rename(site.with_name("away"))
        site.symlink_to("../foreign/docs")
        watch.wait_for_state("troubled")
        write(site, "c.md", f"{SECRET} c")
        assert installation.svc("watch", "flush").exit == 11, "who names no folder accepts nothing"
        assert "--accept-root" in installation.svc("watch", "status").stdout
        state = run_state(installation, "docs")
        assert (state["error"]["code"], "svc watch flush docs" in state["error"]["hint"]) == ("svc_safety_stop", True)
        assert (titles(installation), is_stored(installation)) == (["a.md", "b.md"], False)
        assert installation.svc("watch", "flush", "docs").exit == 0
        assert (titles(installation), is_stored(installation)) == (["a.md", "b.md", "c.md"], True)
        assert run_state(installation, "docs")["error"] is None


#: The folder to watch, and the shell commands that deploy the release `old`, and then `new` in its place.
DEPLOYMENTS = {
    "folder": ("docs", "mkdir docs; cp -r old/. docs", "mv docs former; mv new docs"),
    "link": ("docs", "ln -s old docs", "ln -s new next; mv -T next docs"),
    "parent": ("now/docs", "mkdir 1 2; mv old 1/docs; ln -s 1 now", "mv new 2/docs; ln -s 2 next; mv -T next now"),
}


@pytest.mark.parametrize("kind", DEPLOYMENTS)
def test_watcher_follows_a_deployment_and_removes_nothing_in_the_first_sync_after_it(
    installation: Installation, kind: str
) -> None:
    folder, first, deploy = DEPLOYMENTS[kind]
    root = installation.root
    for release, names in (("old", ("same", "changed", "gone")), ("new", ("same", "changed", "added"))):
        for name in names:
            write(root / release, f"{name}.md", f"Words of {name}{release if name == 'changed' else ''}.")
    installation.run("sh", "-euc", first)
    with watching(installation, folder, "-b", BUCKET, "--prune", "detach", "--name", "docs") as watch:
        installation.run("sh", "-euc", deploy)
        watch.wait_for_item("created", "added.md")
        watch.wait_for_item("updated", "changed.md")
        wait_until(lambda: run_state(installation, "docs")["withheld"], "the deleted file to be withheld")
        assert [each["code"] for each in run_state(installation, "docs")["withheld"]] == ["folder_replaced"]
        assert titles(installation) == ["added.md", "changed.md", "gone.md", "same.md"]
        write(root / folder, "later.md", "Later words.")
        watch.wait_for_item("created", "later.md")
        assert run_state(installation, "docs")["error"] is None
        assert installation.svc("watch", "flush", "docs").exit == 0
        assert titles(installation) == ["added.md", "changed.md", "later.md", "same.md"]


def test_folder_that_is_replaced_by_a_link_during_a_sync_is_read_to_its_end_and_then_refused(
    installation: Installation, site: Path
) -> None:
    write(site, "0.bin", b"\0")  # reported first, before the other files are found
    (site / "a.md").write_text("Other own words.")
    mapping = Mapping(name="docs", folder=site, bucket=BUCKET)
    filters = Filters(extensions=frozenset({".md"}), max_bytes=10**6, max_path_characters=100)
    options = SyncOptions(max_tags=20, max_tag_characters=64, filters=filters, prune="detach")

    def swap(_: object) -> None:
        if not site.is_symlink():
            for folder in (site, installation.root / "foreign" / "docs"):
                (folder / "b.md").unlink()
            site.rename(site.with_name("away"))
            site.symlink_to("../foreign/docs")

    with Client(installation.base_url, installation.key) as svc_client:
        index_path = mapping.index_path(installation.root / "state", svc_client.service)
        report = run_sync(svc_client, mapping, options, index_path, Silent(), swap)
    assert (report.counts["updated"], report.counts["gone"], report.counts["detached"]) == (1, 1, 0)
    assert [each.cause for each in report.withheld] == ["folder_replaced"]
    assert any("replaced during the sync" in note for note in report.notes)
    assert not is_stored(installation)
    assert sync(installation, "--name", "docs", folder="site/docs").failure == (11, "svc_safety_stop")


def test_followed_links_are_synced_like_files_as_long_as_they_stay_inside(installation: Installation) -> None:
    folder = write(installation.root / "docs", "real/a.md", "Words of a.").parents[1]
    write(folder, "real/b.md", "Words of b.")
    write(installation.root / "foreign", "f.md", SECRET)
    for name, target in {"l.md": "real/a.md", "linked": "real", "abs.md": str(folder / "real" / "b.md")}.items():
        (folder / name).symlink_to(target)
    (folder / "away").symlink_to("../foreign")
    links = ("--follow-links", "--prune", "detach")
    assert counts(sync(installation, *links)) == {"created": 6, "skipped": 1}
    assert counts(sync(installation, *links)) == {"unchanged": 6, "skipped": 1}
    (folder / "l.md").unlink()
    (folder / "l.md").symlink_to("linked/b.md")
    (folder / "linked").unlink()
    (folder / "linked").symlink_to("../foreign")
    finished = sync(installation, *links)
    assert counts(finished) == {"detached": 2, "skipped": 3, "unchanged": 3}
    assert titles(installation) == ["abs.md", "l.md", "real/a.md", "real/b.md"]
