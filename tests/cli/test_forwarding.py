"""`svc webhook listen`, which forwards webhook calls for imports and uploads to a receiver on this machine."""

import json
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from svc_cli.client import Client, NetworkFailed, RetryPolicy, verify_webhook, webhooks
from svc_cli.client.webhooks import MOST_ERROR_CHARACTERS, RETRY_S, Forwarder, parse_receiver
from tests.acceptance.installations import PATIENCE_S, Installation, wait_until
from tests.acceptance.sync_folders import write
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import RunSvc


@pytest.fixture
def here(at: Callable[[Installation], RunSvc], open_installation: Installation) -> RunSvc:
    return at(open_installation)


@contextmanager
def listening(one: Installation, *flags: str) -> Iterator[tuple["subprocess.Popen[str]", list[str]]]:
    """Run `svc webhook listen`; yield its process and the lines of its output."""
    with one.spawn_svc("webhook", "listen", *flags) as process:
        lines, stdout = list[str](), process.stdout
        assert stdout is not None
        reading = Thread(target=lambda: lines.extend(stdout))
        reading.start()
        try:
            yield process, lines
        finally:
            process.kill()
            reading.join()


def latest(one: Installation) -> str:
    with Client(one.base_url, one.key) as client:
        client.ensure_bucket("any")
        return str(client.events({"after": "latest"})["last_id"])


@pytest.mark.rule("log.listen")
def test_forwarded_calls_equal_those_of_the_service_and_include_uploads(
    here: RunSvc, open_installation: Installation, bucket: str, odd: OddServer
) -> None:
    odd.answers["GET /ferries.md"] = (200, b"# Ferries\n\nOne leaves at nine.", {"Content-Type": "text/markdown"})
    odd.answers |= {"POST /hook": (204, b"", {}), "POST /local": (204, b"", {})}
    flags = ("-b", bucket, "--after", latest(open_installation), "--meta", "ticket=7", "--ndjson")
    assert here("bucket", "create", bucket).exit == 0
    with listening(open_installation, "--forward-to", f"{odd.url}/local", *flags) as (process, lines):
        hook = ("--webhook", f"{odd.url}/hook", "--webhook-meta", "ticket=7")
        assert here("import", f"{odd.url}/ferries.md", "-b", bucket, *hook).exit == 0
        write(Path(), "broken.pdf", b"%PDF-1.7\nnothing that a PDF has")
        assert here("upload", "broken.pdf", "-b", bucket).exit == 3
        wait_until(lambda: len(lines) == 2 and len(odd.calls) == 3, "the calls")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    calls = [(path, headers, body) for path, headers, body in odd.calls if path == "/local"]
    (_, of_service, service_body) = next(call for call in odd.calls if call[0] == "/hook")
    secret = here("webhook", "secret", "--json").json["secret"]
    for _, headers, body in calls:
        assert verify_webhook(secret, headers, body).verdict == "valid"
        assert {name.lower() for name in headers} == {name.lower() for name in of_service}
    ready, failed = (json.loads(body) for _, _, body in calls)
    assert ready | {"timestamp": ""} == json.loads(service_body) | {"timestamp": ""}
    assert failed["event"] == "source.failed"
    assert failed["reason"] == "document_unreadable"
    assert failed["data"]["source_url"] is None
    *shown, interrupted = (json.loads(line) for line in lines)
    assert interrupted["error"]["code"] == "svc_interrupted"
    assert [(each["event"], each["status"], each["http_status"]) for each in shown] == [
        ("source.ready", "delivered", 204),
        ("source.failed", "delivered", 204),
    ]


@pytest.mark.rule("log.listen")
def test_failed_call_is_retried_once_and_each_event_is_called_once(
    open_installation: Installation, bucket: str, odd: OddServer, tmp_path: Path
) -> None:
    now_s = [0.0]
    with Client(open_installation.base_url, open_installation.key) as client:
        client.ensure_bucket(bucket)
        source = client.upload_file(bucket, write(tmp_path, "plan.md", "The umber quay."))
        client.wait_until_ready(source["id"], timeout_s=PATIENCE_S)
        events = client.events({"bucket": bucket, "types": "source.ready"})["data"]

        def called(url: str, *answers: Any) -> list[tuple[str, int | None]]:
            odd.answers["POST /local"] = [*answers]
            forwarder, made = Forwarder(parse_receiver(url), clock=lambda: now_s[0]), []
            # The second time, the events are already known.
            for _ in range(2):
                forwarder.add(client, events)
                while forwarder.pause_s() is not None:
                    results = list(forwarder.call(client))
                    assert all(len(each["error"] or "") <= MOST_ERROR_CHARACTERS for each in results)
                    made += [(each["status"], each["http_status"]) for each in results]
                    assert forwarder.pause_s() in (None, RETRY_S)
                    assert list(forwarder.call(client)) == []
                    now_s[0] += RETRY_S
            return made

        local = f"{odd.url}/local"
        assert called(local, (204, b"", {})) == [("delivered", 204)]
        assert called(local, (302, b"", {}), (200, b"", {})) == [("pending", 302), ("delivered", 200)]
        assert called(local, None, (500, b"", {})) == [("pending", None), ("failed", 500)]
        # An invalid and very long status line.
        assert called(local, (10**300, b"", {}), (200, b"", {})) == [("pending", None), ("delivered", 200)]
        assert called("http://127.0.0.1:1/") == [("pending", None), ("failed", None)]
        assert len({headers["webhook-id"] for _, headers, _ in odd.calls}) == 1
        client.delete_source(source["id"])
        assert called(local) == []


@pytest.mark.rule("log.follow")
def test_no_call_is_lost_when_the_service_is_unreachable_and_only_recent_ones_are_known(
    open_installation: Installation, bucket: str, odd: OddServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "MOST_KNOWN", 1)
    odd.answers["POST /local"] = (204, b"", {})
    forwarder = Forwarder(parse_receiver(f"{odd.url}/local"))
    with (
        Client("http://127.0.0.1:1", "sk-none", policy=RetryPolicy(attempts=1)) as away,
        Client(open_installation.base_url, open_installation.key) as client,
    ):
        client.ensure_bucket(bucket)
        for name in ("first.md", "second.md"):
            source = client.upload_file(bucket, write(tmp_path, name, f"The {name}."))
            client.wait_until_ready(source["id"], timeout_s=PATIENCE_S)
        first, second = client.events({"bucket": bucket, "types": "source.ready"})["data"]
        with pytest.raises(NetworkFailed):
            forwarder.add(away, [first])
        assert forwarder.pause_s() is None
        forwarder.add(client, [second])
        with pytest.raises(NetworkFailed):
            list(forwarder.call(away))
        assert [each["title"] for each in forwarder.call(client)] == ["first.md", "second.md"]
        forwarder.add(client, [second, first])
        assert [each["title"] for each in forwarder.call(client)] == ["first.md"]


def test_invalid_receiver_or_secret_is_a_usage_error_and_a_read_key_is_denied(
    here: RunSvc, open_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (
        *("", "--forward-to ftp://h/", "--forward-to http://", "--forward-to http://u:p@h/", "--forward-to http://h:x"),
        *("--forward-to http://h --json", "--forward-to http://h --meta x"),
        "--forward-to http://h --secret-file none",
    ):
        finished = here("webhook", "listen", *shlex.split(words))
        assert finished.exit == 2, words
        assert (finished.stdout if "--json" not in words else "") == "", words
    monkeypatch.setenv("SVC_WEBHOOK_SECRET", "whsec_!!!!")
    assert here("webhook", "listen", "--forward-to", "http://h").exit == 2
    monkeypatch.delenv("SVC_WEBHOOK_SECRET")
    with Client(open_installation.base_url, open_installation.key) as client:
        reader = client.create_key(name="reader", preset="read")
    monkeypatch.setenv("SVC_API_KEY", str(reader["key"]))
    assert here("webhook", "listen", "--forward-to", "http://h", "--ndjson").exit == 4
