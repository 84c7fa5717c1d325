"""`svc events` lists past events and follows new ones."""

import json
import signal
from pathlib import Path

import pytest

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.installations import PATIENCE_S, Installation
from tests.acceptance.sync_folders import count_requests, write
from tests.cli.odd_servers import serving


def test_events_lists_past_events_with_filters_and_pages(installation: Installation, tmp_path: Path) -> None:
    write(tmp_path, "plan.md", "The umber quay.")
    write(tmp_path, "broken.pdf", b"%PDF-1.7\nnothing that a PDF has")
    assert installation.svc("upload", "plan.md", "broken.pdf", "-b", "notes", cwd=tmp_path).exit == 3
    shown = installation.svc("events", "-b", "notes").stdout.splitlines()
    assert "bucket.created" in shown[0]
    assert any("source.ready" in line and "plan.md" in line and "src_" in line for line in shown)
    assert any("source.failed" in line and "document_unreadable" in line for line in shown)
    page = installation.svc("events", "--types", "source.ready,source.failed", "--json").json
    assert sorted(event["data"]["title"] for event in page["data"]) == ["broken.pdf", "plan.md"]
    first = installation.svc("events", "--limit", "1", "--json").json
    rest = installation.svc("events", "--after", first["last_id"], "--json").json
    assert [first["has_more"], len(rest["data"])] == [True, len(installation.svc("events", "--json").json["data"]) - 1]
    assert "--after" in installation.svc("events", "--limit", "1").stderr
    assert (
        installation.svc("events", "--after", "evt_01k00000000000000000000000", "--json").failure[1] == "events_expired"
    )
    assert installation.svc("events", "--follow", "--json").failure == (2, "svc_usage")


@pytest.mark.rule("log.follow")
def test_events_follow_and_webhook_listen_resume_after_a_restart_of_the_daemon(installation: Installation) -> None:
    with installation.client() as client:
        make_bucket(client, "notes")
        latest = client.get("/v1/events", params={"after": "latest"}).json()["last_id"]
    flags = ("--after", latest, "--ndjson")
    with (
        serving() as odd,
        installation.spawn_svc("events", "--follow", "--types", "source.ready", *flags) as following,
        installation.spawn_svc("webhook", "listen", "--forward-to", f"{odd.url}/hook", *flags) as listening,
    ):
        odd.answers["POST /hook"] = (204, b"", {})
        try:
            for title in ("first.md", "second.md"):
                with installation.client() as client:
                    upload(client, "notes", title, b"# Binder").raise_for_status()
                assert following.stdout is not None
                assert listening.stdout is not None
                assert json.loads(following.stdout.readline())["data"]["title"] == title
                assert json.loads(listening.stdout.readline())["title"] == title
                if title == "first.md":
                    installation.kill()
                    for command in (following, listening):
                        assert command.stderr is not None
                        assert any("away" in line for line in command.stderr)
                    # The daemon has a new address from now on.
                    installation.start()
        finally:
            following.kill()
            listening.kill()


@pytest.mark.rule("log.wait")
def test_wait_for_many_sources_sends_few_requests(installation: Installation, tmp_path: Path, large: bool) -> None:
    count = 1000 if large else 100
    for number in range(count):
        write(tmp_path / "docs", f"{number}.md", f"Words of {number}.")
    sent = installation.svc("upload", "docs", "-b", "notes", "--wait", "accepted", "--json", cwd=tmp_path).json
    ids = [item["source_id"] for item in sent["items"]]
    before = count_requests(installation).total()
    waited = installation.svc("wait", *ids, "--json")
    assert (waited.exit, waited.json["counts"]["ready"], len(ids)) == (0, count, count)
    assert 0 < count_requests(installation).total() - before < (20 if large else 10)


def test_events_follow_prints_each_event_in_order_until_ctrl_c(installation: Installation, tmp_path: Path) -> None:
    with installation.client() as client:
        client.put("/v1/buckets/notes")
        latest = client.get("/v1/events", params={"after": "latest"}).json()["last_id"]
    flags = ("--ndjson", "--types", "source.ready", "--after", latest)
    following = installation.spawn_svc("events", "--follow", *flags)
    try:
        titles = [f"{number}.md" for number in range(4)]
        for title in titles:
            write(tmp_path, title, f"Words of {title}.")
            assert installation.svc("upload", title, "-b", "notes", cwd=tmp_path).exit == 0
        assert following.stdout is not None
        assert [json.loads(following.stdout.readline())["data"]["title"] for _ in titles] == titles
        following.send_signal(signal.SIGINT)
        assert following.wait(PATIENCE_S) == 130
    finally:
        following.kill()
        following.communicate()
