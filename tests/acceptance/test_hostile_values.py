"""A state whose values the service can't read is refused at a restore, and a row of it costs only itself elsewhere."""

import json
import sqlite3
import zlib
from contextlib import closing

import pytest

from svc_daemon.provider.embedded.packing import PIECE_CHARACTERS
from svc_daemon.provider.embedded.provider import EmbeddedProvider
from svc_daemon.provider.errors import IndexDamaged
from svc_daemon.store.files.backups import BackupRefused
from svc_daemon.store.foreign_states import read_any_text, refuse_foreign
from tests.acceptance.backups import Stage, restore_backup
from tests.acceptance.calls import list_sources, take_in, wait_ended
from tests.acceptance.installations import wait_until
from tests.conftest import UNLIMITED, MakeInstallation

pytestmark = [pytest.mark.sqlite, pytest.mark.folders]


NOW, GONE = "2026-01-02T03:04:05.678Z", "src_01k2aaaaaaaaaaaaaaaaaaaaaa"
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
    ("keys", "capabilities", '["knowledge:read", "root"]', "'root' is none of the capabilities"),
    ("keys", "capabilities", '["*"]', "'*' is none of the capabilities"),
    ("keys", "buckets", '["*", "bkt_x", ""]', "'*' is none of the buckets"),
    ("keys", "buckets", '["bkt_x"]', "'bkt_x' is none of the buckets"),
    ("keys", "models", '["*"]', "'*' is none of the models"),
    ("keys", "models", '["svc-agent:"]', "'svc-agent:' is none of the models"),
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
    ("sources", "metadata", '{"a": 1e999}', "not valid"),
    ("buckets", "metadata", '{"a": NaN}', "not valid"),
    ("deliveries", "body", '{"a": [-Infinity]}', "not valid"),
    ("events", "type", "source.eaten", "which is no type"),
    ("events", "type", "\x1b[1m", "which is no type"),
    ("buckets", "name", "\x1b[2J", "invisible characters"),
    ("buckets", "slug", "../x", "is '../x'"),
    ("buckets", "description", "\x1b]0;x", "control"),
    ("teams", "name", "\u202ex", "invisible characters"),
    ("keys", "name", "a\nb", "invisible characters"),
    ("agents", "name", "\x9b1m", "invisible characters"),
    ("agents", "instructions", "\x07", "control"),
    ("sources", "title", "\x1b]0;x", "invisible characters"),
    ("sources", "mapping", "a\rb", "invisible characters"),
    ("sources", "tags", '["a\\ud800"]', "wrong shape"),
    ("uploads", "tags", '["\\u001b[1m"]', "a tag must not"),
]
ONE_OF_EACH = [
    "INSERT INTO batches SELECT 'bat_' || substr(id, 6), id, '[]', '{0}', '{0}', NULL, NULL FROM teams",
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
    stage.sql(*(each.format(NOW) for each in ONE_OF_EACH))
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


def test_backup_with_a_row_in_each_of_these_tables_is_restored(stage: Stage) -> None:
    stage.sql(*(each.format(NOW) for each in ONE_OF_EACH))
    assert restore_backup(stage.backup, stage.data).is_whole


#: Tables that a backup has rows of at times only.
RARE = [
    "INSERT INTO tombstones (source_id, team_id, created_at) SELECT 'src_' || substr(id, 6), id, '{0}' FROM teams",
    "INSERT INTO detachments (source_id, team_id) SELECT 'src_' || substr(id, 6), id FROM teams",
    "INSERT INTO cascades SELECT min(t.id), t.team_id, b.id, '', 1, 1, 0, 0, NULL FROM tasks t, buckets b",
    "INSERT INTO recognized_pages SELECT id, 1, sha256, 'text', 0.9, '' FROM sources WHERE sha256 IS NOT NULL",
    "INSERT INTO watchers SELECT id, 'key_x', 'w', '[]', '{0}' FROM teams",
    "INSERT INTO vector_offers SELECT team_id, 'x', id, 'm', 'v', 1, '{0}' FROM buckets",
]


def test_every_number_and_every_text_is_checked(stage: Stage, large: bool) -> None:
    stage.sql(*(each.format(NOW) for each in (*ONE_OF_EACH, *RARE)), "PRAGMA journal_mode = DELETE")
    path, tried = stage.backup / "state.db", 0
    with closing(sqlite3.connect(path, isolation_level=None)) as state:
        state.row_factory, state.text_factory = sqlite3.Row, read_any_text
        state.execute("PRAGMA ignore_check_constraints = ON")
        listed = state.execute(
            "SELECT m.name, p.name, p.type FROM sqlite_master m, pragma_table_info(m.name) p"
            " WHERE m.type = 'table' AND m.name NOT LIKE '%sqlite%'"
        )
        for table, column, kind in listed.fetchall():
            values = ("CAST(x'61ff' AS TEXT)", "'a' || char(0)") if kind == "TEXT" else (-1, 2**63 - 1)
            # The columns take turns with the two values.
            for value in values if large else (values[tried % 2],):
                state.execute("BEGIN")
                changed = state.execute(f"UPDATE OR REPLACE {table} SET {column} = {value}")
                assert changed.rowcount > 0, table
                with pytest.raises(BackupRefused, match=rf"\b{table}\.{column} "):
                    refuse_foreign(state, path.stat().st_size)
                state.execute("ROLLBACK")
                tried += 1
        refuse_foreign(state, path.stat().st_size)
    assert tried > 150


ONE, LAST = (f"(SELECT {which}(id) FROM sources)" for which in ("min", "max"))
#: Statements that make values which fit their columns and can't be used, and a part of the error.
UNUSABLE = {
    "a source that replaces itself": (f"UPDATE sources SET replaces = id WHERE id = {ONE}", "sources.replaces of id"),
    "sources that replace each other": (
        f"UPDATE sources SET replaces = CASE id WHEN {ONE} THEN {LAST} ELSE {ONE} END WHERE id IN ({ONE}, {LAST})",
        "leads back to the row itself",
    ),
    "a deleted source that replaces itself": (
        f"INSERT INTO tombstones SELECT '{GONE}', id, '{GONE}', NULL, '{NOW}', NULL FROM teams",
        "tombstones.replaced_by of source_id",
    ),
    "a second team of the same name": (
        f"INSERT INTO teams (id, name, created_at) SELECT substr(id, 1, 29) || '00', name, '{NOW}' FROM teams",
        "is 'default' for two teams",
    ),
    "a task without attempts": ("UPDATE tasks SET max_attempts = 0", "is 0, which is not from 1"),
    "a question without words": ("UPDATE sources SET type = 'qa'", "is missing, and its type is qa"),
    "a page without an address": ("UPDATE sources SET type = 'page'", "is missing, and its type is page"),
    "an endless lease": ("UPDATE memberships SET lease_until_s = 9e999", "is inf, which is not from 0"),
    "a title of megabytes": ("UPDATE sources SET title = printf('%.*c', 2000000, 'A')", "bytes in sources.title"),
    "metadata of megabytes": (
        """UPDATE sources SET metadata = printf('{"a": "%.*c"}', 20000000, 'A')""",
        "bytes in sources.metadata",
    ),
    "an integer of thousands of digits": (
        f"""UPDATE sources SET metadata = '{{"a": {"9" * 5000}}}'""",
        "sources.metadata of id",
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_value_that_the_service_cannot_use_is_refused(stage: Stage, name: str) -> None:
    statement, message = UNUSABLE[name]
    stage.sql(statement)
    with pytest.raises(BackupRefused) as refused:
        restore_backup(stage.backup, stage.data)
    assert message in str(refused.value)
    assert stage.files() == []
    assert not (stage.data / "restoring").exists()


def test_restore_lists_a_hundred_problems_and_counts_the_others(stage: Stage) -> None:
    task = "'task_' || printf('%026d', n), id, 'provider_file_search_indexing', 'queued', 0, 0, 0, 3, 'prompt'"
    stage.sql(
        "WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < 250)"
        " INSERT INTO tasks (id, team_id, type, status, attempt, token, chunks_done, max_attempts, lane, created_at)"
        f" SELECT {task}, '{NOW}' FROM teams, more"
    )
    summary = restore_backup(stage.backup, stage.data)
    lines, facts = summary.lines(), summary.as_json()
    assert len(summary.problems) >= 250
    assert (len(facts["problems"]), facts["more_problems"]) == (100, len(summary.problems) - 100)
    assert (len(lines), lines[-2]) == (
        102,
        f"and {len(summary.problems) - 100} more problems: `svc-daemon verify` lists them all",
    )


def test_unexpected_error_of_a_restore_leaves_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OverflowError("int too big to convert")

    with monkeypatch.context() as patched:
        patched.setattr("svc_daemon.offline.restoring._renew_state", fail)
        with pytest.raises(OverflowError):
            restore_backup(stage.backup, stage.data)
    assert not (stage.data / "restoring").exists()
    assert restore_backup(stage.backup, stage.data).is_whole


REQUEUED = [
    "UPDATE sources SET status = 'queued'",
    "UPDATE tasks SET status = 'queued', attempt = 0, finished_at = NULL WHERE source_id IS NOT NULL",
    "UPDATE memberships SET sync_status = 'queued'",
]
OF_ONE = "WHERE source_id = (SELECT min(id) FROM sources)"
DUE = "UPDATE deliveries SET status = 'pending', due_at = '2026-01-02T03:04:05.678Z', url = 'http://127.0.0.1:1/'"
#: Values in a state that is in use, of which at most one of three sources may fail.
DAMAGED = {
    "a webhook": f"UPDATE sources SET webhook = '{{}}' WHERE id = {ONE}",
    "a webhook's address": f'UPDATE sources SET webhook = \'{{"url": 7, "metadata": 7}}\' WHERE id = {ONE}',
    "metadata": f"UPDATE sources SET metadata = '[' WHERE id = {ONE}",
    "tags": f"UPDATE sources SET tags = '{{}}' WHERE id = {ONE}",
    "an extraction": f"UPDATE sources SET extraction = '7' WHERE id = {ONE}",
    "places": f"UPDATE memberships SET created_at = 'x' {OF_ONE}",
    "chunk sizes": "UPDATE buckets SET chunking = '[7]'",
    "no chunk sizes": "UPDATE buckets SET chunking = '{}'",
    "sizes of nothing": 'UPDATE buckets SET chunking = \'{"target": 0, "min": 0, "max": 0, "overlap": 0}\'',
    "an error": f"UPDATE tasks SET error = '7' {OF_ONE}",
    "the start of a task": f"UPDATE tasks SET created_at = 'x' {OF_ONE}",
    "the next attempt": f"UPDATE tasks SET next_attempt_at = 'x' {OF_ONE}",
    "a trace": f"UPDATE tasks SET trace = 'x' {OF_ONE}",
    "attempts": f"UPDATE tasks SET max_attempts = -1 {OF_ONE}",
    "a batch": "UPDATE sources SET batch_id = (SELECT id FROM batches); UPDATE batches SET bucket_ids = '7'",
    "a secret": f"UPDATE webhook_secrets SET rotated_at = 'x'; {DUE}",
    "the end of time": f"UPDATE webhook_secrets SET rotated_at = '9999-12-31T23:59:59.999Z'; {DUE}",
    "a generation": f"UPDATE webhook_secrets SET generation = -7; {DUE}",
    "an address": f"{DUE}; UPDATE deliveries SET url = 'x' {OF_ONE}",
    "an address that is no text": f"{DUE}; UPDATE deliveries SET url = CAST(x'ff' AS TEXT) {OF_ONE}",
    "a source that replaces itself": f"UPDATE sources SET replaces = id WHERE id = {ONE}",
    "a call": f"{DUE}; UPDATE deliveries SET due_at = '0' {OF_ONE}",
    "an upload": "UPDATE uploads SET bucket_ids = '7', metadata = '7', expires_at = '0'",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_row_in_use_costs_only_itself(stage: Stage, make_installation: MakeInstallation, name: str) -> None:
    stage.sql(*(each.format(NOW) for each in ONE_OF_EACH))
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
        with closing(sqlite3.connect(installation.files.state)) as state:
            pending = "SELECT count(*) FROM deliveries WHERE status = 'pending'"
            wait_until(lambda: state.execute(pending).fetchone() == (0,), "no call is pending")
            batches = [row[0] for row in state.execute("SELECT id FROM batches")]
        for batch_id in batches:
            client.get(f"/v1/knowledge/batches/{batch_id}").raise_for_status()
    lines = [json.loads(line) for line in installation.files.log.read_text().splitlines()]
    errors = [line for line in lines if line["level"] == "error"]
    assert len(errors) <= 2, errors


#: Lists of a key that no key can have: capabilities, models and buckets.
ODD_GRANTS = [
    ('["knowledge:read", "root"]', None, None),
    ('["*"]', None, None),
    ('["knowledge:read"]', '["*"]', None),
    ('["knowledge:read"]', '["svc-agent:"]', '["bkt_x"]'),
    ('["knowledge:read"]', None, '["*", "bkt_x", ""]'),
]


def test_key_with_odd_grants_is_listed_and_revoked_and_permits_no_more(
    stage: Stage, make_installation: MakeInstallation
) -> None:
    installation = make_installation(**UNLIMITED)
    assert restore_backup(stage.backup, installation.files.root).is_whole
    installation.start()
    ids = {f"key_{number:026}" for number in range(len(ODD_GRANTS))}
    with closing(sqlite3.connect(installation.files.state)) as state, state:
        for key_id, grants in zip(sorted(ids), ODD_GRANTS, strict=True):
            state.execute(
                "INSERT INTO keys (id, team_id, name, secret_hash, capabilities, models, buckets, created_at)"
                " SELECT ?, id, 'odd', ?, ?, ?, ?, ? FROM teams",
                (key_id, "0" * 64, *grants, NOW),
            )
    with installation.client() as client:
        listed = {key["id"]: key for key in client.get("/v1/keys").raise_for_status().json()["keys"]}
        assert ids < listed.keys()
        odd = {text for key_id in ids for text in (*listed[key_id]["capabilities"], *(listed[key_id]["buckets"] or []))}
        assert odd == {"knowledge:read"}
        for key_id in ids:
            assert client.delete(f"/v1/keys/{key_id}").raise_for_status().json()["revoked_at"]


@pytest.mark.parametrize(
    "piece",
    [zlib.compress(b"nothing of note")[:-3], b"x", zlib.compress(b"\xff"), zlib.compress(bytes(5 * PIECE_CHARACTERS))],
    ids=["cut short", "not packed", "no text", "larger than any"],
)
def test_text_of_an_index_that_cannot_be_unpacked_counts_as_damage(stage: Stage, piece: bytes) -> None:
    (index,) = (stage.backup / "index").iterdir()
    provider = EmbeddedProvider(index.parent)
    with closing(provider), closing(sqlite3.connect(index)) as texts:
        (source_id,) = texts.execute("SELECT min(source_id) FROM documents").fetchone()
        assert provider.get_text(index.stem, source_id)
        with texts:
            texts.execute("UPDATE texts SET text_zlib = ?", (piece,))
        with pytest.raises(IndexDamaged, match="a text can't be read"):
            provider.get_text(index.stem, source_id)
