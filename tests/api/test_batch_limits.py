"""How much a batch takes and costs, and what a dry run does not."""

from typing import Any

import pytest

from svc_daemon.settings import Limits
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sessions import ask_batch, batch_body, batch_status, finalize_batch, open_batch, outcomes, path_of, put

A, B, C = ("a", b"The umber quay.\n"), ("b", b"The grey mole.\n"), ("c", b"The tall crane.\n")
THREE = (A, B, C)
BYTES = dict(THREE)


def test_a_hundred_files_at_once(working: Daemon) -> None:
    files = [(f"f{number}", b"Crane number %d stands on the quay.\n" % number) for number in range(100)]
    batch = open_batch(working, files)
    puts = [working.asking("PUT", path_of(batch["by_id"][name]), key="", content=data) for name, data in files]
    assert {answer.status_code for answer in working.ask_together(*puts)} == {200}
    ask = working.asking("POST", f"/v1/buckets/inbox/batches/{batch['batch_id']}/finalize")
    answers = working.ask_together(*[ask] * 4)
    told = [answer.json() for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409}
    made = [item["client_file_id"] for one in told for item in one["finalized"]]
    assert sorted(made) == sorted(name for name, _ in files)
    assert all(outcomes(one).keys() == dict(files).keys() for one in told)
    assert (working.count("sources"), len(list(working.files.blobs.iterdir()))) == (100, 100)
    working.wait(lambda: bool(batch_status(working, batch)["terminal"]), "the batch ends")
    status = batch_status(working, batch)
    assert (status["status"], status["counters"]["active"]) == ("completed", 100)


def test_a_batch_counts_once_and_its_bytes_together(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=1, bytes_per_minute=100))
    daemon.make_bucket()
    files = [("a", b"x" * 50), ("b", b"x" * 40)]
    batch = open_batch(daemon, files, repeat_key="k")
    body_of(ask_batch(daemon, batch_body(files), repeat_key="k"))
    details_of(ask_batch(daemon, batch_body([A]), repeat_key="other"), "upload_rate_limited")
    daemon.advance(1)
    assert details_of(ask_batch(daemon, batch_body([A]), repeat_key="other"), "quota_exceeded")["used_bytes"] == 90
    for name, data in files:
        body_of(put(daemon, batch["by_id"][name], data))
    assert outcomes(finalize_batch(daemon, batch)) == {"a": "finalized", "b": "finalized"}
    daemon.advance(60)
    body_of(ask_batch(daemon, batch_body([A]), repeat_key="other"), 201)


@pytest.mark.parametrize("where", ["body", "query"])
def test_a_dry_run_stores_counts_and_claims_nothing(make_daemon: MakeDaemon, where: str) -> None:
    daemon = make_daemon(limits=Limits(creates_per_second=1, bytes_per_minute=100))
    daemon.make_bucket()
    body = batch_body([A, ("empty", b"")], batch_idempotency_key="k")
    dry = body | ({"dry_run": True} if where == "body" else {})
    options: dict[str, Any] = {"params": {"dry_run": "true"}} if where == "query" else {}
    for _ in range(3):
        told = body_of(ask_batch(daemon, dry, **options))
        assert (told["dry_run"], told["would_create"]["files"]) == (True, 1)
        assert [error["path"] for error in told["errors"]] == ["empty"]
    invalid = batch_body([A], batch_idempotency_key="a b") | {"dry_run": True}
    details_of(ask_batch(daemon, invalid), "invalid_idempotency_key")
    assert (daemon.count("batches"), daemon.count("uploads"), daemon.count("idempotency")) == (0, 0, 0)
    body_of(ask_batch(daemon, body), 201)
