"""Only statements about all of a table read all of it: what is asked often stays quick, however much is stored."""

import ast
import re
from collections.abc import Iterator
from sqlite3 import Connection

from tests.rules.modules import Module, modules

#: Functions that look at everything, or at tables that stay small: open tasks and sessions, keys, teams.
WHOLE = {
    "deliveries.list_due",
    "keys.list_keys",
    "memberships.renew_syncs",
    "memberships.withdraw_syncs",
    "sources.list_all_blobs",
    "sources.list_all_ids",
    "tasks.count_open",
    "tasks.has_attempts_after",
    "tasks.list_expired",
    "tasks.recall_attempts",
    "teams.find_team",
    "teams.list_team_ids",
    "teams.list_teams",
    "tombstones.list_deleted_blobs",
    "uploads.list_open_ids",
    "uploads.list_open_uploads",
}
#: Rows that a statement has made itself, or was given.
_GIVEN = re.compile(r"SCAN (json_each|line|\(subquery|CONSTANT)")


def _statements(module: Module) -> Iterator[tuple[str, str]]:
    """Each function that runs a statement, and the statement."""
    noun = module.name.rpartition(".")[2]
    for function in ast.walk(module.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "execute":
                statement = call.args[0]
                if isinstance(statement, ast.Constant):
                    yield f"{noun}.{function.name}", str(statement.value)


def _plan(connection: Connection, statement: str) -> list[str]:
    parameters = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
    return [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]


def _scans(connection: Connection, statement: str) -> bool:
    return any(step.startswith("SCAN") and not _GIVEN.match(step) for step in _plan(connection, statement))


def _asked() -> list[tuple[str, str]]:
    store = [module for module in modules("svc_daemon") if module.name.startswith("svc_daemon.store.")]
    return [
        each for module in store if not module.name.endswith((".checks", ".migrations")) for each in _statements(module)
    ]


def test_only_what_is_for_all_of_a_table_reads_all_of_it(connection: Connection) -> None:
    asked = _asked()
    assert len(asked) > 80
    assert {name for name, statement in asked if _scans(connection, statement)} - WHOLE == set()


def test_open_sessions_are_found_among_the_open_ones_alone(connection: Connection) -> None:
    of_open = [(name, text) for name, text in _asked() if name.startswith("uploads.list_") and "'open'" in text]
    assert len(of_open) == 3
    for name, statement in of_open:
        assert any("uploads_open" in step for step in _plan(connection, statement)), name


def test_a_view_that_is_made_of_every_source_is_told(connection: Connection) -> None:
    assert _scans(
        connection, "SELECT s.places FROM uploads u LEFT JOIN source_views s ON s.id = u.source_id WHERE u.id = :id"
    )
