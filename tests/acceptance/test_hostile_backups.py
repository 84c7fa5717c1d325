"""Of a stranger's backup or prepared directory, nothing leads outside: nothing there is read, written or removed."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from svc_daemon.cluster.moving import MoveRefused
from svc_daemon.cluster.offline_move import Route, run_move
from svc_daemon.data_directory import NotEmpty
from svc_daemon.errors import StorageError
from svc_daemon.paths import DataFiles
from svc_daemon.settings.servers import ClusterSettings
from svc_daemon.store.files.backups import BackupRefused
from tests.acceptance.backups import Stage, make_backup, put_link, put_pipe, restore_backup
from tests.conftest import UNLIMITED, MakeInstallation

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]


OUT, GONE = "../../../home/.bashrc", "src_01k2aaaaaaaaaaaaaaaaaaaaaa"
TOMBSTONE = "INSERT INTO tombstones (source_id, team_id, created_at, blob)"
DEEP = '{"a":' * 900 + "1" + "}" * 900
ENDLESS = "WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more)"
#: Statements that change the state database, and a part of the error.
TAMPERED = {
    "an upload": ([f"UPDATE uploads SET id = '{OUT}'"], f"uploads.id is '{OUT}'"),
    "an absolute path": (["UPDATE uploads SET id = '/etc/passwd'"], "uploads.id is '/etc/passwd'"),
    "dots": (["UPDATE uploads SET id = '..'"], "uploads.id is '..'"),
    "nothing": (["UPDATE uploads SET id = ''"], "uploads.id is ''"),
    "NUL": (["UPDATE uploads SET id = 'upl_' || char(0) || 'x'"], r"uploads.id is 'upl_\x00x'"),
    "a line": ([f"UPDATE uploads SET id = '{GONE}' || char(10)"], rf"uploads.id is '{GONE}\n'"),
    "bytes": (["UPDATE uploads SET id = x'2e2e2f78'"], "another type in uploads.id"),
    "a source": ([f"UPDATE sources SET id = '{OUT}'"], f"sources.id is '{OUT}'"),
    "a blob": ([f"UPDATE sources SET blob = '{OUT}'"], f"sources.blob is '{OUT}'"),
    "a number": (["UPDATE sources SET blob = 7"], "sources.blob is '7'"),
    "the team of a source": ([f"UPDATE sources SET team_id = '{OUT}'"], f"sources.team_id is '{OUT}'"),
    "the source of an upload": ([f"UPDATE uploads SET source_id = '{OUT}'"], f"uploads.source_id is '{OUT}'"),
    "a team": ([f"UPDATE teams SET id = '{OUT}'"], f"teams.id is '{OUT}'"),
    "a key": ([f"UPDATE keys SET id = '{OUT}'"], f"keys.id is '{OUT}'"),
    "a bucket": ([f"UPDATE buckets SET id = '{OUT}'"], f"buckets.id is '{OUT}'"),
    "a task": ([f"UPDATE tasks SET id = '{OUT}' WHERE id = (SELECT min(id) FROM tasks)"], f"tasks.id is '{OUT}'"),
    "a batch": (
        [f"INSERT INTO batches SELECT '{OUT}', id, '[]', 'x', 'x', 'x', 'x' FROM teams"],
        f"batches.id is '{OUT}'",
    ),
    "a deleted blob": (
        [f"{TOMBSTONE} SELECT '{GONE}', id, 'x', '{OUT}' FROM teams"],
        f"tombstones.blob is '{OUT}'",
    ),
    "a deleted source": (
        [f"{TOMBSTONE} SELECT '{OUT}', id, 'x', NULL FROM teams"],
        f"tombstones.source_id is '{OUT}'",
    ),
    "the team of a deleted source": ([f"{TOMBSTONE} VALUES ('{GONE}', '{OUT}', 'x', NULL)"], "tombstones.team_id is"),
    "a detachment": (
        [f"INSERT INTO detachments (source_id, team_id) VALUES ('{GONE}', '{OUT}')"],
        f"detachments.team_id is '{OUT}'",
    ),
    "a trigger": (["CREATE TRIGGER more AFTER INSERT ON facts BEGIN DELETE FROM sources; END"], "'more' in its schema"),
    "a view": (["CREATE VIEW more AS SELECT 1"], "'more' in its schema"),
    "a table": (["CREATE TABLE more (x)"], "'more' in its schema"),
    "a virtual table": (["CREATE VIRTUAL TABLE more USING fts5(x)"], "'more' in its schema"),
    "an index": (["CREATE INDEX more ON sources (abs(size_bytes))"], "'more' in its schema"),
    "no index": (["DROP INDEX sources_of_team"], "'sources_of_team' in its schema"),
    "a computed column": (["ALTER TABLE facts ADD COLUMN more TEXT AS (hex(name))"], "'facts' in its schema"),
    "an endless view": (
        [
            "ALTER TABLE _sqlite_migrations RENAME TO old",
            f"CREATE VIEW _sqlite_migrations AS {ENDLESS} SELECT 'state' AS migration_set, n AS name FROM more",
        ],
        "'_sqlite_migrations' in its schema",
    ),
    "a newer release": (
        ["INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('state', 'm999', 'x')"],
        "newer release",
    ),
    "bytes in place of text": (["UPDATE sources SET title = x'ff'"], "another type in sources.title"),
    "text in place of a number": (["UPDATE sources SET size_bytes = 'many'"], "another type in sources.size_bytes"),
    "a damaged record of a move": (["INSERT INTO facts VALUES ('moving_here', '[[[')"], "'moving_here' is damaged"),
    "a deep record of a move": (
        [f"INSERT INTO facts VALUES ('moved_to', '{'[' * 900 + ']' * 900}')"],
        "'moved_to' is damaged",
    ),
    "depth": (
        [f"UPDATE sources SET metadata = '{DEEP}'"],
        "sources.metadata with JSON that is nested",
    ),
    "what is no text": (["UPDATE sources SET id = CAST(x'ff' AS TEXT)"], r"sources.id is '\udcff'"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_backup_with_a_foreign_schema_or_name_is_refused_and_nothing_is_restored(
    stage: Stage, whole: Path, name: str
) -> None:
    statements, message = TAMPERED[name]
    stage.sql("DELETE FROM sources WHERE id <> (SELECT min(id) FROM sources)", *statements)
    before = stage.outside()
    with pytest.raises((BackupRefused, StorageError)) as refused:
        restore_backup(stage.backup, stage.data)
    assert message in str(refused.value)
    assert (stage.outside(), stage.files()) == (before, [])
    # The directory can take another backup.
    assert restore_backup(whole, stage.data).is_whole


def _put_number(path: Path) -> None:
    path.write_text(path.read_text().replace('"number": 1', '"number": "\\u001b[2J"'))


#: Changes of one entry of a backup, by its name, and a part of the error.
ODD_ENTRIES: list[tuple[str, Callable[[Path, Path], object], str]] = [
    ("state.db", lambda path, home: put_link(path, home / "theirs.db"), "not a file"),
    ("state.db", lambda path, _: put_pipe(path), "not a file"),
    ("state.db", lambda path, _: os.truncate(path, 10**7), "10000000 bytes"),
    # A hole that takes no room in the backup.
    ("state.db", lambda path, _: os.truncate(path, 2**30), "1073741824 bytes, and"),
    ("state.db", lambda path, _: os.truncate(path, 2**43), "8796093022208 bytes, and"),
    ("backup.json", lambda path, home: put_link(path, home / ".bashrc"), "backup.json"),
    ("backup.json", lambda path, _: put_pipe(path), "backup.json"),
    ("backup.json", lambda path, _: path.write_text("[" * 5000), "nested deeper than"),
    ("backup.json", lambda path, _: _put_number(path), "backup.json is damaged"),
    *((name, put_link, "Not a directory") for name in ("blobs", "parts", "held", "index", "models", "aside")),
]


@pytest.mark.parametrize(("name", "change", "message"), ODD_ENTRIES)
def test_backup_whose_entries_are_not_what_they_should_be_is_refused(
    stage: Stage, name: str, change: Callable[[Path, Path], object], message: str
) -> None:
    change(stage.backup / name, stage.home)
    before = stage.outside()
    with pytest.raises((BackupRefused, StorageError, OSError), match=message):
        restore_backup(stage.backup, stage.data)
    assert (stage.outside(), (stage.data / "restoring").exists()) == (before, False)


def test_links_and_special_files_in_a_backup_are_neither_followed_nor_read(stage: Stage) -> None:
    blob, other, _ = sorted((stage.backup / "blobs").iterdir())
    put_link(blob, stage.home / ".bashrc")
    put_pipe(other)
    (part,) = (stage.backup / "parts").iterdir()
    put_link(part, stage.home / ".bashrc")
    for name in ("models", "aside"):
        (stage.backup / name / "2026-01-01").mkdir(parents=True)
        (stage.backup / name / "2026-01-01" / blob.name).symlink_to(stage.home / ".bashrc")
        (stage.backup / name / "2026-01-02").symlink_to(stage.home)
        (stage.backup / name / "x").symlink_to(stage.home / ".bashrc")
    put_pipe(stage.backup / "secret")
    put_link(next((stage.backup / "index").iterdir()), stage.home / "theirs.db")
    # A link beside the state, which SQLite would take for its log.
    (stage.backup / "state.db-wal").symlink_to(stage.home / ".bashrc")
    before = stage.outside()
    made = restore_backup(stage.backup, stage.data)
    assert (len(made.lost), made.is_whole) == (3, False)
    assert stage.outside() == before
    assert not [path for path in stage.data.rglob("*") if path.is_file() and b"theirs" in path.read_bytes()]
    assert not [path for path in stage.data.rglob("*") if path.is_symlink()]


@pytest.mark.rule("backup.index")
def test_missing_index_is_rebuilt(make_installation: MakeInstallation, stage: Stage) -> None:
    (index,) = (stage.backup / "index").iterdir()
    shutil.rmtree(stage.backup / "index")
    _expect_rebuild(make_installation, stage, index.name)


def test_index_with_a_foreign_schema_is_left_out_and_rebuilt(make_installation: MakeInstallation, stage: Stage) -> None:
    (index,) = (stage.backup / "index").iterdir()
    trigger = "CREATE TRIGGER more AFTER DELETE ON documents BEGIN DELETE FROM chunks; END"
    stage.sql(trigger, name=f"index/{index.name}")
    _expect_rebuild(make_installation, stage, index.name)


#: Statements that make values longer than any that this program writes into an index.
OUTSIZED = {
    "a passage": "UPDATE chunks SET text = 'passage ' || hex(zeroblob(1000000))",
    "a passage behind NUL": "UPDATE chunks SET text = char(0) || hex(zeroblob(1000000))",
    "headings": "UPDATE chunks SET headings = printf('%.*c', 9000000, 'A')",
    "a title": "UPDATE documents SET title = printf('%.*c', 9000000, 'A')",
    "a piece of a text": "UPDATE texts SET text_zlib = zeroblob(9000000)",
    "vectors": "INSERT INTO vectors VALUES (1, 1, zeroblob(9000000))",
}


@pytest.mark.parametrize("name", OUTSIZED)
def test_index_with_an_outsized_value_is_left_out_and_rebuilt(
    make_installation: MakeInstallation, stage: Stage, name: str
) -> None:
    (index,) = (stage.backup / "index").iterdir()
    # As it was, the index is taken.
    assert restore_backup(stage.backup, stage.root / "before").is_whole
    assert (stage.root / "before" / "index" / index.name).exists()
    stage.sql("PRAGMA writable_schema = ON", OUTSIZED[name], "PRAGMA writable_schema = OFF", name=f"index/{index.name}")
    _expect_rebuild(make_installation, stage, index.name)


def test_index_that_is_longer_than_its_header_says_is_left_out_and_rebuilt(
    make_installation: MakeInstallation, stage: Stage
) -> None:
    (index,) = (stage.backup / "index").iterdir()
    # A hole, which takes no room in the backup, and none may be taken where it is restored.
    os.truncate(index, 2**30)
    _expect_rebuild(make_installation, stage, index.name)


def _expect_rebuild(make_installation: MakeInstallation, stage: Stage, name: str) -> None:
    """Restore the backup, and check that the index is left out, and made again from the stored files."""
    installation = make_installation(**UNLIMITED)
    assert restore_backup(stage.backup, installation.files.root).is_whole
    assert not (installation.files.index / name).exists()
    with closing(sqlite3.connect(installation.files.state)) as state:
        assert state.execute("SELECT count(*) FROM tasks WHERE type = 'store_rebuild'").fetchone() == (1,)


def test_file_with_an_impossible_date_does_not_end_the_next_start(
    stage: Stage, make_installation: MakeInstallation
) -> None:
    for path in (stage.backup / "blobs").iterdir():
        os.utime(path, ns=(2**62, 2**62))
    stage.sql("DELETE FROM memberships", "DELETE FROM sources")
    installation = make_installation(**UNLIMITED)
    restore_backup(stage.backup, installation.files.root)
    installation.start()
    assert installation.health() is not None


#: What somebody has put into the directory before the restore: the name of a link, and where it leads.
PREPARED = [
    *(
        ("blobs", ""),
        ("log", ""),
        ("log/daemon.log", ".bashrc"),
        ("index", ""),
        ("restoring", ""),
        ("state.db", "theirs.db"),
    ),
    *((f"restoring/{name}", "") for name in ("blobs", "parts", "index", "models", "scratch")),
    *((f"restoring/{name}", ".bashrc") for name in ("state.db-wal", "restoring.json", "secret", "blobs/x")),
    ("restoring/state.db", "theirs.db"),
]
#: A link to a file may also be a hard one, and what is in `restoring` may be there when a restore has begun.
LINKS = [
    (name, target, is_hard, has_begun)
    for name, target in PREPARED
    for is_hard in {False, bool(target)}
    for has_begun in {False, name.startswith("restoring/") and name != "restoring/restoring.json"}
]


@pytest.mark.parametrize(("name", "target", "is_hard", "has_begun"), LINKS)
def test_restore_into_a_directory_with_links_is_refused_and_changes_nothing(
    stage: Stage, name: str, target: str, is_hard: bool, has_begun: bool
) -> None:
    link, restoring = stage.data / name, stage.data / "restoring"
    link.parent.mkdir(parents=True)
    if is_hard:
        link.hardlink_to(stage.home / target)
    else:
        link.symlink_to(stage.home / target)
    if has_begun:
        started_at = json.loads((stage.backup / "backup.json").read_text())["started_at"]
        origin = {"backup": str(stage.backup), "started_at": started_at}
        (restoring / "restoring.json").write_text(json.dumps(origin))
    before = stage.outside()
    with pytest.raises((NotEmpty, NotADirectoryError)):
        restore_backup(stage.backup, stage.data)
    assert stage.outside() == before


def test_refused_restore_leaves_the_folder_as_it_was(stage: Stage) -> None:
    stage.data.mkdir(mode=0o755)
    stage.data.chmod(0o755)
    (stage.data / "mine.txt").write_text("mine")
    with pytest.raises(NotEmpty):
        restore_backup(stage.backup, stage.data)
    assert stage.data.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in stage.data.iterdir()] == ["mine.txt"]


def test_restore_removes_no_file_of_others_from_a_folder_named_restoring(stage: Stage) -> None:
    mine = stage.data / "restoring" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(NotEmpty, match=r"mine\.txt"):
        restore_backup(stage.backup, stage.data)
    assert mine.read_text() == "mine"


def test_backup_removes_nothing_through_links_in_its_folder(stage: Stage, data: Path) -> None:
    partial = stage.backups / "backup.partial"
    partial.mkdir()
    for name in ("blobs", "index", "models", "state.db", "backup.json"):
        (partial / name).symlink_to(stage.home / ("theirs.db" if "." in name else ""))
    before = stage.outside()
    made = make_backup(data, stage.backups)
    assert (made.problems, stage.outside()) == ([], before)
    assert not [path for path in made.backup.path.rglob("*") if path.is_symlink()]
    for name in ("backup.partial", "backup.removing", "2199-01-01T00-00-00Z"):
        (stage.backups / name).symlink_to(stage.home)
        with pytest.raises(BackupRefused):
            make_backup(data, stage.backups)
        assert stage.outside() == before
        if name[0] == "2":
            with pytest.raises(BackupRefused, match="Not a directory"):
                restore_backup(stage.backups, stage.data)
        (stage.backups / name).unlink()


def test_installation_is_not_moved_into_a_directory_with_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "blobs").symlink_to(tmp_path)
    # Nothing is asked of the cluster before.
    urls = {
        "SVC_STATE_URL": "postgresql://127.0.0.1:1/x",
        "SVC_BLOBS_URL": "s3://bucket/prefix",
        "SVC_INDEX_URL": "http://127.0.0.1:1",
    }
    cluster = ClusterSettings.from_environ(urls)
    assert cluster is not None
    route = Route(cluster=cluster, environ=urls, files=DataFiles(tmp_path / "data"), into_cluster=False)
    with pytest.raises(MoveRefused, match="blobs is a link"):
        run_move(route, lambda _: None)
