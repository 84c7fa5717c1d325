"""`svc import`, `svc source refresh`, `svc batch` and `svc webhook` against a real daemon and real hosts."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_cli.client.api import Client
from svc_cli.client.imports import ImportRequest
from svc_cli.transfer.imports import ImportOptions, import_one
from tests.acceptance.installations import Finished, Installation, wait_until
from tests.cli.odd_servers import OddServer
from tests.cli.terminals import Json, RunSvc, only

RunImport = Callable[[str], Finished]

TEXT = b"# Ferries\n\nThe cobalt ferry leaves at nine."
PAGE = b"""<!doctype html><html><head><title>Harbour news</title></head><body><nav>Home</nav>
<article><h1>Harbour news</h1>
<p>The umber harbour opens in May, and the ferries of the whole coast will call there twice a day from then on.</p>
<p>A traveller with a bicycle needs a ticket for it, which the office at the pier sells in the morning.</p>
</article></body></html>"""


@pytest.fixture
def here(at: Callable[[Installation], RunSvc], open_installation: Installation, odd: OddServer) -> RunSvc:
    odd.answers["GET /ferries.md"] = (200, TEXT, {"Content-Type": "text/markdown", "ETag": '"one"'})
    odd.answers["GET /news"] = (200, PAGE, {"Content-Type": "text/html"})
    odd.answers["POST /hook"] = (200, {}, {})
    return at(open_installation)


@pytest.fixture
def run_import(here: RunSvc, bucket: str, odd: OddServer) -> RunImport:
    """Run `svc import … --json` into the test's own bucket; `@` stands for the URL of the odd server."""
    return lambda words: here("import", *shlex.split(words.replace("@", odd.url)), "-b", bucket, "--json")


def _fetches(odd: OddServer, path: str) -> int:
    return [(method, asked) for method, asked, _ in odd.requests].count(("GET", path))


def test_files_and_pages_are_imported_and_become_ready(run_import: RunImport, odd: OddServer) -> None:
    finished = run_import("@/ferries.md @/news --tag sea")
    assert finished.exit == 0
    assert finished.json["type"] == "import.summary"
    items = [(item["path"], item["action"], item["ready"]) for item in finished.json["items"]]
    assert items == [(f"{odd.url}/{name}", "created", True) for name in ("ferries.md", "news")]


def test_interval_that_an_older_service_passes_over_is_named(odd: OddServer) -> None:
    odd.answers["POST /v1/buckets/bkt_1/pages"] = (201, {"id": "src_1", "status": "queued", "ready": False}, {})
    options = ImportOptions(
        urls=(),
        bucket="bkt_1",
        kind="page",
        pattern=ImportRequest(url="", refresh={"every_seconds": 900}),
        is_refresh=False,
        wait="ready",
        timeout_s=None,
        no_create=True,
        is_dry=False,
    )
    with Client(odd.url, "sk-test") as client:
        item = import_one(client, "https://example.org/news", {}, options)
    assert item.warnings == ["it is not fetched again by itself: the service is older than `svc`."]


def test_what_is_as_its_url_looks_like_is_fetched_once(run_import: RunImport, odd: OddServer, here: RunSvc) -> None:
    odd.answers["GET /text"] = odd.answers["GET /ferries.md"]
    odd.answers["GET /page.txt"] = odd.answers["GET /news"]
    assert run_import("@/ferries.md @/news @/text @/page.txt").exit == 0
    fetches = [_fetches(odd, path) for path in ("/ferries.md", "/news", "/text", "/page.txt")]
    assert fetches == [1, 1, 2, 2]


def test_two_urls_of_one_page_become_one_ready_source(run_import: RunImport) -> None:
    finished = run_import("@/news @/news#tickets")
    assert finished.exit == 0
    assert finished.json["counts"]["pending"] == 0
    assert len({item["source_id"] for item in finished.json["items"]}) == 1
    assert [item["ready"] for item in finished.json["items"]] == [True, True]


def test_an_import_is_fetched_again_only_to_be_refreshed(run_import: RunImport, odd: OddServer, here: RunSvc) -> None:
    would = run_import("@/ferries.md --dry-run")
    assert would.exit == 0
    assert only(would)["action"] == "would_create"
    assert _fetches(odd, "/ferries.md") == 0
    assert here("bucket", "show", "an-import-is-fetched-again-only-to-be-refreshed").exit == 5
    first, second = only(run_import("@/ferries.md")), only(run_import("@/ferries.md"))
    source_id = first["source_id"]
    assert first["action"] == "created"
    assert second["action"] == "unchanged"
    assert second["source_id"] == source_id
    assert "webhook is not called" in only(run_import("@/ferries.md --webhook @/hook"))["warnings"][0]
    assert _fetches(odd, "/ferries.md") == 1
    same = run_import("@/ferries.md --refresh")
    assert same.exit == 0
    assert only(same)["action"] == "unchanged"
    odd.answers["GET /ferries.md"] = (200, TEXT + b" And at ten.", {"Content-Type": "text/markdown"})
    changed = only(run_import("@/ferries.md --refresh"))
    assert changed["action"] == "refreshed"
    assert changed["ready"] is True
    assert changed["source_id"] == source_id
    assert here("source", "refresh", source_id, "--dry-run", "--json").json["dry_run"] is True
    assert here("source", "refresh", source_id, "--json").json["changed"] is False


def test_a_url_is_known_in_every_spelling(run_import: RunImport, odd: OddServer) -> None:
    path = "/preise%20%C3%BC.md"
    odd.answers[f"GET {path}"] = (200, TEXT, {"Content-Type": "text/markdown"})
    first = only(run_import("'@/preise ü.md'"))
    assert (first["action"], first["ready"]) == ("created", True)
    for spelling in ("'@/preise ü.md'", f"@{path}", "@/pr%65ise%20%c3%bc.md#top", "'@/x/../preise ü.md'"):
        again = only(run_import(spelling))
        assert (again["action"], again["source_id"]) == ("unchanged", first["source_id"]), spelling
    odd.answers[f"GET {path}"] = (200, TEXT + b" And at ten.", {"Content-Type": "text/markdown"})
    assert only(run_import("'@/preise ü.md' --refresh"))["action"] == "refreshed"
    assert _fetches(odd, path) == 2


def test_known_url_says_that_its_title_tags_and_metadata_stay(run_import: RunImport) -> None:
    source_id = only(run_import("@/ferries.md --tag sea --meta by=me"))["source_id"]
    for words in ("--tag sea --meta by=me", ""):
        assert only(run_import(f"@/ferries.md {words}"))["warnings"] == []
    for words in ("--tag new", "--meta by=you", "--title Other", "--tag new --refresh"):
        again = only(run_import(f"@/ferries.md {words}"))
        assert (again["action"], again["source_id"]) == ("unchanged", source_id)
        assert ["stay as they are" in warning for warning in again["warnings"]] == [True], words


def test_an_interval_is_set_for_new_urls_and_known_ones_and_is_ended(
    run_import: RunImport, odd: OddServer, here: RunSvc
) -> None:
    odd.answers["GET /daily"] = (200, PAGE, {"Content-Type": "text/html"})
    first = only(run_import("@/daily --every 1d"))
    source_id, asked = first["source_id"], _fetches(odd, "/daily")
    shown = [here("source", "show", source_id, "--json").json["refresh"]]
    for words, action in (("@/daily --every 2d --on-gone delete", "unchanged"), ("@/daily#a --every 12h", "unchanged")):
        assert only(run_import(words))["action"] == action
        shown.append(here("source", "show", source_id, "--json").json["refresh"])
    every = [(each["every_seconds"], each["on_gone"]) for each in shown]
    assert every == [(86_400, "report"), (172_800, "delete"), (43_200, "delete")]
    assert "every 12 h" in here("source", "show", source_id).stdout
    assert "is so already" in here("source", "set", source_id, "--every", "12h").stdout
    assert here("source", "set", source_id, "--every", "never", "--json").json["refresh"] is None
    assert only(run_import("@/daily --every never"))["action"] == "unchanged"
    assert _fetches(odd, "/daily") == asked
    for wrong in (("--every", "soon"), ("--every", "0"), ("--on-gone", "delete")):
        assert here("source", "set", source_id, *wrong, "--json").failure == (2, "svc_usage")
    assert here("source", "set", source_id, "--every", "0.5s", "--json").exit == 2


def test_a_page_that_can_not_be_refreshed_is_shown_as_stale(
    run_import: RunImport, bucket: str, odd: OddServer, here: RunSvc
) -> None:
    odd.answers["GET /stale"] = (200, PAGE, {"Content-Type": "text/html"})
    source_id = only(run_import("@/stale --every 1s"))["source_id"]
    odd.answers["GET /stale"] = (503, {}, {})
    in_bucket = ("source", "ls", "-b", bucket)

    wait_until(lambda: here(*in_bucket, "--stale", "--json").json["sources"], "a refresh fails")
    assert source_id in here(*in_bucket, "--stale").stdout
    assert " stale" in here(*in_bucket).stdout
    listed = here("status", "-b", bucket).stdout
    assert "1 source could not be refreshed" in listed and "503" in listed
    assert "1 source could not be refreshed" in here("status").stdout
    assert "in a row" in here("source", "show", source_id).stdout
    assert "refresh failed: The remote host answered 503." in here("events", "-b", bucket).stdout
    for command in (("search", "harbour", "ferries"), ("ask", "when does the umber harbour open")):
        shown = here(*command, "-b", bucket).stdout.splitlines()
        assert any("may be outdated" in line for line in shown)
        assert f"{odd.url}/stale" in map(str.strip, shown)
    assert here("source", "set", source_id, "--every", "never").exit == 0
    assert here(*in_bucket, "--stale", "--json").json["sources"] == []


def test_a_whole_bucket_is_refreshed_at_once(run_import: RunImport, bucket: str, odd: OddServer, here: RunSvc) -> None:
    for path in ("one.md", "two.md", "three.md"):
        odd.answers[f"GET /{path}"] = (200, TEXT, {"Content-Type": "text/markdown"})
    assert run_import("@/one.md --every 1d").exit == run_import("@/two.md @/three.md").exit == 0
    odd.answers["GET /one.md"] = odd.answers["GET /two.md"] = (200, TEXT + b" A crimson one.", {})
    odd.answers["GET /three.md"] = (503, {}, {})
    whole = ("source", "refresh", "-b", bucket)
    assert [item["action"] for item in here(*whole, "--dry-run", "--json").json["items"]] == ["would_refresh"]
    scheduled = here(*whole, "--json")
    assert (scheduled.exit, scheduled.json["type"]) == (0, "refresh.summary")
    assert [(item["action"], item["ready"]) for item in scheduled.json["items"]] == [("refreshed", True)]
    everything = here(*whole, "--all", "--json")
    assert everything.exit == 7
    actions = {item["path"].rpartition("/")[2]: item["action"] for item in everything.json["items"]}
    assert actions == {"one.md": "unchanged", "two.md": "refreshed", "three.md": "failed"}
    for words in ((), ("src_01k3zq8q4y7x", "--all")):
        assert here("source", "refresh", *words, "--json").failure == (2, "svc_usage")


def test_deleted_import_is_created_again_as_a_new_source(run_import: RunImport, here: RunSvc) -> None:
    ids = set()
    for _ in range(2):
        item = only(run_import("@/ferries.md"))
        assert item["action"] == "created"
        assert item["ready"] is True
        assert item["source_id"] not in ids
        ids.add(item["source_id"])
        assert here("source", "rm", item["source_id"], "--force").exit == 0


def test_page_of_another_bucket_is_a_conflict_whose_hint_names_attach(
    run_import: RunImport, odd: OddServer, here: RunSvc
) -> None:
    odd.answers["GET /other"] = (200, PAGE, {"Content-Type": "text/html"})
    assert here("import", f"{odd.url}/other", "-b", "elsewhere").exit == 0
    finished = run_import("@/other")
    item = only(finished)
    assert finished.exit == 6
    assert item["action"] == "conflict"
    assert item["error"]["code"] == "website_url_exists"
    assert f"svc source attach {item['source_id']}" in item["error"]["hint"]


def test_failed_imports_report_their_error_and_exit_code(run_import: RunImport, odd: OddServer) -> None:
    odd.answers["GET /down"] = (503, {}, {})
    for words, failure in {
        "--as page @/ferries.md": (3, "url_is_file"),
        "--as file @/news": (3, "url_is_web_page"),
        "@/missing": (7, "website_analysis_failed"),
        "@/down": (7, "website_analysis_failed"),
        "@/missing.pdf": (7, "url_fetch_failed"),
        "http://[odd": (3, "url_fetch_blocked"),
        "ftp://127.0.0.1/x": (3, "url_fetch_blocked"),
        **dict.fromkeys((".", "@/a @/b --title T", "@/a --force", "@/a --webhook-meta a=b", ""), (2, "svc_usage")),
    }.items():
        assert run_import(words).failure == failure, words
    assert _fetches(odd, "/down") == 1, "a host that does not deliver is asked once"
    hints = [only(run_import(f"@/{path}"))["error"]["hint"] for path in ("missing", "down")]
    assert [hint is not None and "check the URL" in hint for hint in hints] == [True, False]


def test_force_imports_a_page_as_a_file(run_import: RunImport) -> None:
    finished = run_import("--as file --force @/news")
    assert finished.exit == 0
    assert finished.json["counts"]["ready"] == 1


def test_webhook_call_is_delivered_listed_resent_and_verified(
    run_import: RunImport, odd: OddServer, here: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    source_id = only(run_import("@/ferries.md --webhook @/hook --webhook-meta ticket=7"))["source_id"]

    def delivered() -> Json | None:
        listed = here("webhook", "deliveries", "--source", source_id, "--json").json["deliveries"]
        return listed[0] if listed and listed[0]["status"] == "delivered" else None

    event = wait_until(delivered, "the call")["id"]
    assert event in here("webhook", "deliveries").stdout
    for name in ("evt_", event[: len("evt_") + 7]):
        assert here("webhook", "resend", name, "--json").failure == (2, "svc_not_exact")
    assert here("webhook", "resend", event[:-1] + "_", "--dry-run").exit == 5
    for name in (event, event[:-1]):
        assert here("webhook", "resend", name, "--dry-run", "--json").json == {"id": event, "dry_run": True}
    assert here("webhook", "resend", event, "--json").json["id"] == event
    calls = wait_until(lambda: [seen for seen in odd.calls if seen[0] == "/hook"][1:], "the second call")
    _, headers, body = calls[0]
    assert json.loads(body)["metadata"] == {"ticket": "7"}
    Path("body.json").write_bytes(body)
    Path("secret").write_text(here("webhook", "secret").stdout)
    names = [name for name in headers if name.lower().startswith("webhook-")]
    given = [word for name in names for word in ("-H", f"{name}: {headers[name]}")]
    checked = here("webhook", "verify", "body.json", *given, "--secret-file", "secret", "--json")
    assert checked.exit == 0
    assert checked.json["valid"] is True
    assert checked.json["id"] == event
    monkeypatch.setenv("SVC_WEBHOOK_SECRET", Path("secret").read_text())
    assert here("webhook", "verify", "-", *given, stdin=body).exit == 0
    assert here("webhook", "verify", "-", *given, "--json", stdin=body + b" ").failure == (3, "svc_webhook_invalid")


def test_webhook_verify_refuses_an_expired_call_unless_any_age_is_given(
    svc: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = ("webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp: 1614265330")
    signature = "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    given = [word for header in (*headers, signature) for word in ("-H", header)]
    body = b'{"test": 2432232314}'
    assert svc("webhook", "verify", "-", *given, stdin=body).exit == 3
    kept = svc("webhook", "verify", "-", *given, "--any-age", "--json", stdin=body)
    assert kept.exit == 0
    assert kept.json["verdict"] == "expired"
    changed = svc("webhook", "verify", "-", *given, "--any-age", "--json", stdin=b"{}")
    assert changed.exit == 3
    assert "matching signature" in changed.json["error"]["message"]


def test_webhook_verify_without_headers_or_a_valid_secret_is_a_usage_error(
    svc: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, secret, code in (
        *(("-H webhook-id", None, "svc_usage"), ("", None, "svc_usage")),
        ("--secret-file none", None, "svc_file_refused"),
        *(("-H 'webhook-id: msg_1'", secret, "svc_usage") for secret in ("whsec_", "whsec_!!!!")),
    ):
        if secret:
            monkeypatch.setenv("SVC_WEBHOOK_SECRET", secret)
        finished = svc("webhook", "verify", "-", *shlex.split(words), "--json", stdin=b"{}")
        assert finished.failure == (2, code), (words, secret)


def test_rotating_the_webhook_secret_returns_the_new_and_the_previous_one(here: RunSvc) -> None:
    before = here("webhook", "secret", "--json").json["secret"]
    assert "secret" not in here("webhook", "secret", "--rotate", "--dry-run", "--json").json
    after = here("webhook", "secret", "--rotate", "--json").json
    assert after["previous_secret"] == before
    assert after["secret"] != before


def test_batches_are_shown_and_waited_for(here: RunSvc) -> None:
    names = [f"{number}.md" for number in range(3)]
    for name in names:
        Path(name).write_text(f"Words of file {name}.")
    (batch_id,) = here("upload", *names, "-b", "together", "--wait", "accepted", "--json").json["batch_ids"]
    source_id = here("source", "ls", "-b", "together", "--json").json["sources"][0]["id"]
    waited = here("wait", batch_id, source_id, "--json").json
    assert waited["exit_code"] == 0
    assert waited["counts"] == {"ready": 2, "failed": 0, "pending": 0}
    assert here("status", batch_id, "--json").json["counters"]["active"] == 3
    assert here("status", batch_id, "--watch").exit == 0
    shown = here("batch", "show", batch_id, "--items")
    assert shown.exit == 0
    assert "completed" in shown.stdout
    assert source_id in shown.stdout
    assert here("batch", "show", batch_id, "--json").json["status"] == "completed"
    Path("broken.pdf").write_bytes(b"%PDF-1.7\nnothing that a PDF has")
    (mixed,) = here("upload", *names, "broken.pdf", "-b", "mixed", "--json").json["batch_ids"]
    failed = here("wait", mixed, "--json")
    assert failed.failure == (3, "svc_some_failed")
    assert failed.json["error"]["message"] == "1 of 4 files are not ready: 1 failed."
    assert here("source", "rm", source_id, "--force").exit == 0
    gone = here("wait", batch_id, "--json")
    assert gone.json["error"]["message"] == "1 of 3 files are not ready: 1 deleted since."
    assert "1 failed or gone" in here("batch", "show", batch_id).stdout
    assert here("batch", "show", "bat_missing").exit == 5
    missing = here("wait", "bat_missing", "--json")
    assert missing.failure == (5, "batch_not_found")
    assert "complete id" in missing.json["error"]["hint"]


def test_a_password_in_an_address_is_refused_and_not_printed(here: RunSvc, bucket: str) -> None:
    urls = ("http://ann:sesame@a.example/x", "ftp://ann:sesame@a.example/x", "ann:sesame@a.example")
    for words in ((), ("--json",)):
        ran = here("import", *urls, "-b", bucket, *words)
        assert (ran.exit, "sesame" in ran.stdout + ran.stderr, ran.stdout.count("***@a.example")) == (3, False, 3)


def test_page_that_the_key_can_not_reach_is_a_conflict(
    run_import: RunImport, bucket: str, odd: OddServer, here: RunSvc, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd.answers["GET /secret"] = (200, PAGE, {"Content-Type": "text/html"})
    assert here("import", f"{odd.url}/secret", "-b", "board").exit == 0
    assert here("bucket", "create", bucket).exit == 0
    key = here("key", "create", "ci", "--preset", "ingest", "-b", bucket, "--json").json["key"]
    monkeypatch.setenv("SVC_API_KEY", key)
    finished = run_import("@/secret")
    assert (finished.exit, only(finished)["source_id"]) == (6, None)
    assert "in no bucket that this key can reach" in only(finished)["error"]["message"]


def test_source_shows_where_its_url_redirects_to(run_import: RunImport, odd: OddServer, here: RunSvc) -> None:
    odd.answers["GET /old.md"] = (302, {}, {"Location": "/ferries.md"})
    moved, plain = (only(run_import(words))["source_id"] for words in ("@/old.md", "@/ferries.md#now"))
    assert f"redirects to  {odd.url}/ferries.md\n" in here("source", "show", moved).stdout
    assert "redirects" not in here("source", "show", plain).stdout
