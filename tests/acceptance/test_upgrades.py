"""Upgrades of data directories complete even after kills, and data of a newer release is refused unchanged."""

import hashlib
import random
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from importlib.util import cache_from_source
from pathlib import Path

import pytest

import svc_daemon
from svc_daemon.extract.formats import READERS
from svc_daemon.offline.upgrading import upgrade
from svc_daemon.offline.verify import check_files
from svc_daemon.paths import DataFiles
from svc_daemon.store.migrations import FIRST, MIGRATIONS, copy_place, list_copies, list_pending
from tests.acceptance import newer_release
from tests.acceptance.backups import BACKUP, restore_backup, run_killed, unpack_backup
from tests.acceptance.calls import list_sources, search, take_in, upload, wait_ended
from tests.acceptance.installations import wait_until
from tests.acceptance.newer_release import COLOURS, add_colours
from tests.conftest import UNLIMITED, MakeInstallation
from tests.samples import make_docx, make_epub, make_mail, make_pdf, make_pptx

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]

#: How many lines an upgrade is killed at; with --large, all of them.
KILLS = 2
COUNTED = tuple(f"svc_daemon/{name}.py" for name in ("offline/upgrading", "store/migrations", "databases/sqlite"))
BUCKET = "handbook"
#: The migrations since the first schema, as the daemon has them.
LATER = list(MIGRATIONS)[1:]


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> str:
    """Add a migration to this process; return the module of `svc-daemon` with which others have it too."""
    monkeypatch.setitem(MIGRATIONS, COLOURS, add_colours)
    return newer_release.__name__


def lay_out(root: Path) -> DataFiles:
    """Create the data directory of a killed daemon of the first schema at `root`."""
    unpack_backup(root.parent / "kept")
    shutil.copytree(root.parent / "kept" / BACKUP, root, ignore=shutil.ignore_patterns("backup.json"))
    return DataFiles(root)


def dump(path: Path) -> tuple[list[str], list[str]]:
    """Return the database's content without the table of migrations, whose times vary, and the migrations' names."""
    with closing(sqlite3.connect(path)) as state:
        names = [row[0] for row in state.execute("SELECT name FROM _sqlite_migrations ORDER BY rowid").fetchall()]
        return [line for line in state.iterdump() if not line.startswith('INSERT INTO "_sqlite_migrations"')], names


def digest(root: Path) -> dict[str, str]:
    """Return the hash of each file except for logs and the database's shared memory, which has no data."""
    paths = [path for path in root.rglob("*") if path.is_file() and not path.name.endswith((".log", "-shm"))]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def kill_upgrades(files: DataFiles, large: bool) -> Iterator[DataFiles]:
    """Yield copies of this data directory, each left by an upgrade that was killed at another line."""
    draw, copied = random.Random(files.root.name), DataFiles(files.root.with_name("killed"))

    def fresh() -> DataFiles:
        shutil.rmtree(copied.root, ignore_errors=True)
        shutil.copytree(files.root, copied.root)
        return copied

    fresh()
    lines = run_killed(lambda: upgrade(copied), 0, COUNTED)
    for line in range(1, lines) if large else draw.sample(range(1, lines), KILLS):
        fresh()
        assert run_killed(lambda: upgrade(copied), line, COUNTED) == line
        yield copied


@pytest.mark.rule("upgrade.killed")
def test_upgrade_completes_after_a_kill_at_any_line(tmp_path: Path, newer: str, large: bool) -> None:
    before, files = lay_out(tmp_path / "data"), DataFiles(tmp_path / "whole")
    shutil.copytree(before.root, files.root)
    older, names = dump(before.state)
    assert [each.name for each in upgrade(files).pending] == [*LATER, COLOURS]
    whole = dump(files.state)
    assert whole[1] == [*names, *LATER, COLOURS]
    for killed in kill_upgrades(before, large):
        left = list_pending(killed.state)
        if not left:
            assert dump(copy_place(killed.state)) == (older, names)
        assert upgrade(killed).pending == left
        assert (dump(killed.state), dump(copy_place(killed.state))) == (whole, (older, names))
        verdict = check_files(killed, read_data=True, has_indexes=True)
        assert (verdict.problems, verdict.counts["blobs"], verdict.counts["parts"]) == ([], 3, 1)
        assert len(list_copies(killed.state)) == 1


@pytest.mark.parametrize("is_restored", [False, True])
def test_data_of_the_first_schema_opens_and_replays_its_idempotency_keys(
    make_installation: MakeInstallation, tmp_path: Path, *, is_restored: bool
) -> None:
    installation = make_installation(**UNLIMITED)
    if is_restored:
        unpack_backup(tmp_path / "backups")
        restored = restore_backup(tmp_path / "backups", installation.files.root)
        assert (restored.is_whole, restored.lost) == (True, [])
    else:
        lay_out(installation.files.root)
    with installation.start().client() as client:
        replayed = upload(client, BUCKET, "0.md", b"# Note 0\n\nThe umber quay.\n", key="k0").raise_for_status()
        assert replayed.json()["id"] == "src_01m8hgw5wfj3r06wyw388e992g"
        assert len(list_sources(client, BUCKET)) == 2
        # The words of the index are indexed again, from its own texts.
        wait_until(lambda: client.get("/v1/search", params={"q": "umber quay"}).is_success, "searches work")
        assert len(search(client, "umber quay", BUCKET)) == 2
    installation.stop()
    assert list_pending(installation.files.state) == []
    assert [dump(copy)[1][-1] for copy in list_copies(installation.files.state)] == [FIRST] * bool(LATER)
    installation.assert_intact()


@pytest.mark.rule("upgrade.copy")
def test_migrate_plans_and_upgrades_and_the_copy_is_kept_until_a_clean_start(
    make_installation: MakeInstallation, newer: str
) -> None:
    installation = make_installation(**UNLIMITED)
    installation.program = newer
    files = lay_out(installation.files.root)
    copy, older, before = copy_place(files.state), dump(files.state), digest(files.root)
    plan = installation.operate("migrate", "--dry-run", "--json").json
    assert plan["migrations"][-1] == {"name": COLOURS, "purpose": "Add a colour to each fact."}
    assert ([each["name"] for each in plan["migrations"]], plan["done"]) == ([*LATER, COLOURS], False)
    assert (plan["copy"], plan["state_bytes"]) == (str(copy), files.state.stat().st_size)
    assert "would be upgraded" in installation.operate("migrate", "--dry-run").stdout
    assert digest(files.root) == before
    made = installation.operate("migrate", "--json").json
    assert (made["migrations"], made["done"], made["copy"]) == (plan["migrations"], True, str(copy))
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    again = installation.operate("migrate", "--json").json
    assert (again["migrations"], again["done"], again["copy"]) == ([], False, str(copy))
    # The copy survives the first start of the new release and a start after a crash.
    with installation.start().client() as client:
        ended = [wait_ended(client, source["id"]) for source in list_sources(client, BUCKET)]
        assert sorted(source["status"] for source in ended) == ["active", "active"]
        assert len(search(client, "umber quay", BUCKET)) == 2
    assert installation.operate("migrate", "--json").failure == (14, "svc_data_dir_locked")
    assert installation.operate("migrate", "--dry-run", "--json").json["migrations"] == []
    installation.kill()
    installation.start().stop()
    assert dump(copy) == older
    installation.start()
    assert list_copies(files.state) == []
    installation.assert_intact()


@pytest.mark.rule("upgrade.restart")
def test_running_daemon_reads_documents_when_another_release_has_been_installed(
    make_installation: MakeInstallation, tmp_path: Path
) -> None:
    code = tmp_path / "code" / "svc_daemon"
    shutil.copytree(Path(svc_daemon.__file__).parent, code, ignore=shutil.ignore_patterns("__pycache__"))
    installation = make_installation(PYTHONPATH=str(code.parent), **UNLIMITED)
    parsers = [code / "extract/formats" / f"{reader[0].replace('.', '/')}.py" for reader in READERS.values()]
    with installation.start().client() as client:
        # What is imported is compiled.
        wait_until(
            lambda: all(Path(cache_from_source(str(each))).exists() for each in parsers), "all parsers are loaded"
        )
        for path in code.rglob("*.py"):
            path.write_text("raise ImportError('This is another release.')\n")
        shutil.rmtree(code / "extract/formats/__pycache__")
        words = {"Quay": "The umber quay is grey."}
        documents = {"a.docx": make_docx(words), "a.pdf": make_pdf([words["Quay"]]), "a.epub": make_epub(words)}
        documents |= {
            "a.eml": make_mail("Quay", words["Quay"]),
            "a.pptx": make_pptx([*words.items()]),
        }
        for name, data in documents.items():
            take_in(client, BUCKET, name, data)


@pytest.mark.rule("upgrade.newer")
def test_state_of_a_newer_release_is_refused_and_stays_unchanged(
    make_installation: MakeInstallation, tmp_path: Path
) -> None:
    installation = make_installation(**UNLIMITED)
    with installation.start().client() as client:
        take_in(client, BUCKET, "a.md", b"# Letter\n\nThe umber quay.\n")
    installation.kill()
    root = installation.files.root
    with closing(sqlite3.connect(installation.files.state)) as state:
        state.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('state', 'm999', 'x')")
        state.commit()
        # Copied before the last connection closes, which would empty the write-ahead log, as after a kill.
        # The dying process still removes its scratch folder, so that is not copied, and its root is renamed: to delete
        # it at the same time fails now and then.
        shutil.copytree(root, tmp_path / "newer", ignore=shutil.ignore_patterns("scratch"))
    root.rename(tmp_path / "killed")
    shutil.copytree(tmp_path / "newer", root)
    assert (root / "state.db-wal").stat().st_size > 0
    before = digest(root)
    assert installation.spawn_daemon().wait(60) == 1
    assert "made by a newer release (it has m999)" in installation.printed()
    for words, code in (("migrate", 1), ("migrate --dry-run", 1), ("verify", 2), ("team ls", 1), ("team create x", 1)):
        refused = installation.operate(*words.split(), "--json")
        assert (refused.exit, "m999" in refused.stdout) == (code, True), (words, refused.stdout)
        assert digest(root) == before, words
