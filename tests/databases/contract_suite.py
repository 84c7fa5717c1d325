"""The tests that every database engine must pass: a test module subclasses `DatabaseContract` for its engine."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from svc_daemon.databases.contract import Connection, Database
from svc_daemon.errors import StorageError
from tests.acceptance.installations import PATIENCE_S
from tests.databases.notes import busy_writer, ids, insert, submit_all

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT COUNT(*) FROM n"
OpenDatabase = Callable[[], Database]


class DatabaseContract:
    """The tests; a subclass defines a fixture `open_database`, which opens the same database at each call."""

    group_limit: ClassVar[int]
    #: The errors for a duplicate key, and for a statement that is invalid or not allowed to write.
    duplicate: ClassVar[type[Exception]]
    wrong: ClassVar[type[Exception]]
    #: The error of a read that is interrupted because the database is closed.
    interrupted: ClassVar[type[Exception]]

    @pytest.fixture
    def open_database(self) -> OpenDatabase:
        raise NotImplementedError

    @pytest.fixture
    def database(self, open_database: OpenDatabase) -> Iterator[Database]:
        opened = open_database()
        yield opened
        opened.close()

    def test_queued_work_shares_one_commit_up_to_the_group_limit(self, database: Database) -> None:
        futures = submit_all(database, [insert(number) for number in range(self.group_limit)])
        assert [future.result(PATIENCE_S) for future in futures] == list(range(self.group_limit))
        # One commit for the work that kept the writer busy, one for all the others.
        assert (database.operations, database.commits) == (self.group_limit + 1, 2)
        futures = submit_all(database, [insert(-number) for number in range(1, self.group_limit + 2)])
        assert (futures[-1].result(PATIENCE_S), database.commits) == (-self.group_limit - 1, 5)

    def test_writes_of_many_threads_share_commits_and_are_all_stored(
        self, database: Database, open_database: OpenDatabase
    ) -> None:
        with ThreadPoolExecutor(16) as pool:
            answered = list(pool.map(lambda number: database.write(insert(number)), range(400)))
        assert answered == list(range(400))
        assert database.commits < database.operations == 400
        assert stored(open_database) == answered

    def test_work_that_raises_is_rolled_back_alone_and_its_caller_gets_the_error(self, database: Database) -> None:
        def half_done(connection: Connection) -> None:
            connection.execute("INSERT INTO notes (id) VALUES (100)")
            raise LookupError("changed my mind")

        before, wrong, double, after, seen = submit_all(database, [insert(1), half_done, insert(1), insert(2), ids])
        # The last of them reads the rows written before it.
        assert [future.result(PATIENCE_S) for future in (before, after, seen)] == [1, 2, [1, 2]]
        assert isinstance(wrong.exception(PATIENCE_S), LookupError)
        assert isinstance(double.exception(PATIENCE_S), self.duplicate)
        assert database.read(ids) == [1, 2]
        assert database.commits == 2

    def test_work_can_be_cancelled_while_queued_but_not_while_running(self, database: Database) -> None:
        with busy_writer(database) as running:
            kept, dropped = database.submit(insert(1)), database.submit(insert(2))
            assert dropped.cancel()
            assert not running.cancel()
        running.result(PATIENCE_S)
        kept.result(PATIENCE_S)
        assert database.read(ids) == [1]

    def test_read_sees_one_snapshot_despite_later_commits(self, database: Database) -> None:
        database.write(insert(1))

        def work(connection: Connection) -> list[list[int]]:
            before = ids(connection)
            database.write(insert(2))
            return [before, ids(connection)]

        assert database.read(work) == [[1], [1]]
        assert database.read(ids) == database.look(ids) == [1, 2]

    def test_next_read_of_every_thread_sees_a_write(self, database: Database) -> None:
        with ThreadPoolExecutor(4) as pool:
            for number in range(20):
                database.write(insert(number))
                seen = list(pool.map(lambda _: database.read(ids), range(4)))
                assert seen == [list(range(number + 1))] * 4

    def test_read_that_fails_or_writes_raises_and_leaves_its_connection_usable(self, database: Database) -> None:
        for read in (database.read, database.look):
            for statement in ("INSERT INTO notes (id) VALUES (1)", "DELETE FROM notes", "DROP TABLE notes"):
                with pytest.raises(self.wrong, match=r"read-?only"):
                    read(lambda connection: connection.execute(statement))  # noqa: B023
            with pytest.raises(self.wrong, match="absent"):
                read(lambda connection: connection.execute("SELECT * FROM absent"))
            assert read(ids) == []
        database.write(insert(1))
        assert database.read(ids) == [1]

    def test_lowercase_converts_accented_greek_and_cyrillic_letters(self, database: Database) -> None:
        def work(connection: Connection) -> tuple[Any, ...]:
            return tuple(connection.execute("SELECT lowercase('ÀÉß ЖΔ'), lowercase(NULL)").fetchone())

        assert database.read(work) == ("àéß жδ", None)
        assert database.write(work) == ("àéß жδ", None)

    def test_close_finishes_queued_work(self, open_database: OpenDatabase) -> None:
        database, numbers = open_database(), range(self.group_limit * 2)
        with busy_writer(database):
            futures = [database.submit(insert(number)) for number in numbers]
            closing = threading.Thread(target=database.close)
            closing.start()
        closing.join(PATIENCE_S)
        assert not closing.is_alive()
        assert [future.result(0) for future in futures] == list(numbers)
        assert stored(open_database) == list(numbers)

    def test_reads_and_writes_are_refused_after_close(self, open_database: OpenDatabase) -> None:
        database = open_database()
        database.read(ids)
        database.close()
        database.close()
        with ThreadPoolExecutor(1) as pool:
            late = lambda: pool.submit(database.read, ids).result(PATIENCE_S)  # noqa: E731
            for call in (lambda: database.submit(insert(1)), lambda: database.read(ids), late):
                with pytest.raises(StorageError):
                    call()
        assert not database.is_broken

    def test_close_interrupts_running_reads(self, open_database: OpenDatabase) -> None:
        database = open_database()
        reading = threading.Event()

        def work(connection: Connection) -> None:
            reading.set()
            connection.execute(ENDLESS).fetchone()

        with ThreadPoolExecutor(1) as pool:
            read = pool.submit(database.read, work)
            assert reading.wait(PATIENCE_S)
            closing = threading.Thread(target=database.close)
            closing.start()
            closing.join(PATIENCE_S)
            assert not closing.is_alive()
            assert isinstance(read.exception(PATIENCE_S), self.interrupted)

    def test_columns_of_a_row_are_read_by_name_and_by_position(self, database: Database) -> None:
        database.write(insert(3, "text"))
        row = database.read(lambda c: c.execute("SELECT text, id, id + 1 AS next FROM notes").fetchone())
        assert (row["next"], row[0], tuple(row), len(row)) == (4, "text", ("text", 3, 4), 3)
        assert (list(row.keys()), dict(row)) == (["text", "id", "next"], {"text": "text", "id": 3, "next": 4})

    def test_sum_of_integers_is_an_integer_and_texts_are_sorted_by_bytes(self, database: Database) -> None:
        texts = ["a", "B", "_", "é", "a b", "Z", "\U0001f600", "\ufb01"]
        for number, text in enumerate(texts):
            database.write(insert(number, text))
        (total,) = database.read(lambda c: c.execute("SELECT SUM(id) FROM notes").fetchone())
        assert (type(total), total) == (int, sum(range(len(texts))))
        found = database.read(lambda c: [row["text"] for row in c.execute("SELECT text FROM notes ORDER BY text")])
        assert found == sorted(texts, key=str.encode)

    def test_text_with_a_nul_character_can_be_stored_and_found(self, database: Database) -> None:
        database.write(insert(1, "a\0b"))
        sought = "SELECT id FROM notes WHERE text = :text"
        assert [row["id"] for row in database.read(lambda c: c.execute(sought, {"text": "a\0b"}).fetchall())] == [1]
        assert database.read(lambda c: c.execute(sought, {"text": "a\0c"}).fetchall()) == []

    def test_executemany_takes_named_and_positional_parameters(self, database: Database) -> None:
        database.write(insert(0))
        named, placed = "UPDATE notes SET text = :text WHERE id = :id", "INSERT INTO notes (text, id) VALUES (?, ?)"
        for statement, rows in ((placed, [("a", 1), ("b\0?", 2)]), (named, [{"id": 0, "text": "c"}]), (named, [])):
            database.write(lambda c: c.executemany(statement, rows).rowcount)  # noqa: B023
        found = database.read(lambda c: c.execute("SELECT id, text FROM notes ORDER BY id").fetchall())
        assert [(row["id"], row["text"].replace("\ufffd", "\0")) for row in found] == [(0, "c"), (1, "a"), (2, "b\0?")]

    def test_executemany_inserts_in_order_counts_new_rows_and_rolls_back_if_one_is_refused(
        self, database: Database
    ) -> None:
        statement = "INSERT INTO notes (id, text) VALUES (:id, '(:id) ' || :text) ON CONFLICT (id) DO NOTHING"
        # The text is the number of the insert: the first row with an id is kept, even within one statement.
        for count in (1, 5, 16, 17, 50, 50, 83):
            rows = [{"id": number // 2 * 2, "text": str(number)} for number in range(count)]
            before = len(database.read(ids))
            new = database.write(lambda c: c.executemany(statement, rows).rowcount)  # noqa: B023
            assert (new, database.read(ids)) == (len(range(0, count, 2)) - before, [*range(0, count, 2)]), count
        found = database.read(lambda c: c.execute("SELECT id, text FROM notes").fetchall())
        assert all(row["text"] == f"(:id) {row['id']}" for row in found)
        # A refused row rolls back all rows of its statement, those of earlier groups too.
        with pytest.raises(self.duplicate):
            doubled = [{"id": 900 + number % 70} for number in range(71)]
            database.write(lambda c: c.executemany("INSERT INTO notes (id) VALUES (:id)", doubled))
        assert database.read(ids) == [*range(0, 83, 2)]


def stored(open_database: OpenDatabase) -> list[int]:
    """Return the ids that a newly opened database reads."""
    database = open_database()
    try:
        return database.read(ids)
    finally:
        database.close()
