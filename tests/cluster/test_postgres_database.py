"""The database on PostgreSQL fulfils its contract, also with concurrent nodes and failures of the server."""

import json
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from svc_daemon.cluster.migrations import join_shared, migrate_shared
from svc_daemon.cluster.postgres.database import GROUP_LIMIT, SINGLE_TRIES, PostgresDatabase
from svc_daemon.databases.contract import Connection, Exclusive
from svc_daemon.databases.sqlite import open_connection
from svc_daemon.errors import CommitUnknown, ShuttingDown, StorageError, StoreUnavailable
from svc_daemon.store import migrations
from svc_daemon.store.migrations import MIGRATIONS
from svc_daemon.store.rows.buckets import BucketRow, take_census
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.cluster.cutting import Cutter
from tests.cluster.postgres import HOST, PASSWORD, PostgresEngine, running_postgres, system_programs
from tests.databases.contract_suite import DatabaseContract, OpenDatabase, stored
from tests.databases.notes import ids, insert, prepare, submit_all
from tests.store.rows import add_bucket, add_source, add_teams

OpenNode = Callable[..., PostgresDatabase]


@pytest.fixture(scope="module")
def oldest() -> Iterator[PostgresEngine]:
    """The system's server, which is older than the package's and has TLS."""
    programs = system_programs()
    if not programs:
        pytest.skip("the machine has no PostgreSQL of its own (Debian's package `postgresql`)")
    with running_postgres(programs[-1]) as engine:
        yield engine


@pytest.fixture
def url(engine: PostgresEngine) -> str:
    return engine.make_database(empty=True)


@pytest.fixture
def open_node(url: str) -> Iterator[OpenNode]:
    """A function that opens the database as another node; all are closed after the test."""
    nodes: list[PostgresDatabase] = []

    def open_node(url: str = url) -> PostgresDatabase:
        nodes.append(PostgresDatabase(url, prepare=prepare))
        return nodes[-1]

    yield open_node
    for node in nodes:
        node.close()


class TestPostgresDatabase(DatabaseContract):
    group_limit = GROUP_LIMIT
    duplicate = psycopg.errors.UniqueViolation
    wrong = psycopg.Error
    interrupted = ShuttingDown

    @pytest.fixture
    def open_database(self, url: str) -> OpenDatabase:
        return partial(PostgresDatabase, url, prepare=prepare)


def count_up(connection: Connection) -> int:
    """Increment a stored number by reading and then writing it, and return it; concurrent calls must not overlap."""
    (number,) = connection.execute("SELECT CAST(text AS BIGINT) FROM notes WHERE id = 1").fetchone()
    connection.execute("UPDATE notes SET text = :text WHERE id = 1", {"text": str(number + 1)})
    return int(number) + 1


def test_concurrent_writes_of_nodes_lose_no_update_and_retry_conflicts(open_node: OpenNode) -> None:
    nodes = [open_node() for _ in range(3)]
    nodes[0].write(insert(1, "0"))
    with ThreadPoolExecutor(12) as pool:
        futures = [pool.submit(nodes[number % 3].write, count_up) for number in range(300)]
        answered = sorted(future.result(PATIENCE_S) for future in futures)
    assert answered == list(range(1, 301))
    assert sum(node.conflicts for node in nodes) > 0


def test_writes_in_turn_have_no_conflicts(open_node: OpenNode) -> None:
    nodes = [open_node() for _ in range(3)]
    nodes[0].write(insert(1, "0"))
    with ThreadPoolExecutor(12) as pool:
        futures = [pool.submit(nodes[number % 3].write, Exclusive(count_up)) for number in range(300)]
        answered = sorted(future.result(PATIENCE_S) for future in futures)
    assert (answered, [node.conflicts for node in nodes]) == (list(range(1, 301)), [0, 0, 0])


def test_concurrent_transactions_have_no_write_skew(open_node: OpenNode) -> None:
    """Each transaction adds another row, but only if there are fewer than ten."""
    nodes = [open_node() for _ in range(3)]

    def add(number: int, connection: Connection) -> bool:
        few = len(ids(connection)) < 10
        return few and bool(insert(number)(connection))

    with ThreadPoolExecutor(9) as pool:
        added = [pool.submit(nodes[number % 3].write, partial(add, number)) for number in range(1, 91)]
        assert sum(each.result(PATIENCE_S) for each in added) == 10


def test_two_nodes_add_sources_to_one_bucket_concurrently_without_conflicts(engine: PostgresEngine) -> None:
    url = engine.make_database()
    nodes = [PostgresDatabase(url, prepare=migrate_shared) for _ in range(2)]
    first, second = nodes

    def make(connection: Connection) -> BucketRow:
        add_teams(connection)
        return add_bucket(connection)

    bucket = first.write(make)

    def add(number: int, connection: Connection) -> None:
        add_source(connection, f"first-{number}", bucket)
        # Another node adds a source before this transaction ends.
        second.submit(lambda other: add_source(other, f"second-{number}", bucket)).result(PATIENCE_S)

    for number in range(10):
        first.write(partial(add, number))
    census = second.read(partial(take_census, bucket_id=bucket.id))
    for node in nodes:
        node.close()
    assert (census.revision, census.total, first.conflicts, second.conflicts) == (21, 20, 0, 0)


def test_transaction_with_endless_conflicts_fails_eventually_without_failing_others(open_node: OpenNode) -> None:
    database, other, runs = open_node(), open_node(), []
    database.write(insert(1, "0"))

    def overtaken(connection: Connection) -> None:
        ids(connection)
        runs.append(other.write(count_up))
        count_up(connection)

    before, lost, after = submit_all(database, [insert(2), overtaken, insert(3)])
    refused = lost.exception(PATIENCE_S)
    assert isinstance(refused, StorageError)
    assert (refused.rule.status, refused.details["retry_after_seconds"], type(refused)) == (503, 1, StorageError)
    assert (before.result(PATIENCE_S), after.result(PATIENCE_S), len(runs) > SINGLE_TRIES) == (2, 3, True)
    assert database.read(ids) == [1, 2, 3]


def test_connection_lost_during_commit_raises_commit_unknown(engine: PostgresEngine, url: str) -> None:
    with Cutter(engine.port) as cutter:
        cut = url.replace(str(engine.port), str(cutter.port)) + "?sslmode=disable"
        database = PostgresDatabase(cut, prepare=prepare)
        for number, passes_on in enumerate((True, False)):
            cutter.arm(b"COMMIT", passes_on=passes_on)
            with pytest.raises(CommitUnknown):
                database.write(insert(number))
            # Later transactions work again.
            database.write(insert(number + 10))
        database.close()
    assert stored(partial(PostgresDatabase, url, prepare=prepare)) == [0, 10, 11]


def test_transaction_is_retried_if_the_connection_is_lost_before_the_commit(engine: PostgresEngine, url: str) -> None:
    with Cutter(engine.port) as cutter:
        cut = url.replace(str(engine.port), str(cutter.port)) + "?sslmode=disable"
        database = PostgresDatabase(cut, prepare=prepare)
        database.write(insert(1))
        for number, word in enumerate((b"BEGIN", b"INSERT", b"RELEASE")):
            cutter.arm(word, passes_on=False)
            assert database.write(insert(number + 10)) == number + 10
        assert database.read(ids) == [1, 10, 11, 12]
        for word in (b"BEGIN", b"SELECT", b"ROLLBACK"):
            cutter.arm(word, passes_on=False)
            assert database.read(ids) == [1, 10, 11, 12]
        database.close()


def test_database_reconnects_after_restarts_and_outages_of_the_server(
    engine: PostgresEngine, open_node: OpenNode, caplog: pytest.LogCaptureFixture
) -> None:
    database = open_node()
    database.write(insert(1))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: database.read(ids), range(8)))
    for end in (engine.stop, engine.kill):
        end()
        engine.start(engine.is_ready)
        number = len(database.read(ids)) + 1
        assert database.write(insert(number)) == number
    engine.stop()
    with caplog.at_level(logging.DEBUG):
        for call in (lambda: database.write(insert(9)), lambda: database.read(ids), lambda: database.look(ids)):
            for _ in range(3):
                with pytest.raises(StorageError) as refused:
                    call()
                assert refused.value.as_error()["retryable"] and isinstance(refused.value, StoreUnavailable)
        assert not database.is_broken
        engine.start(engine.is_ready)
        wait_until(lambda: "in reach again" in caplog.text, "the outage ends")
    assert (database.read(ids), database.write(insert(9))) == ([1, 2, 3], 9)
    assert PASSWORD not in caplog.text and quote(PASSWORD, safe="") not in caplog.text


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout"])
def test_transaction_of_a_hanging_node_is_aborted_by_the_servers_timeout(open_node: OpenNode, setting: str) -> None:
    """The node hangs between two statements, or within a pipeline of statements, as `executemany` sends them."""
    hanging, database = open_node(), open_node()
    hanging.write(insert(1, "0"))
    (limit,) = hanging.write(lambda connection: connection.execute(f"SHOW {setting}").fetchone())
    assert limit != "0"
    hanging.write(lambda connection: connection.execute(f"SET {setting} = '300ms'"))
    begun, let_go = threading.Event(), threading.Event()

    def hang(connection: Any) -> None:
        is_again = begun.is_set()
        with connection._opened.pipeline() if setting == "transaction_timeout" else nullcontext():
            try:
                count_up(connection)
            finally:
                begun.set()
            if not is_again:
                let_go.wait(PATIENCE_S)

    future = hanging.submit(hang)
    assert begun.wait(PATIENCE_S)
    assert database.submit(count_up).result(PATIENCE_S) == 1
    let_go.set()
    # Its connection was closed, so its transaction is retried and reads the current number.
    assert (future.result(PATIENCE_S), database.write(count_up)) == (None, 3)


def test_concurrent_starts_create_the_schema_once_and_later_migrations_keep_reads_working(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = engine.make_database(empty=True)
    with ThreadPoolExecutor(4) as pool:
        for database in list(pool.map(lambda _: PostgresDatabase(url, prepare=migrate_shared), range(4))):
            database.close()
    applied = "SELECT name FROM migrations ORDER BY name"

    def later(connection: Connection) -> None:
        connection.execute("ALTER TABLE teams ADD COLUMN later TEXT")

    database = PostgresDatabase(url, prepare=migrate_shared)
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, "m999_later": later})
        # Statements that were prepared on the old schema keep working.
        for _ in range(8):
            database.read(lambda c: c.execute("SELECT * FROM teams").fetchall())
        PostgresDatabase(url, prepare=migrate_shared).close()
        (names,) = [database.read(lambda c: [row["name"] for row in c.execute(applied)])]
        assert names == [*MIGRATIONS, "m999_later"]
        assert database.read(lambda c: c.execute("SELECT * FROM teams").fetchall()) == []
    database.close()
    with pytest.raises(StorageError, match="newer release"):
        PostgresDatabase(url, prepare=migrate_shared)


def test_schema_is_changed_only_while_no_older_node_is_connected(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = engine.make_database(empty=True)
    broken: list[Exception] = []

    def start() -> PostgresDatabase:
        return PostgresDatabase(url, prepare=migrate_shared, join=join_shared, on_broken=broken.append)

    def rename(database: PostgresDatabase) -> None:
        database.write(lambda c: c.execute("UPDATE teams SET name = 'other'"))

    older, idle = start(), start()
    rename(older)
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "MIGRATIONS", {**MIGRATIONS, "m999_later": lambda _: None})
        with pytest.raises(StorageError, match="Daemons of an older release still serve this database"):
            start()
        older.close()
        start().close()
    # The older node reconnects after the change, as after an outage.
    with pytest.raises(StoreUnavailable):
        rename(idle)
    (error,) = broken
    assert "made by a newer release (it has m999_later)" in str(error)
    idle.close()


def test_failed_migration_is_rolled_back(engine: PostgresEngine) -> None:
    url = engine.make_database(empty=True)

    def fail(connection: Connection) -> None:
        migrate_shared(connection)
        raise LookupError

    with pytest.raises(LookupError):
        PostgresDatabase(url, prepare=fail)
    with psycopg.connect(url) as looking:
        (tables,) = looking.execute("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        assert tables == 0


def test_password_is_in_no_error_log_or_representation(
    engine: PostgresEngine, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = url.replace(quote(PASSWORD, safe=""), "s3cret-word")
    unescaped = url.replace(quote(PASSWORD, safe=""), "s3cret@-word")
    for bad in (wrong, unescaped, "postgresql://svc:s3cret-word@127.0.0.1:x/", f"{wrong}?nonsense=1", "s3cret-word"):
        with pytest.raises(StorageError) as refused:
            PostgresDatabase(bad, prepare=prepare)
        shown = "".join(traceback.format_exception(refused.value))
        assert "s3cret" not in shown and "-word" not in shown, bad
    database = PostgresDatabase(url, prepare=prepare)
    database.write(insert(1))
    assert PASSWORD not in f"{database!r} {vars(database)}"
    database.close()
    assert "s3cret" not in caplog.text and PASSWORD not in caplog.text


def test_certificate_of_the_server_is_verified_if_the_url_says_so(oldest: PostgresEngine, tmp_path: Path) -> None:
    parts = urlsplit(oldest.make_database(empty=True))
    host = parts._replace(netloc=parts.netloc.replace("127.0.0.1", HOST)).geturl()
    trusted = f"{host}?sslmode=verify-full&hostaddr=127.0.0.1&sslrootcert={oldest.authority}"
    database = PostgresDatabase(trusted, prepare=prepare)
    query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    for ask in (database.read, database.write):
        assert ask(lambda c: c.execute(query).fetchone()["ssl"]) is True
    database.close()
    stranger = tmp_path / "other.crt"
    stranger.write_bytes((oldest.folder / "server.crt").read_bytes())
    for refused in (trusted.replace(str(oldest.authority), str(stranger)), trusted.replace(HOST, "elsewhere.example")):
        with pytest.raises(StorageError, match="certificate"):
            PostgresDatabase(refused, prepare=prepare)


DOCUMENTS: list[Any] = [
    {"id": "a", "n": 7, "big": 2**53 + 1, "half": 0.5, "e": 1e300, "yes": True, "no": False, "nil": None, "list": [1]},
    {"id": "é\U0001f600", "a b": "x", "a.b:c/d@e-f": 1, "inner": {"id": "no"}},
    {},
    ["a", "b", "a"],
    [],
]
QUESTIONS = [
    *(f"json_type(:document, '{path}')" for path in ("$.id", "$.n", "$.half", "$.yes", "$.no", "$.nil", "$.list")),
    *(f"json_type(:document, '{path}')" for path in ('$."a b"', '$."a.b:c/d@e-f"', "$.inner", "$.absent", "$.big")),
    *(f"json_extract(:document, '{path}')" for path in ("$.id", '$."a b"', "$.nil", "$.absent")),
    "CAST(json_extract(:document, '$.half') AS DOUBLE PRECISION) = 0.5",
    "(SELECT group_concat(value) FROM json_each(:document))",
    "(SELECT json_group_array(value) FROM json_each(:document) WHERE value > 'a')",
    "(SELECT count(DISTINCT value) FROM json_each(:document))",
    *("json_valid(:document)", "json_valid('{')", "json_valid('')", "lowercase('ÀSZ')"),
    *(f"CASE WHEN like('{pattern}', 'An_A', '\\') THEN 1 ELSE 0 END" for pattern in ("%N\\_a", "%n%", "n", "%\\%%")),
]


def test_text_columns_are_sorted_by_bytes_despite_the_servers_locale(oldest: PostgresEngine) -> None:
    database = PostgresDatabase(oldest.make_database(empty=True), prepare=prepare)
    texts = ["a", "B", "_", "\u00e9", "a b", "Z", "\U0001f600", "\ufb01", "A"]
    for number, text in enumerate(texts):
        database.write(insert(number, text))
    for column, wanted in (("text", sorted(texts, key=str.encode)), ("text || ''", sorted(texts, key=str.encode))):
        query = f"SELECT text FROM notes ORDER BY {column}"
        assert database.read(lambda c: [row["text"] for row in c.execute(query)]) == wanted  # noqa: B023
    # A text that isn't from a column is sorted by the server's locale.
    (is_less,) = database.read(lambda c: c.execute("SELECT 'a' < 'B'").fetchone())
    assert is_less is True
    database.close()


@pytest.mark.parametrize("name", ["engine", "oldest"])
def test_sqlite_functions_return_the_same_on_postgresql(name: str, request: pytest.FixtureRequest) -> None:
    sqlite = open_connection(Path(":memory:"))
    node = PostgresDatabase(request.getfixturevalue(name).make_database(), prepare=migrate_shared)
    for document in DOCUMENTS:
        for question in QUESTIONS:
            if "json_each" in question and not isinstance(document, list):
                continue
            statement, values = f"SELECT {question} AS said", {"document": json.dumps(document)}
            here = node.read(lambda c: c.execute(statement, values).fetchone()["said"])  # noqa: B023
            there = sqlite.execute(statement, values).fetchone()["said"]
            if isinstance(there, str) and there.startswith("["):
                here, there = json.loads(here), json.loads(there)
            assert here == there, (question, document)
    sqlite.close()
    node.close()
