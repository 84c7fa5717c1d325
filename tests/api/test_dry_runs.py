"""A dry run is honoured where something is made, attached or finalized, and refused wherever else something changes."""

import re
from typing import Any

import pytest

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import Endpoint
from svc_daemon.databases.contract import Connection
from svc_daemon.store.schemas import SCHEMA
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import NOTES, Daemon
from tests.api.examples import EXAMPLES, name_of
from tests.api.refusals import PAGES
from tests.api.sessions import ask_batch, batch_body, open_batch, open_session, put
from tests.api.stages import Call, Stage

CHANGING = [row for row in ENDPOINTS if row.method not in ("GET", "OPTIONS") and not row.reads]
DRY = [row for row in CHANGING if "dry_run" in row.query]
REFUSING = [row for row in CHANGING if row not in DRY]


def kept(daemon: Daemon) -> list[Any]:
    """All that the daemon has stored: every row and every file of bytes."""

    def rows(connection: Connection) -> list[Any]:
        names = re.findall(r"CREATE TABLE (\w+)", SCHEMA)
        return [(name, sorted(map(repr, map(tuple, connection.execute(f"SELECT * FROM {name}"))))) for name in names]

    staged = sorted(path.name for path in daemon.files.staging.iterdir())
    # By the writer, so after all that is still queued.
    return [daemon.write(rows), daemon.blob_names(), daemon.part_ids(), staged]


def variants(row: Endpoint, call: Call) -> list[Call]:
    """The call with a dry run asked for in each way that there is."""
    in_query = call.asking(dry_run="true")
    if row.raw:
        return [in_query]
    if row.body is None and not row.form:
        bodies = ({"json": {"dry_run": True}}, {"data": {"dry_run": "true"}}, {"content": b"\xff dry_run"})
        return [in_query, *(call.but(**each) for each in bodies)]
    return [in_query, call.sending(dry_run="true" if row.form else True)]


@pytest.mark.rule("rule9.dry-run", "rule9.everywhere")
@pytest.mark.parametrize("row", DRY, ids=name_of)
def test_a_dry_run_shows_what_would_be_made_and_makes_nothing(stage: Stage, row: Endpoint) -> None:
    call = EXAMPLES[row.method, row.path][0](stage)
    if row.repeatable:
        call = call.naming(Idempotency_Key=stage.name())
    with stage.resting():
        before, fetches = kept(stage.daemon), len(stage.site.server.requests)
        with stage.limited(creates_per_second=1, bytes_per_minute=10_000) as rates:
            for each in variants(row, call):
                answer = body_of(stage.send(each))
                assert (answer["dry_run"], answer["valid"], answer["errors"]) == (True, True, [])
                assert answer["would_create"]
            assert stage.daemon.loop.run(rates.used_bytes(stage.daemon.team_id)) == 0
            stage.daemon.loop.run(rates.charge_create(stage.daemon.team_id, 0))
        assert (kept(stage.daemon), len(stage.site.server.requests)) == (before, fetches)
    made = stage.send(call)
    assert made.is_success
    if row.repeatable:
        # The real call has the key to itself, and from then on a dry one would be its replay.
        assert "Idempotent-Replayed" not in made.headers
        for each in variants(row, call):
            assert body_of(stage.send(each))["would_create"] is None
        again = stage.send(call)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert ids_of(body_of(again)) == ids_of(made.json())
        other = stage.send(EXAMPLES[row.method, row.path][0](stage).naming(**call.options["headers"]))
        if call.is_to("/files/import", *PAGES):
            # The key alone tells whether it is the same import.
            assert other.headers["Idempotent-Replayed"] == "true"
        else:
            details_of(other, "idempotency_key_conflict")


def ids_of(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name.endswith("id") and name != "request_id"}


def test_a_dry_run_is_not_taken_back_by_a_second_parameter(shared: Daemon) -> None:
    source_id = shared.add_source()
    for query in ("dry_run=true&dry_run=false", "dry_run=false&dry_run=true"):
        assert refused_field(shared.ask("DELETE", f"/v1/sources/{source_id}?{query}")) == "dry_run"
        assert refused_field(shared.ask("POST", f"/v1/buckets?{query}", json={"slug": "judged"})) == "dry_run"
    assert shared.ask("GET", "/v1/buckets/judged").status_code == 404


@pytest.mark.rule("rule9.everywhere")
@pytest.mark.parametrize("row", REFUSING, ids=name_of)
def test_what_has_no_dry_run_refuses_one_and_changes_nothing(stage: Stage, row: Endpoint) -> None:
    call = EXAMPLES[row.method, row.path][0](stage)
    with stage.resting():
        before = kept(stage.daemon)
        for each in variants(row, call):
            answer = stage.send(each)
            assert answer.status_code == 400, answer.text
            assert "dry run" in answer.text
        assert kept(stage.daemon) == before
    assert stage.send(call.asking(dry_run="false")).is_success


def test_what_is_there_already_would_not_be_made(shared: Daemon) -> None:
    source_id = shared.add_source()
    put = body_of(shared.ask("PUT", "/v1/buckets/inbox", json={"dry_run": True}))
    attached = shared.post("/v1/buckets/inbox/sources", json={"source_id": source_id, "dry_run": True})
    assert (put["would_create"], attached["would_create"]) == (None, None)


def test_a_dry_finalize_is_refused_as_the_real_one_would_be(daemon: Daemon) -> None:
    session = open_session(daemon, NOTES)
    path = f"/v1/buckets/inbox/uploads/{session['session_id']}/finalize"
    details_of(daemon.ask("POST", path, json={"dry_run": True}), "blob_not_uploaded")
    body_of(put(daemon, session, NOTES))
    wanted = daemon.post(path, json={"dry_run": True})["would_create"]
    made = daemon.post(path, 201)
    assert {name: made[name] for name in wanted} == wanted
    assert daemon.post(path, json={"dry_run": True})["would_create"] is None
    daemon.delete(f"/v1/sources/{made['id']}")
    assert daemon.post(path, json={"dry_run": True})["would_create"] is None


def test_a_dry_finalize_of_a_batch_names_what_has_arrived(daemon: Daemon) -> None:
    batch = open_batch(daemon, [("a", NOTES), ("b", NOTES)])
    path = f"/v1/buckets/inbox/batches/{batch['batch_id']}/finalize"
    body_of(put(daemon, batch["by_id"]["a"], NOTES))
    for mode in ("finalize_uploaded", "abandon_pending"):
        dry = daemon.post(path, json={"mode": mode, "dry_run": True})
        assert (dry["would_create"]["client_file_ids"], [each["path"] for each in dry["errors"]]) == (["a"], ["b"])
    done = daemon.post(path)
    assert ([each["client_file_id"] for each in done["finalized"]], len(done["pending"])) == (["a"], 1)
    assert daemon.post(path, json={"dry_run": True})["would_create"] is None


def test_a_dry_run_asked_for_inside_of_a_batch_is_refused(shared: Daemon) -> None:
    body = batch_body([("a", NOTES)])
    before = shared.count("batches")
    manifest, item, file = body["manifest"], body["manifest"]["items"][0], body["files"][0]
    for path, part in (("manifest", manifest), ("manifest.items.0", item), ("files.0", file)):
        part["dry_run"] = True
        assert refused_field(ask_batch(shared, body)) == f"{path}.dry_run"
        del part["dry_run"]
    assert shared.count("batches") == before


def test_the_operators_routes_refuse_one_too(daemon: Daemon) -> None:
    before = kept(daemon)
    for method, path, body in (
        ("POST", "/admin/teams", {"name": "second"}),
        ("POST", "/admin/keys", {"team": "default", "preset": "admin"}),
        ("POST", f"/admin/teams/{daemon.team_id}/rebuild", {}),
        ("PUT", "/admin/search", {"enabled": False}),
        ("POST", "/admin/model", {}),
        ("POST", "/admin/restored", {}),
    ):
        for options in ({"params": {"dry_run": "true"}, "json": body}, {"json": body | {"dry_run": True}}):
            details_of(daemon.ask(method, path, key=daemon.operator_token, **options), "invalid_request")
    assert kept(daemon) == before
