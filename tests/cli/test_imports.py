"""`svc import`, `svc source refresh` and `svc webhook` against a real daemon and real hosts."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.installations import Finished, Installation, wait_until
from tests.cli.consoles import RunSvc
from tests.cli.odd_servers import OddServer
from tests.conftest import UNLIMITED

Json = dict[str, Any]
Run = Callable[..., Finished]

TEXT = b"# Ferries\n\nThe cobalt ferry leaves at nine."
PAGE = b"""<!doctype html><html><head><title>Harbour news</title></head><body><nav>Home</nav>
<article><h1>Harbour news</h1>
<p>The umber harbour opens in May, and the ferries of the whole coast will call there twice a day from then on.</p>
<p>Whoever travels with a bicycle needs a ticket for it, which the office at the pier sells in the morning.</p>
</article></body></html>"""


@pytest.fixture(scope="module")
def open_installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A daemon that may fetch from this machine."""
    made = Installation(tmp_path_factory.mktemp("open"), SVC_FETCH_ALLOW="127.0.0.0/8", **UNLIMITED)
    made.start()
    yield made
    made.clear()


@pytest.fixture
def here(svc: RunSvc, at: Callable[[Installation], None], open_installation: Installation, odd: OddServer) -> RunSvc:
    at(open_installation)
    odd.answers["GET /ferries.md"] = (200, TEXT, {"Content-Type": "text/markdown", "ETag": '"one"'})
    odd.answers["GET /news"] = (200, PAGE, {"Content-Type": "text/html"})
    odd.answers["POST /hook"] = (200, {}, {})
    return svc


@pytest.fixture
def take_in(here: RunSvc, request: pytest.FixtureRequest) -> Run:
    """`svc import … --json` into a bucket of this test's own."""
    bucket = request.node.name.split("[")[0].removeprefix("test_").replace("_", "-")[:60].rstrip("-")
    return lambda *words: here("import", *words, "-b", bucket, "--json")


def _fetches(odd: OddServer, path: str) -> int:
    return [(method, asked) for method, asked, _ in odd.requests].count(("GET", path))


def test_a_file_and_a_page_are_told_apart_and_become_ready(take_in: Run, odd: OddServer) -> None:
    finished = take_in(f"{odd.url}/ferries.md", f"{odd.url}/news", "--tag", "sea")
    assert finished.exit == 0, finished.stderr
    assert finished.json["type"] == "import.summary"
    assert [(item["path"], item["action"], item["ready"]) for item in finished.json["items"]] == [
        (f"{odd.url}/ferries.md", "created", True),
        (f"{odd.url}/news", "created", True),
    ]


def test_two_spellings_of_one_page_are_one_source_and_both_become_ready(take_in: Run, odd: OddServer) -> None:
    finished = take_in(f"{odd.url}/news", f"{odd.url}/news#tickets")
    assert finished.exit == 0, finished.stderr
    assert len({item["source_id"] for item in finished.json["items"]}) == 1
    assert [item["ready"] for item in finished.json["items"]] == [True, True]
    assert finished.json["counts"]["pending"] == 0


def test_the_same_command_again_fetches_nothing(take_in: Run, odd: OddServer) -> None:
    first, second = take_in(f"{odd.url}/ferries.md"), take_in(f"{odd.url}/ferries.md")
    assert [each.json["items"][0]["action"] for each in (first, second)] == ["created", "unchanged"]
    assert first.json["items"][0]["source_id"] == second.json["items"][0]["source_id"]
    assert _fetches(odd, "/ferries.md") == 1


def test_a_refresh_takes_in_what_has_changed(take_in: Run, odd: OddServer, here: RunSvc) -> None:
    source_id = take_in(f"{odd.url}/ferries.md").json["items"][0]["source_id"]
    same = take_in(f"{odd.url}/ferries.md", "--refresh")
    assert (same.exit, same.json["items"][0]["action"]) == (0, "unchanged")
    odd.answers["GET /ferries.md"] = (200, TEXT + b" And at ten.", {"Content-Type": "text/markdown"})
    changed = take_in(f"{odd.url}/ferries.md", "--refresh")
    assert (changed.json["items"][0]["action"], changed.json["items"][0]["ready"]) == ("refreshed", True)
    assert changed.json["items"][0]["source_id"] == source_id
    assert here("source", "refresh", source_id, "--dry-run", "--json").json["dry_run"] is True
    assert here("source", "refresh", source_id, "--json").json["changed"] is False


def test_a_removed_import_comes_back(take_in: Run, odd: OddServer, here: RunSvc) -> None:
    ids = []
    for _ in range(2):
        item = take_in(f"{odd.url}/ferries.md").json["items"][0]
        assert (item["action"], item["ready"]) == ("created", True)
        ids.append(item["source_id"])
        assert here("source", "rm", item["source_id"], "--force").exit == 0
    assert len(set(ids)) == 2


def test_a_page_of_another_bucket_is_a_conflict_that_says_what_to_do(
    take_in: Run, odd: OddServer, here: RunSvc
) -> None:
    odd.answers["GET /other"] = (200, PAGE, {"Content-Type": "text/html"})
    assert here("import", f"{odd.url}/other", "-b", "elsewhere").exit == 0
    finished = take_in(f"{odd.url}/other")
    item = finished.json["items"][0]
    assert (finished.exit, item["action"], item["error"]["code"]) == (6, "conflict", "website_url_exists")
    assert f"svc source attach {item['source_id']}" in item["error"]["hint"]


@pytest.mark.parametrize(
    ("words", "exit", "code"),
    [
        (("--as", "page", "{url}/ferries.md"), 3, "url_is_file"),
        (("--as", "file", "{url}/news"), 3, "url_is_web_page"),
        (("{url}/missing",), 7, "url_fetch_failed"),
        (("ftp://127.0.0.1/x",), 3, None),
        (("{url}/a", "{url}/b", "--title", "T"), 2, "svc_usage"),
        (("{url}/a", "--force"), 2, "svc_usage"),
        (("{url}/a", "--webhook-meta", "a=b"), 2, "svc_usage"),
        ((), 2, "svc_usage"),
    ],
)
def test_mistakes_are_told(take_in: Run, odd: OddServer, words: tuple[str, ...], exit: int, code: str | None) -> None:
    finished = take_in(*(word.format(url=odd.url) for word in words))
    assert finished.exit == exit, finished.stdout
    assert code is None or finished.json["error"]["code"] == code


def test_force_takes_what_stands_there(take_in: Run, odd: OddServer) -> None:
    finished = take_in("--as", "file", "--force", f"{odd.url}/news")
    assert (finished.exit, finished.json["counts"]["ready"]) == (0, 1)


def test_a_host_that_does_not_deliver_is_asked_once(take_in: Run, odd: OddServer) -> None:
    odd.answers["GET /down"] = (503, {}, {})
    assert take_in(f"{odd.url}/down").exit == 7
    assert _fetches(odd, "/down") == 1


def test_a_dry_run_fetches_nothing_and_makes_no_bucket(take_in: Run, odd: OddServer, here: RunSvc) -> None:
    finished = take_in(f"{odd.url}/ferries.md", "--dry-run")
    assert (finished.exit, finished.json["items"][0]["action"]) == (0, "would_create")
    assert _fetches(odd, "/ferries.md") == 0
    assert here("bucket", "show", "a-dry-run-fetches-nothing-and-makes-no-bucket").exit == 5


def test_a_webhook_is_called_listed_sent_again_and_verified(
    take_in: Run, odd: OddServer, here: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = take_in(f"{odd.url}/ferries.md", "--webhook", f"{odd.url}/hook", "--webhook-meta", "ticket=7").json["items"][
        0
    ]

    def delivered() -> Json | None:
        listed = here("webhook", "deliveries", "--source", item["source_id"], "--json").json["deliveries"]
        return listed[0] if listed and listed[0]["status"] == "delivered" else None

    event = wait_until(delivered, "the call")["id"]
    assert event in here("webhook", "deliveries").stdout
    assert here("webhook", "resend", event, "--dry-run", "--json").json["dry_run"] is True
    assert here("webhook", "resend", event, "--json").json["id"] == event
    calls = wait_until(lambda: [seen for seen in odd.calls if seen[0] == "/hook"][1:], "the second call")
    _, headers, body = calls[0]
    assert json.loads(body)["metadata"] == {"ticket": "7"}
    Path("body.json").write_bytes(body)
    Path("secret").write_text(here("webhook", "secret").stdout)
    given = [
        word for name in headers if name.lower().startswith("webhook-") for word in ("-H", f"{name}: {headers[name]}")
    ]
    checked = here("webhook", "verify", "body.json", *given, "--secret-file", "secret", "--json")
    assert (checked.exit, checked.json["valid"], checked.json["id"]) == (0, True, event)
    monkeypatch.setenv("SVC_WEBHOOK_SECRET", Path("secret").read_text())
    assert here("webhook", "verify", "-", *given, stdin=body).exit == 0
    refused = here("webhook", "verify", "-", *given, "--json", stdin=body + b" ")
    assert (refused.exit, refused.json["error"]["code"]) == (3, "svc_webhook_invalid")


def test_an_old_call_is_refused_unless_its_age_does_not_count(svc: RunSvc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = [
        "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp: 1614265330",
        "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ]
    given = [word for header in headers for word in ("-H", header)]
    body = b'{"test": 2432232314}'
    assert svc("webhook", "verify", "-", *given, stdin=body).exit == 3
    kept = svc("webhook", "verify", "-", *given, "--any-age", "--json", stdin=body)
    assert (kept.exit, kept.json["verdict"]) == (0, "expired")
    changed = svc("webhook", "verify", "-", *given, "--any-age", "--json", stdin=b"{}")
    assert (changed.exit, "matching signature" in changed.json["error"]["message"]) == (3, True)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_!!!!"])
def test_a_secret_of_no_bytes_is_a_usage_error(svc: RunSvc, monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    monkeypatch.setenv("SVC_WEBHOOK_SECRET", secret)
    finished = svc("webhook", "verify", "-", "-H", "webhook-id: msg_1", "--json", stdin=b"{}")
    assert (finished.exit, finished.json["error"]["code"]) == (2, "svc_usage")


@pytest.mark.parametrize("words", [("-H", "webhook-id"), (), ("--secret-file", "none")])
def test_a_check_without_what_it_needs_is_a_usage_error(svc: RunSvc, words: tuple[str, ...]) -> None:
    finished = svc("webhook", "verify", "-", *words, "--json")
    assert finished.exit == 2
    assert finished.json["error"]["code"] in {"svc_usage", "svc_file_refused"}


def test_a_rotated_secret_is_another_and_the_old_one_counts_for_a_while(here: RunSvc) -> None:
    before = here("webhook", "secret", "--json").json["secret"]
    assert "secret" not in here("webhook", "secret", "--rotate", "--dry-run", "--json").json
    after = here("webhook", "secret", "--rotate", "--json").json
    assert (after["previous_secret"], after["secret"] != before) == (before, True)


def test_batches_are_shown_and_waited_for(here: RunSvc) -> None:
    for number in range(3):
        Path(f"{number}.md").write_text(f"Words of file {number}.")
    (batch_id,) = here("upload", "0.md", "1.md", "2.md", "-b", "together", "--wait", "accepted", "--json").json[
        "batch_ids"
    ]
    source_id = here("source", "ls", "-b", "together", "--json").json["sources"][0]["id"]
    waited = here("wait", batch_id, source_id, "--json").json
    assert (waited["exit_code"], waited["counts"]) == (0, {"ready": 2, "failed": 0, "pending": 0})
    assert here("status", batch_id, "--json").json["counters"]["active"] == 3
    assert here("status", batch_id, "--watch").exit == 0
    shown = here("batch", "show", batch_id, "--items")
    assert shown.exit == 0
    assert "completed" in shown.stdout
    assert source_id in shown.stdout
    assert here("batch", "show", batch_id, "--json").json["status"] == "completed"
    assert here("batch", "show", "bat_missing").exit == 5
    assert here("wait", "bat_missing", "--json").json["error"]["code"] == "batch_not_found"


def test_a_batch_with_a_failure_is_exit_3(here: RunSvc) -> None:
    Path("fine.md").write_text("Fine words.")
    Path("broken.pdf").write_bytes(b"%PDF-1.7\nnothing that a PDF has")
    (batch_id,) = here("upload", "fine.md", "broken.pdf", "-b", "mixed", "--json").json["batch_ids"]
    waited = here("wait", batch_id, "--json")
    assert (waited.exit, waited.json["error"]["code"]) == (3, "svc_some_failed")
