"""Webhooks: once for each event, signed, tried again once with the same id, written down, sent again when asked."""

import json
import threading
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from svc_daemon.provider.errors import ProviderError
from svc_daemon.wire.webhooks import DeliveryList
from tests.acceptance.installations import wait_until
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.holds import PATIENCE_S
from tests.api.sites import Receiver, Site, receiving
from tests.fetch.servers import Exchange, Seen, serving

SECRET = "/v1/webhooks/secret"


def take(daemon: Daemon, url: str, receiver_url: str, door: str = "files/import", **metadata: Any) -> str:
    """The id of a source whose end the receiver is told."""
    body = {"url": url, "webhook": {"url": receiver_url, "metadata": metadata}}
    return str(body_of(daemon.ask("POST", f"/v1/buckets/inbox/{door}", json=body), 201)["id"])


def deliveries(daemon: Daemon, **query: str) -> list[dict[str, Any]]:
    told = body_of(daemon.ask("GET", "/v1/webhooks/deliveries", params=query))
    assert DeliveryList.model_validate(told, extra="forbid")
    return list(told["deliveries"])


def settled(daemon: Daemon, status: str, attempts: int = 1) -> dict[str, Any]:
    """The only delivery, once it has the status after so many calls."""

    def reached() -> dict[str, Any] | None:
        listed = deliveries(daemon)
        match = len(listed) == 1 and (listed[0]["status"], len(listed[0]["attempts"])) == (status, attempts)
        return listed[0] if match else None

    return wait_until(reached, f"the delivery is {status} after {attempts} calls", PATIENCE_S)


def secret_of(daemon: Daemon) -> str:
    return str(body_of(daemon.ask("GET", SECRET))["secret"])


def verified(daemon: Daemon, call: Seen) -> dict[str, Any]:
    told = Webhook(secret_of(daemon)).verify(call.body, dict(call.headers))
    assert call.headers["content-type"] == "application/json"
    assert told["id"] == call.headers["webhook-id"]
    return dict(told)


@pytest.mark.parametrize(
    ("door", "path"), [("files/import", "/notes.md"), ("files/import", "/paper.pdf"), ("pages", "/page")]
)
def test_ready_is_told_once_and_signed(working: Daemon, site: Site, door: str, path: str) -> None:
    with receiving() as receiver:
        source_id = take(working, site.url(path), receiver.url, door, ticket=7, name="Zoë")
        logged = settled(working, "delivered")
    (call,) = receiver.calls
    told = verified(working, call)
    assert (call.method, call.path) == ("POST", "/hook")
    assert told == {
        "id": logged["id"],
        "type": "source.ready",
        "event": "source.ready",
        "timestamp": logged["created_at"],
        "source_id": source_id,
        "metadata": {"ticket": 7, "name": "Zoë"},
        "data": {
            "id": source_id,
            "status": "active",
            "ready": True,
            "bucket_sync_status": "active",
            "type": "page" if door == "pages" else "file",
            "source_url": site.url(path),
        },
    }
    assert logged["id"].startswith("evt_")
    assert (logged["event"], logged["source_id"], logged["url"]) == ("source.ready", source_id, receiver.url)
    (attempt,) = logged["attempts"]
    assert (attempt["attempt"], attempt["http_status"], attempt["error"]) == (1, 204, None)
    assert logged["next_attempt_at"] is None
    assert working.source(source_id)["ready"]


def test_failed_is_told_with_its_reason(working: Daemon, site: Site) -> None:
    with receiving() as receiver:
        source_id = take(working, site.url("/blank.txt"), receiver.url)
        settled(working, "delivered")
    told = verified(working, receiver.calls[0])
    assert (told["event"], told["reason"], told["source_id"]) == ("source.failed", "no_extractable_text", source_id)
    assert (told["data"]["ready"], told["data"]["status"]) == (False, "failed")
    assert told["data"]["error"]["code"] == "no_extractable_text"


def test_attempts_that_are_used_up_are_the_reason(daemon: Daemon, site: Site) -> None:
    with receiving() as receiver:
        take(daemon, site.url("/notes.md"), receiver.url)
        daemon.provider.fail(
            "put_document", ProviderError("The index is away.", retryable=True), times=daemon.limits.task_attempts
        )
        daemon.start()
        wait_until(lambda: _in_due_time(daemon, receiver), "the failure is told", PATIENCE_S)
    assert verified(daemon, receiver.calls[0])["reason"] == "max_attempts_exhausted"


def _in_due_time(daemon: Daemon, receiver: Receiver) -> bool:
    """Whether the receiver was called; if not, what pauses need not wait."""
    daemon.advance(10)
    return bool(receiver.calls)


def test_a_receiver_that_fails_once_gets_the_same_event_again(working: Daemon, site: Site) -> None:
    with receiving(500) as receiver:
        take(working, site.url("/notes.md"), receiver.url)
        waiting = settled(working, "pending")
        assert waiting["attempts"][0]["http_status"] == 500
        assert len(receiver.calls) == 1
        working.advance(5)
        logged = settled(working, "delivered", 2)
    first, second = (verified(working, call) for call in receiver.calls)
    assert first == second
    assert first["id"] == logged["id"]
    assert [attempt["http_status"] for attempt in logged["attempts"]] == [500, 204]


@pytest.mark.parametrize("status", [301, 400, 404, 410, 503])
def test_after_one_retry_it_is_given_up(working: Daemon, site: Site, status: int) -> None:
    with receiving(status, status, status) as receiver:
        take(working, site.url("/notes.md"), receiver.url)
        settled(working, "pending")
        working.advance(5)
        assert settled(working, "failed", 2)["next_attempt_at"] is None
        working.advance(3600)
        assert len(receiver.calls) == 2


def test_a_receiver_that_is_not_there_is_written_down(working: Daemon, site: Site) -> None:
    with receiving() as receiver:
        nobody = receiver.url
    take(working, site.url("/notes.md"), nobody)
    (attempt,) = settled(working, "pending")["attempts"]
    assert attempt["http_status"] is None
    assert (attempt["error"]["code"], attempt["error"]["reason"]) == ("url_fetch_failed", "unreachable")


def test_what_was_delivered_or_given_up_can_be_sent_again(working: Daemon, site: Site) -> None:
    with receiving(500, 500, 500) as receiver:
        take(working, site.url("/notes.md"), receiver.url)
        settled(working, "pending")
        working.advance(5)
        path = f"/v1/webhooks/deliveries/{settled(working, 'failed', 2)['id']}/resend"
        assert body_of(working.ask("POST", path))["status"] == "pending"
        settled(working, "failed", 3)
        body_of(working.ask("POST", path))
        settled(working, "delivered", 4)
        body_of(working.ask("POST", path))
        settled(working, "delivered", 5)
    assert len({call.headers["webhook-id"] for call in receiver.calls}) == 1
    details_of(working.ask("POST", "/v1/webhooks/deliveries/evt_none/resend"), "not_found")


def test_an_event_survives_a_stop_between_ready_and_the_call(make_daemon: MakeDaemon, site: Site) -> None:
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start("indexing", "syncing")
    with receiving() as receiver:
        source_id = take(daemon, site.url("/notes.md"), receiver.url)
        daemon.wait_ready(source_id)
        event_id = deliveries(daemon)[0]["id"]
        daemon.close()
        again = make_daemon()
        again.start("delivering")
        assert settled(again, "delivered")["id"] == event_id
        assert [call.headers["webhook-id"] for call in receiver.calls] == [event_id]


def test_a_call_that_is_cut_off_is_made_again_with_the_same_id(make_daemon: MakeDaemon, site: Site) -> None:
    goes_on = threading.Event()
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start()
    with serving(lambda exchange: _answer_late(exchange, goes_on)) as server:
        take(daemon, site.url("/notes.md"), server.url("/hook"))
        wait_until(lambda: server.requests, "the call is under way", PATIENCE_S)
        daemon.close()
        goes_on.set()
        again = make_daemon()
        again.start("delivering")
        settled(again, "delivered")
        assert len({call.headers["webhook-id"] for call in server.requests}) == 1
        assert len(server.requests) == 2


def _answer_late(exchange: Exchange, goes_on: threading.Event) -> None:
    goes_on.wait(PATIENCE_S)
    exchange.answer(204)


def test_ready_again_is_not_told_again(working: Daemon, site: Site) -> None:
    with receiving() as receiver:
        source_id = take(working, site.url("/notes.md"), receiver.url)
        settled(working, "delivered")
        site.put("/notes.md", b"The cobalt quay.\n", "text/plain")
        body_of(working.ask("POST", f"/v1/sources/{source_id}/refresh"), 202)
        working.wait_ready(source_id)
        settled(working, "delivered")
    assert len(receiver.calls) == 1


def test_ready_after_a_failure_is_another_event(working: Daemon, site: Site) -> None:
    with receiving() as receiver:
        source_id = take(working, site.url("/blank.txt"), receiver.url)
        settled(working, "delivered")
        site.put("/blank.txt", b"The cobalt quay.\n", "text/plain")
        body_of(working.ask("POST", f"/v1/sources/{source_id}/refresh"), 202)
        wait_until(lambda: len(receiver.calls) == 2, "both are told", PATIENCE_S)
    events = [json.loads(call.body)["event"] for call in receiver.calls]
    assert events == ["source.failed", "source.ready"]


def test_ready_comes_with_the_last_bucket_and_is_told_then(working: Daemon, site: Site) -> None:
    working.stop()
    working.make_bucket("second")
    with receiving() as receiver:
        source_id = take(working, site.url("/notes.md"), receiver.url)
        body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": source_id}))
        working.start()
        settled(working, "delivered")
    assert working.source(source_id)["ready"]
    assert len(receiver.calls) == 1


@pytest.mark.parametrize("leave", ["/v1/buckets/second/sources/{source_id}", "/v1/buckets/second?force=true"])
def test_ready_by_leaving_the_bucket_that_it_waited_for_is_told(daemon: Daemon, site: Site, leave: str) -> None:
    second = daemon.make_bucket("second")
    with receiving() as receiver:
        source_id = take(daemon, site.url("/notes.md"), receiver.url)
        body_of(daemon.ask("POST", "/v1/buckets/second/sources", json={"source_id": source_id}))
        daemon.start("indexing", "delivering", "cascading")
        daemon.wait_status(source_id, "active")
        put_off = "UPDATE memberships SET due_at = '2999-01-01T00:00:00.000Z' WHERE bucket_id = :bucket_id"
        daemon.write(lambda connection: connection.execute(put_off, {"bucket_id": second}))
        daemon.start("syncing")
        wait_until(lambda: daemon.members() == [source_id], "it is in the first bucket", PATIENCE_S)
        assert (daemon.source(source_id)["ready"], deliveries(daemon)) == (False, [])
        body_of(daemon.ask("DELETE", leave.format(source_id=source_id)))
        wait_until(lambda: deliveries(daemon), "the event is written", PATIENCE_S)
        daemon.wake()
        settled(daemon, "delivered")
    assert json.loads(receiver.calls[0].body)["event"] == "source.ready"


def test_a_slow_receiver_delays_no_other(working: Daemon, site: Site) -> None:
    goes_on = threading.Event()
    with serving(lambda exchange: _answer_late(exchange, goes_on)) as slow, receiving() as quick:
        take(working, site.url("/notes.md"), slow.url("/hook"))
        wait_until(lambda: slow.requests, "the slow one is called", PATIENCE_S)
        take(working, site.url("/blank.txt"), quick.url)
        wait_until(lambda: quick.calls, "the quick one is told meanwhile", PATIENCE_S)
        goes_on.set()


def test_a_rotated_secret_signs_beside_the_one_before_for_a_day(working: Daemon, site: Site) -> None:
    old = body_of(working.ask("GET", SECRET))
    assert old["secret"].startswith("whsec_")
    assert (old["previous_secret"], old["rotated_at"]) == (None, None)
    new = body_of(working.ask("POST", f"{SECRET}/rotate"))
    assert new["previous_secret"] == old["secret"] != new["secret"]
    with receiving() as receiver:
        take(working, site.url("/notes.md"), receiver.url)
        path = f"/v1/webhooks/deliveries/{settled(working, 'delivered')['id']}/resend"
        assert all(verifies(receiver, secret) for secret in (old["secret"], new["secret"]))
        working.advance(24 * 3600 + 1)
        told = body_of(working.ask("GET", SECRET))
        assert (told["secret"], told["previous_secret"]) == (new["secret"], None)
        body_of(working.ask("POST", path))
        settled(working, "delivered", 2)
    signatures = [len(call.headers["webhook-signature"].split()) for call in receiver.calls]
    assert signatures == [2, 1]


def verifies(receiver: Receiver, secret: str) -> bool:
    """Whether the last call is signed with this secret."""
    call = receiver.calls[-1]
    try:
        Webhook(secret).verify(call.body, dict(call.headers))
    except WebhookVerificationError:
        return False
    return True


def test_a_second_rotation_ends_the_oldest_secret(daemon: Daemon) -> None:
    secrets = [secret_of(daemon)]
    secrets += [body_of(daemon.ask("POST", f"{SECRET}/rotate"))["secret"] for _ in range(2)]
    told = body_of(daemon.ask("GET", SECRET))
    assert (told["secret"], told["previous_secret"]) == (secrets[2], secrets[1])
    assert len(set(secrets)) == 3


def test_each_team_has_its_own_secret_and_log(working: Daemon, site: Site) -> None:
    other = working.add_team()
    assert body_of(working.ask("GET", SECRET, key=other))["secret"] != secret_of(working)
    with receiving() as receiver:
        take(working, site.url("/notes.md"), receiver.url)
        event_id = settled(working, "delivered")["id"]
    assert body_of(working.ask("GET", "/v1/webhooks/deliveries", key=other))["deliveries"] == []
    details_of(working.ask("POST", f"/v1/webhooks/deliveries/{event_id}/resend", key=other), "not_found")


def test_a_restricted_key_sees_the_deliveries_of_its_buckets(working: Daemon, site: Site) -> None:
    own, other = (working.add_key(buckets=(working.make_bucket(slug),)) for slug in ("inbox", "second"))
    with receiving() as receiver:
        take(working, site.url("/notes.md"), receiver.url)
        event_id = settled(working, "delivered")["id"]
        for key, seen in ((own, [event_id]), (other, [])):
            told = body_of(working.ask("GET", "/v1/webhooks/deliveries", key=key))
            assert [each["id"] for each in told["deliveries"]] == seen
        resend = f"/v1/webhooks/deliveries/{event_id}/resend"
        details_of(working.ask("POST", resend, key=other), "not_found")
        body_of(working.ask("POST", resend, key=own))
        settled(working, "delivered", attempts=2)


def test_deliveries_are_listed_by_status_source_and_page(working: Daemon, site: Site) -> None:
    with receiving() as receiver:
        sources = [take(working, site.url(path), receiver.url) for path in ("/notes.md", "/blank.txt")]
        wait_until(lambda: len(deliveries(working, status="delivered")) == 2, "both are told", PATIENCE_S)
    assert deliveries(working, status="failed") == []
    assert [each["source_id"] for each in deliveries(working, source_id=sources[1])] == [sources[1]]
    first = body_of(working.ask("GET", "/v1/webhooks/deliveries", params={"limit": "1"}))
    assert (len(first["deliveries"]), first["has_more"]) == (1, True)
    rest = deliveries(working, after=first["last_id"])
    assert {each["source_id"] for each in [*first["deliveries"], *rest]} == set(sources)
    assert refused_field(working.ask("GET", "/v1/webhooks/deliveries", params={"status": "lost"})) == "status"


def test_a_source_that_is_deleted_first_is_not_told_of(daemon: Daemon, site: Site) -> None:
    with receiving() as receiver:
        source_id = take(daemon, site.url("/notes.md"), receiver.url)
        body_of(daemon.ask("DELETE", f"/v1/sources/{source_id}"))
        daemon.start()
        ready = take(daemon, site.url("/notes.md"), receiver.url)
        settled(daemon, "delivered")
    assert [json.loads(call.body)["source_id"] for call in receiver.calls] == [ready]
