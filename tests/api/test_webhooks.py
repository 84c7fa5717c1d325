"""Webhooks: delivery, signatures, the retry, the log of deliveries, resending and secrets."""

import json
import threading
from typing import Any

import pytest
from standardwebhooks import Webhook

from svc_daemon.provider.errors import ProviderError
from tests.acceptance.installations import PATIENCE_S, wait_until
from tests.api.answers import details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.fixtures import MakeDaemon
from tests.api.sites import Receiver, Site, receiving
from tests.fetch.servers import Exchange, Seen, serving

SECRET, DELIVERIES = "/v1/webhooks/secret", "/v1/webhooks/deliveries"


def add_with_webhook(daemon: Daemon, url: str, receiver_url: str, route: str = "files/import", **metadata: Any) -> str:
    """Create a source whose webhook is the receiver, and return the id of the source."""
    body = {"url": url, "webhook": {"url": receiver_url, "metadata": metadata}}
    return str(daemon.post(f"/v1/buckets/inbox/{route}", 201, json=body)["id"])


def deliveries(daemon: Daemon, **query: str) -> list[dict[str, Any]]:
    return list(daemon.show(DELIVERIES, **query)["deliveries"])


def wait_delivery(daemon: Daemon, status: str, attempts: int = 1) -> dict[str, Any]:
    """Wait until the only delivery has the status and the number of attempts, and return it."""

    def reached() -> dict[str, Any] | None:
        listed = deliveries(daemon)
        match = len(listed) == 1 and (listed[0]["status"], len(listed[0]["attempts"])) == (status, attempts)
        return listed[0] if match else None

    return wait_until(reached, f"the delivery is {status} after {attempts} calls")


def resend(daemon: Daemon, delivery_id: str, **options: Any) -> Any:
    return daemon.post(f"{DELIVERIES}/{delivery_id}/resend", **options)


def verify_call(daemon: Daemon, call: Seen, secret: str | None = None) -> dict[str, Any]:
    """Verify the signature of a call with the secret, by default the team's, and return its body."""
    event = Webhook(secret or daemon.show(SECRET)["secret"]).verify(call.body, dict(call.headers))
    assert (call.headers["content-type"], call.headers["webhook-id"]) == ("application/json", event["id"])
    return dict(event)


def events(receiver: Receiver) -> list[tuple[str, str]]:
    """Return the event and the source of each call to the receiver."""
    bodies = [json.loads(call.body) for call in receiver.calls]
    return [(body["event"], body["source_id"]) for body in bodies]


def refresh_with_text(daemon: Daemon, site: Site, path: str, source_id: str) -> None:
    site.put(path, b"The cobalt quay.\n", "text/plain")
    daemon.post(f"/v1/sources/{source_id}/refresh", 202)


@pytest.mark.rule(
    "webhook.metadata", "indexing.reported", "upload.import", "upload.pages", "event.ready", "event.polling"
)
@pytest.mark.parametrize(
    ("route", "path"), [("files/import", "/notes.md"), ("files/import", "/paper.pdf"), ("pages", "/page")]
)
def test_ready_event_is_signed_and_sent_only_once_for_a_source(
    working: Daemon, site: Site, route: str, path: str
) -> None:
    with receiving() as receiver:
        source_id = add_with_webhook(working, site.url(path), receiver.url, route, ticket=7, name="Zoë")
        logged = wait_delivery(working, "delivered")
        (call,) = receiver.calls
        state = {"id": source_id, "status": "active", "ready": True, "bucket_sync_status": "active"}
        data = state | {"type": "page" if route == "pages" else "file", "source_url": site.url(path)}
        event = {"id": logged["id"], "type": "source.ready", "event": "source.ready", "timestamp": logged["created_at"]}
        about = {"source_id": source_id, "metadata": {"ticket": 7, "name": "Zoë"}, "data": data}
        assert verify_call(working, call) == event | about
        assert (call.method, call.path, logged["id"][:4]) == ("POST", "/hook", "evt_")
        assert (logged["event"], logged["source_id"], logged["url"]) == ("source.ready", source_id, receiver.url)
        (attempt,) = logged["attempts"]
        assert (attempt["attempt"], attempt["http_status"], attempt["error"]) == (1, 204, None)
        assert (logged["next_attempt_at"], working.source(source_id)["ready"]) == (None, True)
        if route == "files/import":
            refresh_with_text(working, site, path, source_id)
            working.wait_ready(source_id)
            wait_delivery(working, "delivered")
    assert len(receiver.calls) == 1


@pytest.mark.rule("event.failed")
def test_failed_event_has_its_reason_and_a_later_ready_event_is_sent_too(working: Daemon, site: Site) -> None:
    with receiving() as receiver:
        source_id = add_with_webhook(working, site.url("/blank.txt"), receiver.url)
        wait_delivery(working, "delivered")
        event = verify_call(working, receiver.calls[0])
        assert (event["reason"], event["data"]["error"]["code"]) == ("no_extractable_text", "no_extractable_text")
        assert (event["data"]["ready"], event["data"]["status"]) == (False, "failed")
        refresh_with_text(working, site, "/blank.txt", source_id)
        wait_until(lambda: len(receiver.calls) == 2, "both events are delivered")
    assert events(receiver) == [("source.failed", source_id), ("source.ready", source_id)]


@pytest.mark.rule("indexing.exhausted", "event.failed")
def test_failed_event_names_exhausted_attempts_as_the_reason(daemon: Daemon, site: Site) -> None:
    with receiving() as receiver:
        add_with_webhook(daemon, site.url("/notes.md"), receiver.url)
        away = ProviderError("The index is away.", retryable=True)
        daemon.provider.fail("put_documents", away, times=daemon.limits.task_attempts)
        daemon.start()
        wait_until(lambda: _poll_receiver(daemon, receiver), "the failure is sent")
    assert verify_call(daemon, receiver.calls[0])["reason"] == "max_attempts_exhausted"


def _poll_receiver(daemon: Daemon, receiver: Receiver) -> bool:
    """Return whether the receiver was called; advance the clock to the next attempt while no task runs."""
    running = "SELECT count(*) AS tasks FROM tasks WHERE status = 'running'"
    # The lease of a running attempt would expire.
    if not daemon.read(lambda connection: connection.execute(running).fetchone()["tasks"]):
        daemon.advance(10)
    return bool(receiver.calls)


@pytest.mark.rule("event.retried")
def test_failed_call_is_retried_with_the_same_event(working: Daemon, site: Site) -> None:
    with receiving(500) as receiver:
        add_with_webhook(working, site.url("/notes.md"), receiver.url)
        assert wait_delivery(working, "pending")["attempts"][0]["http_status"] == 500
        assert len(receiver.calls) == 1
        working.advance(5)
        logged = wait_delivery(working, "delivered", 2)
    first, second = (verify_call(working, call) for call in receiver.calls)
    assert (first, first["id"]) == (second, logged["id"])
    assert [attempt["http_status"] for attempt in logged["attempts"]] == [500, 204]


@pytest.mark.rule("event.retried", "limit.webhooks")
def test_delivery_fails_after_one_retry_and_can_be_resent(working: Daemon, site: Site) -> None:
    with receiving(301, 410, 503) as receiver:
        add_with_webhook(working, site.url("/notes.md"), receiver.url)
        wait_delivery(working, "pending")
        working.advance(5)
        logged = wait_delivery(working, "failed", 2)
        working.advance(3600)
        assert (logged["next_attempt_at"], len(receiver.calls)) == (None, 2)
        assert resend(working, logged["id"])["status"] == "pending"
        for outcome, calls in (("failed", 3), ("delivered", 4), ("delivered", 5)):
            wait_delivery(working, outcome, calls)
            if calls < 5:
                resend(working, logged["id"])
    assert {call.headers["webhook-id"] for call in receiver.calls} == {logged["id"]}
    details_of(working.ask("POST", f"{DELIVERIES}/evt_none/resend"), "not_found")


def test_unreachable_receiver_is_logged_with_the_error(working: Daemon, site: Site) -> None:
    with receiving() as receiver:
        nobody = receiver.url
    add_with_webhook(working, site.url("/notes.md"), nobody)
    (attempt,) = wait_delivery(working, "pending")["attempts"]
    expected = (None, "url_fetch_failed", "unreachable")
    assert (attempt["http_status"], attempt["error"]["code"], attempt["error"]["reason"]) == expected


def test_interrupted_call_is_repeated_with_the_same_id_after_a_restart(make_daemon: MakeDaemon, site: Site) -> None:
    released = threading.Event()
    daemon = make_daemon()
    daemon.make_bucket()
    daemon.start()
    with serving(lambda exchange: _answer_late(exchange, released)) as server:
        add_with_webhook(daemon, site.url("/notes.md"), server.url("/hook"))
        wait_until(lambda: server.requests, "the receiver is called")
        daemon.close()
        released.set()
        again = make_daemon()
        again.start("delivering")
        wait_delivery(again, "delivered")
        first, second = (call.headers["webhook-id"] for call in server.requests)
        assert first == second


def _answer_late(exchange: Exchange, released: threading.Event) -> None:
    released.wait(PATIENCE_S)
    exchange.answer(204)


@pytest.mark.rule("indexing.reported")
def test_source_in_two_buckets_sends_one_ready_event(working: Daemon, site: Site) -> None:
    working.stop()
    working.make_bucket("second")
    with receiving() as receiver:
        source_id = add_with_webhook(working, site.url("/notes.md"), receiver.url)
        working.post("/v1/buckets/second/sources", json={"source_id": source_id})
        working.start()
        wait_delivery(working, "delivered")
    assert (working.source(source_id)["ready"], len(receiver.calls)) == (True, 1)


@pytest.mark.parametrize("leave", ["/v1/buckets/second/sources/{source_id}", "/v1/buckets/second?force=true"])
def test_ready_event_is_sent_when_the_source_leaves_the_bucket_that_was_not_indexed(
    daemon: Daemon, site: Site, leave: str
) -> None:
    second = daemon.make_bucket("second")
    with receiving() as receiver:
        source_id = add_with_webhook(daemon, site.url("/notes.md"), receiver.url)
        with daemon.provider.held("put_documents") as hold:
            daemon.start("indexing", "delivering", "cascading")
            hold.wait_entered()
            daemon.post("/v1/buckets/second/sources", json={"source_id": source_id})
        daemon.wait_status(source_id, "active")
        put_off = "UPDATE memberships SET due_at = '2999-01-01T00:00:00.000Z' WHERE bucket_id = :bucket_id"
        daemon.write(lambda connection: connection.execute(put_off, {"bucket_id": second}))
        daemon.start("syncing")
        wait_until(lambda: daemon.members() == [source_id], "the source is in the first bucket")
        assert (daemon.source(source_id)["ready"], deliveries(daemon)) == (False, [])
        assert daemon.ask("DELETE", leave.format(source_id=source_id)).is_success
        wait_until(lambda: deliveries(daemon), "the event is stored")
        daemon.wake()
        wait_delivery(daemon, "delivered")
    assert events(receiver) == [("source.ready", source_id)]


def test_slow_receiver_does_not_delay_another_receiver(working: Daemon, site: Site) -> None:
    released = threading.Event()
    with serving(lambda exchange: _answer_late(exchange, released)) as slow, receiving() as quick:
        add_with_webhook(working, site.url("/notes.md"), slow.url("/hook"))
        wait_until(lambda: slow.requests, "the slow receiver is called")
        add_with_webhook(working, site.url("/blank.txt"), quick.url)
        wait_until(lambda: quick.calls, "the quick receiver is called meanwhile")
        released.set()


def test_previous_secret_still_signs_for_a_day_after_a_rotation(working: Daemon, site: Site) -> None:
    old = working.show(SECRET)
    assert (old["secret"][:6], old["previous_secret"], old["rotated_at"]) == ("whsec_", None, None)
    new = working.post(f"{SECRET}/rotate")
    assert new["previous_secret"] == old["secret"] != new["secret"]
    with receiving() as receiver:
        add_with_webhook(working, site.url("/notes.md"), receiver.url)
        logged = wait_delivery(working, "delivered")
        assert all(verify_call(working, receiver.calls[0], key["secret"]) for key in (old, new))
        working.advance(24 * 3600 + 1)
        assert {"secret": new["secret"], "previous_secret": None}.items() <= working.show(SECRET).items()
        resend(working, logged["id"])
        wait_delivery(working, "delivered", 2)
    assert [len(call.headers["webhook-signature"].split()) for call in receiver.calls] == [2, 1]
    newer, newest = (working.post(f"{SECRET}/rotate")["secret"] for _ in range(2))
    assert {"secret": newest, "previous_secret": newer}.items() <= working.show(SECRET).items()
    assert len({old["secret"], new["secret"], newer, newest}) == 4


def test_key_resends_the_deliveries_of_its_buckets_and_each_team_has_its_own_secret(
    working: Daemon, site: Site
) -> None:
    assert working.show(SECRET, key=working.add_team())["secret"] != working.show(SECRET)["secret"]
    with receiving() as receiver:
        add_with_webhook(working, site.url("/notes.md"), receiver.url)
        event_id = wait_delivery(working, "delivered")["id"]
        resend(working, event_id, key=working.add_key(buckets=(working.make_bucket(),)))
        wait_delivery(working, "delivered", attempts=2)


def test_deliveries_are_filtered_by_status_and_source(working: Daemon, site: Site) -> None:
    with receiving() as receiver:
        sources = [add_with_webhook(working, site.url(path), receiver.url) for path in ("/notes.md", "/blank.txt")]
        wait_until(lambda: len(deliveries(working, status="delivered")) == 2, "both events are delivered")
    assert deliveries(working, status="failed") == []
    assert [each["source_id"] for each in deliveries(working, source_id=sources[1])] == [sources[1]]
    assert refused_field(working.ask("GET", DELIVERIES, params={"status": "lost"})) == "status"


def test_source_deleted_before_it_is_ready_sends_no_event(daemon: Daemon, site: Site) -> None:
    with receiving() as receiver:
        source_id = add_with_webhook(daemon, site.url("/notes.md"), receiver.url)
        assert daemon.ask("DELETE", f"/v1/sources/{source_id}").is_success
        daemon.start()
        ready = add_with_webhook(daemon, site.url("/notes.md"), receiver.url)
        wait_delivery(daemon, "delivered")
    assert events(receiver) == [("source.ready", ready)]


def test_two_workers_send_each_event_once(working: Daemon, site: Site) -> None:
    working.start("delivering")
    with receiving() as receiver:
        for number in range(20):
            site.put(f"/note{number}", b"The cobalt quay %d." % number, "text/plain")
            add_with_webhook(working, site.url(f"/note{number}"), receiver.url)
        working.wait(lambda: len(deliveries(working, status="delivered")) == 20, "all events are delivered")
    ids = [call.headers["webhook-id"] for call in receiver.calls]
    assert len(ids) == len(set(ids)) == 20
