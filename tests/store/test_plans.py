"""Tests the plans of SQL statements: frequent ones use an index, so that they stay fast with much data."""

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from svc_daemon.databases.contract import Connection
from svc_daemon.store import schemas
from svc_daemon.store.rows import buckets, events, idempotency, keys, tasks, tombstones, webhook_deliveries
from svc_daemon.store.rows.events import START, EventFilter
from svc_daemon.store.rows.sources import memberships, refreshes, sources
from svc_daemon.store.rows.sources.listings import SourceFilter, group_failures, list_sources
from svc_daemon.store.rows.sources.search_candidates import list_active_sources
from svc_daemon.store.rows.tasks import TaskQueue
from svc_daemon.store.rows.webhook_deliveries import DeliveryFilter
from svc_daemon.wire.tasks import INDEXING, REBUILD
from tests.rules.modules import Module, modules
from tests.store.rows import NOW, OURS, plan

pytestmark = pytest.mark.sqlite

#: Functions that need all rows, or read tables that stay small: open tasks and sessions, keys, teams.
WHOLE = {"keys.list_keys", "memberships.list_searched_places", "memberships.renew_syncs", "memberships.withdraw_syncs"}
WHOLE |= {"copies.list_stored", "teams.list_facts", "buckets.raise_revisions"}
WHOLE |= {"sources.list_all_blobs", "sources.list_all_ids", "tasks.count_open", "tasks.count_open_by_type"}
WHOLE |= {"keys.revoke_key", "tasks.count_open_of_team", "keys.list_watchers", "keys.forget_watchers"}
WHOLE |= {"overdue_work.has_far_pauses", "overdue_work.recall_far_pauses", "tasks.list_expired"}
WHOLE |= {"teams.find_team", "teams.list_team_ids", "teams.list_teams"}
WHOLE |= {"tombstones.list_deleted_blobs", "sessions.list_open_ids", "sessions.list_open_of_bucket"}
# A team is removed once, and its rows in many tables can only be found by reading all of them.
WHOLE |= {f"teams.{verb}" for verb in ("has_uncleaned", "delete_team", "is_busy", "revoke_keys")}
#: Scans of rows that the statement makes itself or gets as parameters.
_GIVEN = re.compile(r"SCAN (json_each|line|page|waiting|turns|taken|\(subquery|CONSTANT)")


def _statements(module: Module) -> Iterator[tuple[str, str]]:
    """Yield each function that runs a statement, with the statement."""
    noun = module.name.rpartition(".")[2]
    for function in (node for node in module.nodes if isinstance(node, ast.FunctionDef)):
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "execute":
                statement = call.args[0]
                if isinstance(statement, ast.Constant):
                    yield f"{noun}.{function.name}", str(statement.value)


def _plan(db: Connection, statement: str) -> list[str]:
    parameters = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
    return [row["detail"] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]


def _scans(db: Connection, statement: str) -> bool:
    return any(step.startswith("SCAN") and not _GIVEN.match(step) for step in _plan(db, statement))


def _asked() -> list[tuple[str, str]]:
    store = [module for module in modules("svc_daemon") if module.name.startswith("svc_daemon.store.")]
    others = (".checks", ".foreign_states", ".migrations")
    asking = [module for module in store if not module.name.endswith(others)]
    return [each for module in asking for each in _statements(module)]


def test_only_functions_that_need_all_rows_scan_a_table(db: Connection) -> None:
    asked = _asked()
    assert len(asked) > 80
    assert {name for name, statement in asked if _scans(db, statement)} - WHOLE == set()


def test_open_sessions_are_found_by_the_index_of_open_sessions(db: Connection) -> None:
    names = {f"sessions.{name}" for name in ("list_expired_ids", "list_open_ids", "list_open_of_bucket")}
    of_open = {name: text for name, text in _asked() if name in names}
    assert of_open.keys() == names
    for name, statement in of_open.items():
        assert any("uploads_open" in step for step in _plan(db, statement)), name


MEMBERS = "memberships_of_bucket"
INDEXED = TaskQueue(type=INDEXING, lane="wave", team_id=OURS)
QUEUE = "tasks_open (type=? AND status=? AND lane=? AND team_id=?)"
#: Queries, and the text that their plans must contain.
INDEXES: list[tuple[Callable[[Connection], object], str]] = [
    (lambda db: keys.find_key(db, "key_1"), "SEARCH keys USING PRIMARY KEY (id=?)"),
    (lambda db: buckets.take_census(db, "bkt_1"), MEMBERS),
    (lambda db: webhook_deliveries.list_due(db, NOW, [], 16), "SEARCH d USING INDEX deliveries_due"),
    (lambda db: webhook_deliveries.next_delivery_due(db, []), "deliveries_due"),
    (lambda db: webhook_deliveries.list_deliveries(db, OURS, DeliveryFilter()), "deliveries_of_team"),
    (lambda db: idempotency.find_answer(db, "key_1", "k", "1"), "PRIMARY KEY (key_id=? AND key=?)"),
    (lambda db: idempotency.delete_expired_answers(db, "1"), "idempotency_by_age"),
    (lambda db: memberships.claim_syncs(db, NOW, 10.0, 64), "memberships_due (due_at>? AND due_at<?)"),
    (memberships.next_sync_due, "memberships_due"),
    (lambda db: refreshes.list_due_refreshes(db, NOW, [], 4), "SEARCH sources USING INDEX sources_to_refresh"),
    (lambda db: refreshes.next_refresh_due(db, []), "sources_to_refresh"),
    (lambda db: memberships.has_expired_syncs(db, 1.0, 60.0), "memberships_leased"),
    (lambda db: memberships.release_expired_syncs(db, NOW, 1.0, 60.0), "memberships_leased"),
    (lambda db: tasks.find_open_rebuild(db, OURS), "tasks_rebuild"),
    (lambda db: tasks.find_last_rebuild(db, OURS), "tasks_rebuild"),
    (lambda db: tasks.is_in_maintenance(db, OURS), "tasks_rebuild"),
    (lambda db: tasks.find_waiting(db, OURS, REBUILD, NOW), f"{QUEUE}"),
    (lambda db: tasks.list_waiting(db, INDEXED, NOW, 64), f"{QUEUE}"),
    (lambda db: tasks.next_attempt_due(db, INDEXING), "tasks_delayed (type=? AND next_attempt_at>?)"),
    (
        lambda db: tasks.list_waiting_teams(db, INDEXING, ["wave"]),
        "tasks_open (type=? AND status=? AND lane=? AND team",
    ),
    (lambda db: sources.find_source(db, OURS, "src_1"), "tasks_rebuild"),
    (lambda db: sources.find_page(db, OURS, "http://a.example/"), "sources_of_url"),
    (
        lambda db: list_sources(db, OURS, "bkt_1", SourceFilter(title="a.md", sha256="0")),
        "memberships_by_title (bucket_id=? AND source_title=?)",
    ),
    (lambda db: sources.list_replacing(db, OURS, "src_1"), "sources_replacing"),
    (lambda db: list_active_sources(db, OURS, ["src_1"]), "SEARCH"),
    # Reads no earlier event of the same turn, which all events of SQLite have.
    (
        lambda db: events.read_events(db, OURS, EventFilter(), START, 9),
        "events_of_team (team_id=? AND turn=? AND seq>?)",
    ),
    # Reads the bucket's members in order, however many sources other buckets have.
    (
        lambda db: list_sources(db, OURS, "bkt_1", SourceFilter(status="all", after="src_1")),
        f"{MEMBERS} (bucket_id=? AND source_id>?)",
    ),
    (
        lambda db: list_sources(db, OURS, "bkt_1", SourceFilter(after="src_1")),
        "memberships_by_status (bucket_id=? AND source_status=? AND source_id>?)",
    ),
    *(
        (
            lambda db, name=name: list_sources(
                db, OURS, "bkt_1", SourceFilter(status="all", sort=name, after="src_1", after_value=7)
            ),
            f"memberships_by_{name} (bucket_id=? AND (source_{name},source_id)>(?,?))",
        )
        for name in schemas.SORTED
    ),
    (
        lambda db: group_failures(db, OURS, "bkt_1", SourceFilter()),
        "memberships_by_status (bucket_id=? AND source_status=?)",
    ),
    (lambda db: tombstones.list_to_clean(db, after="src_1", limit=100), "tombstones_to_clean"),
    (lambda db: tombstones.find_successor(db, OURS, "src_1"), "SEARCH t USING PRIMARY KEY"),
]


#: These sort or group the few rows that they find; all others return rows in the order of the index.
SORTED = {"SEARCH d USING INDEX deliveries_due", MEMBERS, "SEARCH t USING PRIMARY KEY"}
SORTED |= {"memberships_by_status (bucket_id=? AND source_status=?)", "SEARCH sources USING INDEX sources_to_refresh"}


@pytest.mark.rule("log.turns")
@pytest.mark.parametrize(("ask", "index"), INDEXES)
def test_frequent_queries_use_their_index(db: Connection, ask: Any, index: str) -> None:
    steps = plan(db, lambda ask=ask: ask(db))  # type: ignore[misc]
    scans = [step for step in steps.splitlines() if step.startswith("SCAN") and not _GIVEN.match(step)]
    assert (index in steps, scans, "TEMP B-TREE" in steps) == (True, [], index in SORTED), (index, steps)


def test_words_of_names_are_looked_for_in_an_index_alone(db: Connection) -> None:
    chosen = SourceFilter(status="all", sort="updated_at", words=("a",))
    steps = plan(db, lambda: list_sources(db, OURS, "bkt_1", chosen))
    assert "COVERING INDEX memberships_by_title (bucket_id=?)" in steps, steps


def test_a_view_that_reads_every_source_is_detected(db: Connection) -> None:
    assert _scans(db, "SELECT s.places FROM uploads u LEFT JOIN source_views s ON s.id = u.source_id WHERE u.id = :id")
