"""A state whose values the service can't read is refused at a restore, and a row of it costs only itself elsewhere."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from svc_daemon.store.files.backups import BackupRefused
from tests.acceptance.backups import Stage, fill_data, restore_backup
from tests.acceptance.calls import list_sources, take_in, wait_ended
from tests.acceptance.installations import wait_until
from tests.conftest import UNLIMITED, MakeInstallation

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from fill_data(tmp_path_factory.mktemp("filled"))


@pytest.fixture
def stage(data: Path, tmp_path: Path) -> Stage:
    return Stage(data, tmp_path)


#: Values that the service can't read, by table and column, and a part of the error.
MISSHAPEN = [
    ("sources", "webhook", "{}", "url"),
    ("sources", "webhook", '{"url": 7, "metadata": {}}', "url"),
    ("sources", "webhook", "null", "is null"),
    ("sources", "metadata", "[]", "wrong shape"),
    ("sources", "metadata", "{", "wrong shape"),
    ("sources", "tags", "{}", "wrong shape"),
    ("sources", "tags", "[7]", "0"),
    ("sources", "warnings", "7", "wrong shape"),
    ("sources", "error", '{"code": "x"}', "message"),
    ("sources", "extraction", "{}", "characters: is missing"),
    ("sources", "fetched", "{}", "final_url"),
    ("sources", "qa", "[]", "wrong shape"),
    ("sources", "sha256", "x", "is 'x'"),
    ("sources", "created_at", "x", "no time"),
    ("sources", "updated_at", "2026-02-30T00:00:00.000Z", "no time"),
    ("sources", "updated_at", "2026-02-03", "no time of this program"),
    ("buckets", "chunking", "{}", "target"),
    ("buckets", "chunking", '{"target": 900, "min": 1000, "max": 1100, "overlap": 0}', "min <= target <= max"),
    ("buckets", "chunking", '{"target": 0, "min": 0, "max": 0, "overlap": 0}', "target"),
    ("buckets", "metadata", "7", "wrong shape"),
    ("keys", "capabilities", "{}", "wrong shape"),
    ("keys", "buckets", '{"a": 1}', "wrong shape"),
    ("keys", "models", '"x"', "wrong shape"),
    ("keys", "secret_hash", "\u00e9", "is"),
    ("keys", "expires_at", "never", "no time"),
    ("tasks", "error", "[]", "wrong shape"),
    ("tasks", "type", "x", "which is no type"),
    ("tasks", "next_attempt_at", "x", "no time"),
    ("uploads", "bucket_ids", "{}", "wrong shape"),
    ("uploads", "metadata", "[]", "wrong shape"),
    ("uploads", "tags", "[null]", "0"),
    ("uploads", "expires_at", "9999-01-01T00:00:00.000Z", None),
    ("uploads", "ends_at", "9999-01-01T00:00:00.000Z", "no time of this program"),
    ("memberships", "due_at", "x", "no time"),
    ("events", "data", "[]", "wrong shape"),
    ("idempotency", "answer", "[]", "wrong shape"),
    ("batches", "bucket_ids", "{}", "wrong shape"),
    ("batches", "bucket_ids", "[[]]", "0"),
    ("batches", "ended_at", "x", "no time"),
    ("webhook_secrets", "rotated_at", "x", "no time"),
    ("webhook_secrets", "rotated_at", "9999-12-31T23:59:59.999Z", "no time of this program"),
    ("deliveries", "body", "7", "wrong shape"),
    ("deliveries", "due_at", "x", "no time"),
    ("delivery_attempts", "error", "{}", "code"),
    ("usage", "month", "x", "is 'x'"),
    ("facts", "value", "x", "search_disabled"),
]
ONE_OF_EACH = [
    "INSERT INTO batches SELECT 'bat_' || substr(id, 6), id, '[]', '{0}', '{0}', NULL FROM teams",
    "INSERT INTO webhook_secrets SELECT id, 1, '{0}' FROM teams",
    "INSERT INTO deliveries SELECT id, team_id, id, 'source.ready', 'a', '{{}}', 'failed', 1, NULL, '{0}' FROM sources",
    "INSERT INTO delivery_attempts SELECT id, 1, '{0}', 1, NULL, NULL FROM deliveries",
    "INSERT INTO idempotency SELECT id, 'k', 'r', NULL, '{{}}', '{0}' FROM keys",
    "INSERT INTO usage (team_id, month, answers) SELECT id, '2026-01', 1 FROM teams",
    "INSERT INTO facts VALUES ('search_disabled', '30')",
]


@pytest.mark.parametrize(("table", "column", "value", "message"), MISSHAPEN)
def test_value_that_the_service_cannot_read_is_refused_with_its_row(
    stage: Stage, table: str, column: str, value: str, message: str | None
) -> None:
    stage.sql(*(each.format("2026-01-02T03:04:05.678Z") for each in ONE_OF_EACH))
    assert restore_backup(stage.backup, stage.root / "before").is_whole
    where = "WHERE name = 'search_disabled'" if table == "facts" else ""
    stage.sql("PRAGMA ignore_check_constraints = ON", f"UPDATE {table} SET {column} = '{value}' {where}")
    if message is None:
        assert restore_backup(stage.backup, stage.data).is_whole
        return
    with pytest.raises(BackupRefused) as refused:
        restore_backup(stage.backup, stage.data)
    assert f"{table}.{column} of " in str(refused.value)
    assert message in str(refused.value)
    assert stage.files() == []


REQUEUED = [
    "UPDATE sources SET status = 'queued'",
    "UPDATE tasks SET status = 'queued', attempt = 0, finished_at = NULL WHERE source_id IS NOT NULL",
    "UPDATE memberships SET sync_status = 'queued'",
]
ONE = "WHERE id = (SELECT min(id) FROM sources)"
OF_ONE = "WHERE source_id = (SELECT min(id) FROM sources)"
DUE = "UPDATE deliveries SET status = 'pending', due_at = '2026-01-02T03:04:05.678Z', url = 'http://127.0.0.1:1/'"
#: Values in a state that is in use, of which at most one of three sources may fail.
DAMAGED = {
    "a webhook": f"UPDATE sources SET webhook = '{{}}' {ONE}",
    "a webhook's address": f'UPDATE sources SET webhook = \'{{"url": 7, "metadata": 7}}\' {ONE}',
    "metadata": f"UPDATE sources SET metadata = '[' {ONE}",
    "tags": f"UPDATE sources SET tags = '{{}}' {ONE}",
    "an extraction": f"UPDATE sources SET extraction = '7' {ONE}",
    "places": f"UPDATE memberships SET created_at = 'x' {OF_ONE}",
    "chunk sizes": "UPDATE buckets SET chunking = '[7]'",
    "no chunk sizes": "UPDATE buckets SET chunking = '{}'",
    "sizes of nothing": 'UPDATE buckets SET chunking = \'{"target": 0, "min": 0, "max": 0, "overlap": 0}\'',
    "an error": f"UPDATE tasks SET error = '7' {OF_ONE}",
    "the start of a task": f"UPDATE tasks SET created_at = 'x' {OF_ONE}",
    "the next attempt": f"UPDATE tasks SET next_attempt_at = 'x' {OF_ONE}",
    "a trace": f"UPDATE tasks SET trace = 'x' {OF_ONE}",
    "attempts": f"UPDATE tasks SET max_attempts = -1 {OF_ONE}",
    "a batch": f"UPDATE sources SET batch_id = (SELECT id FROM batches) {ONE}; UPDATE batches SET bucket_ids = '7'",
    "a secret": f"UPDATE webhook_secrets SET rotated_at = 'x'; {DUE}",
    "the end of time": f"UPDATE webhook_secrets SET rotated_at = '9999-12-31T23:59:59.999Z'; {DUE}",
    "a generation": f"UPDATE webhook_secrets SET generation = -7; {DUE}",
    "an address": f"{DUE}; UPDATE deliveries SET url = 'x' {OF_ONE}",
    "a call": f"{DUE}; UPDATE deliveries SET due_at = '0' {OF_ONE}",
    "an upload": "UPDATE uploads SET bucket_ids = '7', metadata = '7', expires_at = '0'",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_row_in_use_costs_only_itself(stage: Stage, make_installation: MakeInstallation, name: str) -> None:
    stage.sql(*(each.format("2026-01-02T03:04:05.678Z") for each in ONE_OF_EACH))
    installation = make_installation(**UNLIMITED)
    assert restore_backup(stage.backup, installation.files.root).is_whole
    with closing(sqlite3.connect(installation.files.state)) as state:
        state.executescript(";".join(("PRAGMA ignore_check_constraints = ON", *REQUEUED, DAMAGED[name])))
    installation.start()
    with installation.client() as client:
        listed = list_sources(client, "inbox")
        ended = [wait_ended(client, source["id"]) for source in listed]
        assert sum(source["ready"] for source in ended) >= 2
        client.patch("/v1/buckets/inbox", json={"chunking": {}}).raise_for_status()
        assert take_in(client, "inbox", "new.md", b"# New\n\nThe umber quay.\n")
        pending = "/v1/webhooks/deliveries?status=pending"
        wait_until(lambda: client.get(pending).raise_for_status().json()["deliveries"] == [], "no call is pending")
        with closing(sqlite3.connect(installation.files.state)) as state:
            batches = [row[0] for row in state.execute("SELECT id FROM batches")]
        for batch_id in batches:
            client.get(f"/v1/knowledge/batches/{batch_id}").raise_for_status()
    lines = [json.loads(line) for line in installation.files.log.read_text().splitlines()]
    errors = [line for line in lines if line["level"] == "error"]
    assert len(errors) <= 2, errors
