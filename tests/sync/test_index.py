"""The index of a mapping: rows, batches and facts in a file that is closed and reopened."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from svc_cli.errors import UsageError
from svc_cli.sync.index import FileRow, Index, Journaled, hold

ROWS = [
    FileRow(5, 1, 2, 3, 4, 9, "a.md", "a.md", "one", "src_1", "src_1", "ready", None),
    FileRow(6, 1, 2, 2**62, 4, 9, "\u00e9.md", "e\u0301.md", "two", None, None, "failed", '{"code": "x"}'),
]
BATCH = Journaled("key", {"manifest": {"version": 1}}, {"file-1": ROWS[0]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "docs.db"


def test_rows_are_stored_and_can_be_saved_removed_moved_and_replaced(path: Path) -> None:
    with Index(path) as index:
        index.save(ROWS)
    with Index(path) as index:
        assert index.load() == {row.path: row for row in ROWS}
        index.save([ROWS[0]._replace(sha256="three")])
        index.remove(["\u00e9.md"])
        assert [row.sha256 for row in index.load().values()] == ["three"]
        index.move("a.md", ROWS[0]._replace(path="b.md"))
        assert list(index.load()) == ["b.md"], "a moved file has one row"
        index.replace_all(ROWS[1:], ())
        assert list(index.load()) == ["\u00e9.md"], "all rows are replaced at once"


def test_names_of_removed_files_are_in_no_file_of_a_closed_index(path: Path) -> None:
    rows = [ROWS[0]._replace(path=f"{number} secret.md") for number in range(500)]
    with Index(path) as index:
        index.save([*rows, ROWS[0]])
        index.begin(rows, Journaled("key", {}, {row.path: row for row in rows}))
    assert b"secret" in path.read_bytes()
    with Index(path) as index:
        index.finish("key", rows)
        index.remove(row.path for row in rows)
    assert not [file for file in path.parent.iterdir() if b"secret" in file.read_bytes()]


def test_batch_is_stored_until_the_rows_of_its_files_are_saved(path: Path) -> None:
    with Index(path) as index:
        index.begin([ROWS[0]], BATCH)
    with Index(path) as index:
        assert index.list_batches() == [BATCH]
        index.finish("key", [ROWS[0]])
        assert index.list_batches() == []
        assert list(index.load()) == ["a.md"]


def test_batch_is_kept_if_its_rows_cannot_be_saved(path: Path) -> None:
    with Index(path) as index:
        index.begin([ROWS[0]], BATCH)
        with pytest.raises(sqlite3.Error):
            index.finish("key", [("not", "a", "row")])  # type: ignore[list-item]
        assert index.list_batches() == [BATCH]


@pytest.mark.parametrize("files", ["{", "[]", '{"file-1": [1, 2]}', '{"file-1": 7}'])
def test_batch_that_cannot_be_read_has_no_rows_and_is_set_aside(path: Path, files: str) -> None:
    with Index(path) as index:
        index.save(ROWS)
        index.begin([ROWS[0]], BATCH)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO batches VALUES ('odd', '{}', ?)", (files,))
    with Index(path) as index:
        assert index.list_batches() == [BATCH, Journaled("odd", {}, {})]
        index.set_aside("odd")
        assert index.list_batches() == [BATCH]
        assert index.load().keys() == {row.path for row in ROWS}, "nothing else is lost"


def test_fact_is_stored_and_clear_removes_facts_rows_and_batches(path: Path) -> None:
    with Index(path) as index:
        assert index.find_fact("revision") is None
        index.set_fact("revision", "7")
        index.set_fact("revision", "8")
        index.save(ROWS)
        index.begin([ROWS[0]], BATCH)
        assert index.find_fact("revision") == "8"
        index.clear()
        assert index.find_fact("revision") is None
        assert index.load() == {}
        assert index.list_batches() == []


def test_index_knows_which_sources_were_sent_from_the_folder_even_if_the_run_was_killed(path: Path) -> None:
    sent, seen = ROWS[0], ROWS[0]._replace(path="seen.md", source_id="src_2", place_id="src_2")
    with Index(path) as index:
        index.begin([sent])
    with Index(path) as index:
        assert [index.has_sent("src_1", *found) for found in (("a.md", "one"), ("a.md", "two"), ())] == [
            True,
            False,
            False,
        ]
        index.finish("key", [sent])
        index.replace_all([sent, seen], {"src_1", "src_2"})
        assert [index.has_sent(each) for each in ("src_1", "src_2")] == [True, False]
        assert not index.has_sent("src_9", "a.md", "one"), "once the source is known, its id counts"


def test_source_that_left_the_bucket_is_known_when_a_backup_brings_it_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [ROWS[0]._replace(source_id=f"src_{number}") for number in range(1, 5)]
    monkeypatch.setattr("svc_cli.sync.index.MOST_ENDED", 2)
    with Index(path) as index:
        index.finish("key", rows)
        index.replace_all([rows[0]], {"src_1"})
        known = [index.has_sent(str(row.source_id)) for row in rows]
        assert known == [True, False, True, True], "of those that left it, the newest are kept"


def test_older_index_is_replaced_and_owns_nothing(path: Path) -> None:
    with Index(path) as index:
        index.finish("key", ROWS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 1")
    with Index(path) as index:
        assert index.load() == {}
        assert not index.has_sent("src_1")


def test_index_of_a_newer_release_is_refused(path: Path) -> None:
    Index(path).__exit__(None, None, None)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UsageError, match="newer release"):
        Index(path)


def test_folder_for_the_index_that_cannot_be_made_is_refused_with_the_variable_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as refused, hold(tmp_path / "file" / "index.db", "notes"):
        pass
    assert refused.value.hint == "set SVC_STATE_DIR to a folder that this user may write."


def test_row_has_an_error_only_if_its_source_failed() -> None:
    rows = [*ROWS, ROWS[0]._replace(state="skipped", reason="type can't be read")]
    assert [row.error for row in rows] == [None, {"code": "x"}, None]


@pytest.mark.parametrize("harm", ["pages", "files", "DROP TABLE facts", "INSERT INTO facts VALUES ('way', '[1')"])
def test_damaged_index_is_set_aside_and_replaced_by_an_empty_one(path: Path, harm: str) -> None:
    with Index(path) as index:
        index.save(ROWS)
    if harm == "pages":
        data = path.read_bytes()
        path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))
    elif harm == "files":
        path.unlink()
    if harm != "pages":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE files (x)" if harm == "files" else harm)
    with Index(path) as index:
        assert index.load() == {}
        assert index.list_batches() == []
        assert index.find_fact("revision") is None
        index.save(ROWS)
    assert path.with_suffix(".damaged").exists()
