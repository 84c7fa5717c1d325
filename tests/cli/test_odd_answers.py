"""What a command does if whatever listens at the address answers slowly, without end, or with what no service sends."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from svc_cli.client import BadAnswer, BytesContent, Client, Description, Member
from svc_daemon.paths import DataFiles
from tests.acceptance.forks import Fork
from tests.acceptance.installations import IMPATIENT, PATIENCE_S, environment, stop_process
from tests.cli.odd_servers import OddServer, Raw
from tests.cli.terminals import RunSvc

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
#: Answers that never end.
ENDLESS = {
    "head": Raw(OK + b"X: ", b"a", 0.2),
    "body": Raw(OK + b"Content-Length: 60000\r\n\r\n{", b" ", 0.2),
    "continue": Raw(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 10, 0.05),
    "hints": Raw(b"", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", 0.05),
    "headers": Raw(OK, b"X: y\r\n", 0.01),
    "chunks": Raw(CHUNKED, b"1\r\n \r\n", 0.2),
    "trailers": Raw(CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: y\r\n", 0.05),
    "flood": Raw(OK + b"\r\n", b"[" * 65536),
}
#: Answers of an impossible size.
SIZES = {
    "negative chunk": Raw(CHUNKED + b"-5\r\nabc\r\n"),
    "chunk of many digits": Raw(CHUNKED + b"9" * 60000 + b"\r\n"),
    "huge chunk": Raw(CHUNKED + b"fffffffffffffff\r\nabc"),
    "huge length": Raw(OK + b"Content-Length: 99999999999999\r\n\r\nabc"),
    "length of many digits": Raw(OK + b"Content-Length: " + b"9" * 25 + b"\r\n\r\nabc"),
    "negative length": Raw(OK + b"Content-Length: -1\r\n\r\n[]"),
}


def run(environ: dict[str, str], *words: str, cwd: Path, patience_s: float = PATIENCE_S) -> Any:
    """Run an impatient `svc … --json` as a process, which can be killed; return its exit code and its JSON value."""
    pipe, command = subprocess.PIPE, (IMPATIENT, *words, "--json")
    process = Fork(command, env=environ, cwd=cwd, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    try:
        out, err = process.communicate(timeout=patience_s)
    finally:
        process.kill()
    assert b"Traceback" not in err
    return process.returncode, json.loads(out)


@pytest.fixture
def stale(tmp_path: Path, files: DataFiles) -> dict[str, str]:
    """The environment of an installation whose stopped daemon had the port on which the odd server listens now."""
    return environment(tmp_path, {"SVC_LISTEN": "127.0.0.1:0", "SVC_DATA_DIR": str(files.root)})


@pytest.mark.parametrize("kind", ENDLESS)
def test_port_of_a_stopped_daemon_that_answers_without_end_is_not_the_daemon(
    odd: OddServer, stale: dict[str, str], tmp_path: Path, kind: str
) -> None:
    odd.answers["GET /healthz"] = ENDLESS[kind]
    code, shown = run(stale, "daemon", "status", cwd=tmp_path)
    assert (code, shown["error"]["code"]) == (12, "svc_daemon_unreachable")


def test_daemon_starts_on_another_port_if_its_old_one_answers_without_end(
    odd: OddServer, stale: dict[str, str], tmp_path: Path
) -> None:
    odd.answers["GET /healthz"] = ENDLESS["head"]
    code, shown = run(stale, "daemon", "start", cwd=tmp_path)
    stop_process(shown.get("pid"))
    assert (code, shown["running"], shown["base_url"] == odd.url) == (0, True, False)


#: Answers with values that no service sends, by the command that reads them: the path and the answer.
MISSHAPEN = [
    (("bucket", "ls"), "GET /v1/buckets", {"buckets": 5}),
    (("bucket", "ls"), "GET /v1/buckets", {"buckets": None}),
    (("bucket", "ls"), "GET /v1/buckets", {"buckets": ["x"]}),
    (("bucket", "ls"), "GET /v1/buckets", {"buckets": [{"slug": "\ud800"}]}),
    (("bucket", "ls"), "GET /v1/buckets", b'{"buckets": [], "n": NaN}'),
    (("bucket", "ls"), "GET /v1/buckets", b'{"buckets": [{"n": ' + b"9" * 5000 + b"}]}"),
    (("bucket", "ls"), "GET /v1/buckets", b'{"buckets": "\xed\xa0\x80"}'),
    (("webhook", "deliveries"), "GET /v1/webhooks/deliveries", {"deliveries": "none", "has_more": False}),
    (("diff", ".", "-b", "b"), "GET /v1/limits", {"limits": {"file_bytes": 5, "title_characters": 5}}),
    (("upload", "a.md", "-b", "b"), "GET /v1/limits", {"limits": 5}),
    (
        ("upload", "a.md", "-b", "b"),
        "GET /v1/limits",
        {"limits": {"file_bytes": {"value": "9"}, "creates_per_second": {"value": {}}}},
    ),
    (("batch", "show", "bat_1"), "GET /v1/knowledge/batches/bat_1", {"items": None}),
    (("status",), "GET /v1/buckets", {"buckets": [[]]}),
    (("search", "x", "-b", "b"), "POST /v1/search", {"data": [5], "warnings": None}),
    (("ask", "x"), "POST /v1/responses", b'data: {"type": "response.completed", "response": 5}\n\n'),
    (("events",), "GET /v1/events", {"data": {"a": 1}, "has_more": False}),
    (("agent", "ls"), "GET /v1/agents", {"agents": [None]}),
    (("key", "ls"), "GET /v1/keys", {"keys": 7}),
    (("source", "ls", "-b", "b"), "GET /v1/buckets/b/sources", {"sources": [1], "has_more": False}),
    (("doctor",), "GET /v1/buckets", {"buckets": 5}),
    *((("bucket", "ls"), "GET /v1/buckets", body) for body in (b"", b" ", b"\xef\xbb\xbf", b"[]", b"null")),
]


@pytest.mark.parametrize(("words", "route", "answer"), MISSHAPEN)
def test_value_of_the_wrong_form_is_an_answer_that_does_not_come_from_svc(
    svc: RunSvc, at_odd: RunSvc, odd: OddServer, words: tuple[str, ...], route: str, answer: Any
) -> None:
    Path("a.md").write_text("words")
    odd.answers["PUT /v1/buckets/b"] = (200, {"id": "bkt_1", "slug": "b", "created": False}, {})
    odd.answers["GET /v1/buckets/b"] = (200, {"id": "bkt_1", "slug": "b"}, {})
    odd.answers[route] = (200, answer, {})
    ended = svc(*words, "--base-url", odd.url)
    assert ended.exit == 7, ended
    assert "does not come from svc" in ended.stderr or "lacks `" in ended.stderr


@pytest.mark.parametrize(
    "error", [{"code": ["x"], "message": {}, "details": [1]}, {"details": {"retry_after_seconds": 10**400}}]
)
def test_error_with_fields_of_the_wrong_form_is_an_error_of_the_service(
    at_odd: RunSvc, odd: OddServer, error: dict[str, Any]
) -> None:
    odd.answers["GET /v1/buckets"] = (400, {"error": error, "request_id": {}}, {"Retry-After": "1e999"})
    assert at_odd("bucket", "ls").exit == 3


def test_byte_order_mark_in_front_of_an_answer_or_a_key_is_left_out(
    at_odd: RunSvc, odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answers["GET /v1/buckets"] = (200, b'\xef\xbb\xbf{"buckets": []}', {})
    Path("key").write_bytes(b"\xef\xbb\xbfsk-test\r\n")
    monkeypatch.delenv("SVC_API_KEY")
    monkeypatch.setenv("SVC_API_KEY_FILE", "key")
    assert at_odd("bucket", "ls").exit == 0
    assert odd.keys_seen() == {"Bearer sk-test"}


#: Malformed addresses to listen at and of a service.
LISTEN = ["::1:7836", "127.0.0.1:80000", " 127.0.0.1:7837", "[::1:7836", "ann:s3cret@a:1", "a:b:c"]
SERVICE = ["http://127.0.0.1:0_1", "http://[::1", "http://a:99999", "http://a:b", "http://", "a:1", "://", "ftp://a"]


@pytest.mark.parametrize("address", LISTEN)
def test_malformed_address_to_listen_at_is_a_usage_error_that_shows_no_password(
    svc: RunSvc, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("SVC_LISTEN", address)
    refused = svc("status", "--json")
    assert refused.failure == (2, "svc_usage")
    assert "s3cret" not in refused.stdout + refused.stderr


@pytest.mark.parametrize("address", SERVICE)
def test_malformed_address_of_a_service_is_a_usage_error_in_plain_words(
    svc: RunSvc, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("SVC_BASE_URL", address)
    refused = svc("status", "--json")
    assert refused.failure == (2, "svc_usage")
    message, hint = (refused.json["error"][name] for name in ("message", "hint"))
    assert address in message
    assert "http://127.0.0.1:7820" in hint
    assert not any(odd in message for odd in ("cast", "integer", "Invalid", "Port"))


def test_batch_of_other_files_is_refused(odd: OddServer) -> None:
    members = [Member(Description(filename=name, title=name), 5) for name in ("a.md", "b.md")]
    with Client(odd.url, "sk-test") as client:
        for items in ([], [{"client_file_id": members[0].client_file_id}]):
            odd.answers["POST /v1/buckets/b/batches"] = (201, {"items": items, "rejected": []}, {})
            with pytest.raises(BadAnswer):
                client.open_batch("b", members, "night-1")


@pytest.mark.parametrize("url", ["http://[::1/x", "../../x", "x y", "http://127.0.0.1/\u00e9", 5, None])
def test_odd_upload_url_is_refused(odd: OddServer, url: Any) -> None:
    with Client(odd.url, "sk-test") as client, pytest.raises(BadAnswer):
        client.send_bytes(url, BytesContent(b"words"))


#: Answers that are cut off by the end of the connection or of the client's patience.
CUT = SIZES | {kind: ENDLESS[kind] for kind in ("head", "continue", "hints", "headers", "flood")}


@pytest.mark.parametrize("kind", CUT)
def test_answer_of_an_impossible_size_or_without_end_is_refused(odd: OddServer, tmp_path: Path, kind: str) -> None:
    odd.answer_health()
    odd.answers["GET /v1/buckets"] = CUT[kind]
    environ = environment(tmp_path, {"SVC_BASE_URL": odd.url, "SVC_API_KEY": "sk-test"})
    code, shown = run(environ, "bucket", "ls", cwd=tmp_path, patience_s=40)
    assert code == 7
    assert shown["error"]["code"] in {"svc_bad_answer", "svc_network_failed"}
