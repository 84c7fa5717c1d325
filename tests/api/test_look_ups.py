"""Look-ups: sorted lists, failures by reason with their retry, watchers, and the state of the service."""

from collections.abc import Sequence
from typing import Any

import pytest

from svc_daemon.core.access import api_keys
from svc_daemon.core.shortages import ShortageKind
from svc_daemon.databases.contract import Connection
from svc_daemon.process.embedders import EmbeddingState
from svc_daemon.process.engine_states import EngineState
from svc_daemon.process.resource_shortages import EndedShortage, OpenShortage
from svc_daemon.provider.errors import ProviderFailed
from svc_daemon.store.schemas import SORTED
from tests.api.answers import body_of, details_of, refused_field
from tests.api.daemons import Daemon
from tests.api.embedders import WordEmbedder

INBOX = "/v1/buckets/inbox/sources"


def fill(daemon: Daemon) -> list[str]:
    """Add sources with equal and different titles and sizes, some of which fail, and return their ids."""
    texts = [("b", b"one two"), ("a", b"three"), ("b", b"four!"), ("A", b""), ("ä", b"\xffsix"), ("c", b"\0\1\2")]
    made = []
    for title, data in texts:
        daemon.advance(1)
        named = "x.bin" if title == "c" else "notes.md"
        made.append(daemon.add_source(data or b" ", title=title, filename=named))
    daemon.start("indexing")
    for source_id in made:
        daemon.wait(lambda each=source_id: daemon.source(each)["status"] in ("active", "failed"), "indexed")  # type: ignore[misc]
    return made


def walk(daemon: Daemon, sort: str, limit: int, **query: str) -> list[dict[str, Any]]:
    """Return all sources of the sorted list, read page by page."""
    rows, page = [], daemon.show(INBOX, sort=sort, limit=str(limit), **query)
    rows += page["sources"]
    while page["has_more"]:
        page = daemon.show(INBOX, sort=sort, limit=str(limit), after=page["last_id"], **query)
        rows += page["sources"]
    return rows


def wrong_copies(connection: Connection) -> Sequence[Any]:
    """Return the memberships whose copies of what lists are sorted by aren't those of their source."""
    differing = " OR ".join(f"m.source_{name} <> s.{name}" for name in SORTED)
    return connection.execute(
        f"SELECT m.source_id FROM memberships m JOIN sources s ON s.id = m.source_id WHERE {differing}"
    ).fetchall()


@pytest.mark.parametrize("name", SORTED)
def test_sorted_pages_together_are_the_sorted_list_also_under_equal_values(working: Daemon, name: str) -> None:
    working.stop()
    fill(working)
    listed = working.show(INBOX, status="all")["sources"]
    for sort, is_descending in ((name, False), (f"-{name}", True)):
        expected = sorted(listed, key=lambda row: (row[name], row["id"]), reverse=is_descending)
        assert working.show(INBOX, status="all", sort=sort)["sources"] == expected
        for limit in (1, 2, 6):
            assert walk(working, sort, limit, status="all") == expected
    assert working.read(wrong_copies) == []


@pytest.mark.parametrize("looked_at", [1, 4, 4000])
def test_sorted_list_takes_every_filter(working: Daemon, monkeypatch: pytest.MonkeyPatch, looked_at: int) -> None:
    monkeypatch.setattr("svc_daemon.store.rows.sources.listings.LOOKED_AT", looked_at)
    working.stop()
    fill(working)
    failed = [row for row in working.show(INBOX, status="all")["sources"] if row["status"] == "failed"]
    assert {row["id"] for row in walk(working, "-size_bytes", 1, status="failed")} == {row["id"] for row in failed}
    assert [row["title"] for row in walk(working, "title", 1, status="active")] == ["a", "b", "b", "ä"]
    assert [row["title"] for row in walk(working, "title", 2)] == ["a", "b", "b", "ä"]
    assert [row["title"] for row in walk(working, "title", 1, q="B")] == ["b", "b"]
    code = failed[0]["error"]["code"]
    coded = [row["id"] for row in failed if row["error"]["code"] == code]
    assert [row["id"] for row in working.show(INBOX, error_code=code)["sources"]] == coded
    assert working.show(INBOX, error_code="none_such", sort="title", limit="1")["last_id"] is None


def test_each_word_of_q_must_stand_in_title_or_file_name(shared: Daemon) -> None:
    wanted = shared.add_source(title="Leave of absence", filename="policy_2026.md")
    shared.add_source(title="Leave it", filename="other.md")
    for q in ("leave policy", "POLICY  absence", "2026", "leave of", "y_2"):
        assert [row["id"] for row in shared.show(INBOX, status="all", q=q)["sources"]] == [wanted], q
    assert shared.show(INBOX, status="all", q="leave%policy")["sources"] == []


def test_a_sorted_page_continues_behind_a_source_that_has_changed_or_is_gone(daemon: Daemon) -> None:
    ids = [daemon.add_source(title=title) for title in "abcd"]
    page = daemon.show(INBOX, status="all", sort="title", limit="2")
    body_of(daemon.ask("PATCH", f"/v1/sources/{ids[1]}", json={"title": "z"}))
    rest = daemon.show(INBOX, status="all", sort="title", limit="9", after=page["last_id"])
    assert [row["title"] for row in rest["sources"]] == ["c", "d", "z"]
    body_of(daemon.ask("DELETE", f"/v1/sources/{ids[1]}"))
    rest = daemon.show(INBOX, status="all", sort="title", limit="9", after=page["last_id"])
    assert ([row["title"] for row in rest["sources"]], rest["has_more"]) == (["c", "d"], False)
    assert daemon.read(wrong_copies) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("sort=colour", "sort"),
        ("sort=title&sort=title", "sort"),
        ("sort=title&limit=1&after=src_1", "after"),
        # ["-title", "a", "src_1"], ["title", 7, "src_1"] and ["title", "\u0000", "src_1"]
        ("sort=title&limit=1&after=WyItdGl0bGUiLCAiYSIsICJzcmNfMSJd", "after"),
        ("sort=title&limit=1&after=WyJ0aXRsZSIsIDcsICJzcmNfMSJd", "after"),
        ("sort=title&limit=1&after=WyJ0aXRsZSIsICJcdTAwMDAiLCAic3JjXzEiXQ==", "after"),
        ("sorted=title", "sorted"),
        ("tags=a", "tags"),
        ("group_by=title", "group_by"),
        ("group_by=error_code&sort=title", "sort"),
        ("group_by=error_code&status=active", "status"),
    ],
)
def test_a_list_refuses_what_it_does_not_know(shared: Daemon, query: str, field: str) -> None:
    shared.make_bucket()
    assert refused_field(shared.ask("GET", f"{INBOX}?{query}")) == field


def test_bytes_of_a_bucket_are_those_of_its_sources_after_each_change(working: Daemon) -> None:
    def sizes() -> list[int]:
        return [row["bytes"] for row in working.show("/v1/buckets", members="false")["buckets"]]

    working.make_bucket()
    working.make_bucket("second")
    assert sizes() == [0, 0]
    first, other = working.add_ready(b"12345 words"), working.add_ready(b"123 words", filename="b.md")
    body_of(working.ask("POST", "/v1/buckets/second/sources", json={"source_id": other}))
    assert sizes() == [20, 9]
    # The old source counts until the new one takes its place.
    new = working.add_ready(b"1 word", replaces=first)
    working.wait(lambda: working.members() == [other, new], "replaced")
    assert sizes() == [15, 9]
    body_of(working.ask("DELETE", f"{INBOX}/{other}"))
    assert sizes() == [6, 9]
    body_of(working.ask("PATCH", "/v1/buckets/second", json={"status": "archived"}))
    body_of(working.ask("PATCH", "/v1/buckets/second", json={"status": "active"}))
    body_of(working.ask("DELETE", f"/v1/sources/{other}"))
    assert sizes() == [6, 0]
    assert working.show("/v1/buckets/inbox")["bytes"] == 6


def fail_some(daemon: Daemon) -> tuple[str, str]:
    """Add a source that can't be read, and one that the index refuses. Returns their ids."""
    daemon.provider.fail("put_documents", ProviderFailed("No.", retryable=True))
    unread, refused = daemon.add_source(b" ", filename="empty.md"), daemon.add_source(filename="fine.md")
    daemon.write(
        lambda connection: connection.execute("UPDATE tasks SET max_attempts = 1") and None  # fails at the first try
    )
    daemon.start("indexing")
    for source_id in (unread, refused):
        daemon.wait_status(source_id, "failed")
    daemon.stop()
    return unread, refused


def test_failures_are_counted_by_code_with_an_example_and_whether_a_retry_helps(working: Daemon) -> None:
    working.stop()
    unread, refused = fail_some(working)
    answer = working.show(INBOX, group_by="error_code")
    shown = {group["code"]: group for group in answer["groups"]}
    errors = {each: working.source(each)["error"] for each in (unread, refused)}
    assert shown == {
        error["code"]: {
            "code": error["code"],
            "count": 1,
            "retryable": error["retryable"],
            "retryable_count": int(error["retryable"]),
            "message": error["message"],
            "source_id": source_id,
        }
        for source_id, error in errors.items()
    }
    assert (answer["failed"], [errors[each]["retryable"] for each in (unread, refused)]) == (2, [False, True])
    assert working.show(INBOX, group_by="error_code", q="fine")["failed"] == 1


def test_bucket_retry_queues_what_another_try_can_help_and_nothing_the_second_time(working: Daemon) -> None:
    working.stop()
    unread, refused = fail_some(working)
    codes = {each: working.source(each)["error"]["code"] for each in (unread, refused)}
    retry = "/v1/buckets/inbox/retry"
    other = working.post(retry, json={"status": "failed", "codes": ["none_such"]})
    assert (other["queued"], other["queued_by_code"], other["not_helped"]) == (0, {}, {})
    first = working.post(retry, json={"status": "failed"})
    assert (first["queued"], first["queued_by_code"]) == (1, {codes[refused]: 1})
    assert first["not_helped"] == {codes[unread]: 1}
    assert (working.source(refused)["status"], working.source(unread)["status"]) == ("queued", "failed")
    again = working.post(retry, json={"status": "failed"})
    assert (again["queued"], again["not_helped"]) == (0, {codes[unread]: 1})
    assert working.read(wrong_copies) == []
    working.start("indexing")
    working.wait_ready(refused)


@pytest.mark.parametrize(
    "body", [{}, {"status": "active"}, {"status": "failed", "codes": "x"}, {"status": "failed", "dry_run": True}]
)
def test_bucket_retry_refuses_another_body(shared: Daemon, body: dict[str, Any]) -> None:
    shared.make_bucket()
    details_of(shared.ask("POST", "/v1/buckets/inbox/retry", json=body), "invalid_request")


STATUS, WATCHERS = "/v1/status", "/v1/watchers"
NOTHING_WRONG = {"status": "ok", "shortage": None, "last_trouble": None}


def test_status_shows_the_queue_the_vectors_and_the_disk(working: Daemon) -> None:
    working.stop()
    working.add_source()
    shown = working.show(STATUS)
    assert {name: shown[name] for name in NOTHING_WRONG} == NOTHING_WRONG
    assert shown["queue"] == {"queued": 1, "running": 0}
    off = {"state": "off", "model": None, "passages": 0, "missing": 0, "seconds_left": None}
    assert shown["vectors"] == off
    assert shown["disk"]["free_bytes"] > shown["disk"]["least_free_bytes"] > 0
    working.start()
    working.wait(lambda: working.show(STATUS)["queue"] == {"queued": 0, "running": 0}, "indexed")
    assert (working.show(STATUS)["vectors"]["passages"], working.show(STATUS)["vectors"]["missing"]) == (1, 1)


def test_vectors_of_the_status_come_with_the_time_that_is_left(working: Daemon) -> None:
    source_id = working.add_ready()
    embedding = working.context.embedding
    working.embed_with(WordEmbedder())
    assert working.show(STATUS)["vectors"]["seconds_left"] is None
    embedding.note_batch(10, 30.0)
    assert working.show(STATUS)["vectors"] | {"model": ""} == {
        "state": "ready",
        "model": "",
        "passages": 1,
        "missing": 1,
        "seconds_left": 3,
    }
    embedding.note_batch(10, 80.0)
    assert working.show(STATUS)["vectors"]["seconds_left"] == 4
    body_of(working.ask("DELETE", f"/v1/sources/{source_id}"))
    working.wait(lambda: working.show(STATUS)["vectors"]["passages"] == 0, "deleted")
    assert working.show(STATUS)["vectors"]["seconds_left"] == 0


def test_status_names_the_trouble_that_lasts_and_then_the_last_one(daemon: Daemon) -> None:
    embedding, shortages = daemon.context.embedding, daemon.context.shortages
    embedding.state, embedding.message = EmbeddingState.FAILING, "The model is gone."
    assert daemon.show(STATUS)["last_trouble"] == {"message": "The model is gone.", "since": None, "until": None}
    shortages.now = OpenShortage(ShortageKind.DISK, "2026-01-01T00:00:00.000Z", "The disk is full.")
    trouble = {"message": "The disk is full.", "since": "2026-01-01T00:00:00.000Z", "until": None}
    assert daemon.show(STATUS)["last_trouble"] == trouble
    since = "2026-01-02T00:00:00.000Z"
    daemon.context.engines.now["s3"] = EngineState("s3", "The S3 store can't be used.", since)
    shown = daemon.show(STATUS)
    away = {"message": "The S3 store can't be used.", "since": since}
    assert (shown["last_trouble"], shown["engines"]) == (
        away | {"until": None},
        [away | {"name": "s3", "state": "away"}],
    )
    daemon.context.engines.now.clear()
    embedding.state, embedding.message = EmbeddingState.OFF, None
    shortages.last, shortages.now = EndedShortage(shortages.now, "2026-01-01T00:01:00.000Z"), None
    shown = daemon.show(STATUS)
    assert (shown["last_trouble"], shown["shortage"]) == (trouble | {"until": "2026-01-01T00:01:00.000Z"}, None)


def test_status_of_a_limited_key_is_that_of_its_buckets(working: Daemon) -> None:
    working.stop()
    working.add_source()
    limited = working.add_key(api_keys.READ, buckets=(working.make_bucket("second"),))
    assert working.show(STATUS, key=limited)["queue"] == {"queued": 0, "running": 0}
    reached = working.add_key(api_keys.READ, buckets=(working.make_bucket(),))
    assert working.show(STATUS, key=reached)["queue"] == {"queued": 1, "running": 0}
    working.start()
    working.wait(lambda: working.show(STATUS)["vectors"]["passages"] == 1, "indexed")
    shown = [working.show(STATUS, key=each) for each in (limited, reached, working.add_team())]
    assert [each["vectors"]["passages"] for each in shown] == [0, 1, 0]
    assert [each["disk"] is None for each in shown] == [True, True, False]
    assert refused_field(working.ask("GET", f"{STATUS}?verbose=1")) == "verbose"


MAPPING = {"name": "docs", "bucket": "inbox", "state": "watching", "last_look_at": "2026-01-01T00:00:00.000Z"}


def put_watcher(daemon: Daemon, watcher_id: str, *mappings: dict[str, Any], key: str | None = None) -> Any:
    return daemon.ask("PUT", f"{WATCHERS}/{watcher_id}", key=key, json={"mappings": list(mappings)})


def test_a_watcher_is_shown_until_a_minute_after_its_last_report(daemon: Daemon) -> None:
    first = body_of(put_watcher(daemon, "w1", MAPPING))
    troubled = {**MAPPING, "state": "troubled", "troubles": ["The folder can't be read."]}
    daemon.advance(40)
    last = body_of(put_watcher(daemon, "w1", troubled))
    (shown,) = daemon.show(WATCHERS)["data"]
    assert (shown["id"], shown["mappings"], shown["reported_at"]) == ("w1", [troubled], last["reported_at"])
    assert first["mappings"] == [{**MAPPING, "troubles": []}]
    assert last["expires_at"] > last["reported_at"] > first["reported_at"]
    daemon.advance(59)
    assert len(daemon.show(WATCHERS)["data"]) == 1
    daemon.advance(1)
    assert daemon.show(WATCHERS)["data"] == []
    body_of(put_watcher(daemon, "w2", MAPPING))
    assert daemon.count("watchers") == 1


def test_watchers_are_seen_by_the_keys_that_reach_their_buckets(shared: Daemon) -> None:
    mine, other = shared.make_bucket("mine"), shared.make_bucket("other")
    body_of(put_watcher(shared, "w1", {**MAPPING, "bucket": "mine"}, {**MAPPING, "name": "b", "bucket": other}))
    limited = shared.add_key(buckets=(mine,))
    (seen,) = shared.show(WATCHERS, key=limited)["data"]
    assert [mapping["bucket"] for mapping in seen["mappings"]] == ["mine"]
    # The same id with another key is another watcher, and a bucket that does not exist is shown to whoever named it.
    body_of(put_watcher(shared, "w1", {**MAPPING, "bucket": "none-yet"}, key=limited))
    assert [each["mappings"][0]["bucket"] for each in shared.show(WATCHERS, key=limited)["data"]] == [
        "mine",
        "none-yet",
    ]
    assert len(shared.show(WATCHERS)["data"]) == 2
    assert shared.show(WATCHERS, key=shared.add_key(buckets=(shared.make_bucket("third"),)))["data"] == []
    assert shared.show(WATCHERS, key=shared.add_team())["data"] == []
    details_of(put_watcher(shared, "w1", MAPPING, key=shared.add_key(api_keys.READ)), "forbidden_project_key")


@pytest.mark.parametrize(
    ("watcher_id", "change", "field"),
    [
        ("a b", {}, "watcher_id"),
        ("w" * 65, {}, "watcher_id"),
        ("w", {"state": "bored"}, "mappings.0.state"),
        ("w", {"last_look_at": "yesterday"}, "mappings.0.last_look_at"),
        ("w", {"name": "a\nb"}, "mappings.0.name"),
        ("w", {"bucket": "a/b"}, "mappings.0.bucket"),
        ("w", {"troubles": ["x"] * 21}, "mappings.0.troubles"),
    ],
)
def test_an_odd_report_is_refused(shared: Daemon, watcher_id: str, change: dict[str, Any], field: str) -> None:
    assert refused_field(put_watcher(shared, watcher_id, {**MAPPING, **change})) == field


def test_a_key_has_a_hundred_watchers_at_most(shared: Daemon) -> None:
    key = shared.add_key()
    for number in range(100):
        body_of(put_watcher(shared, f"w{number}", key=key))
    assert refused_field(put_watcher(shared, "w100", key=key)) == "watcher_id"
    body_of(put_watcher(shared, "w7", key=key))
