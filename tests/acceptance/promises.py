"""Compare what the service has acknowledged to the clients of `workloads` with what it has once it is idle."""

import json
from collections import Counter
from collections.abc import Sequence

import httpx

from tests.acceptance.calls import list_sources, wait_ended, wait_task
from tests.acceptance.installations import wait_until
from tests.acceptance.workloads import BUCKETS, Client, Made, Site

#: How many documents one search looks for, each by its unique word.
WORDS_AT_ONCE = 4


def assert_promises_kept(client: httpx.Client, clients: Sequence[Client], site: Site, settle_s: float = 90.0) -> None:
    """Wait until all work is done, and assert that everything acknowledged exists once, and nothing else does.

    Work that waits for an expiring lease or a retry after the last kill has to end within `settle_s`.
    """
    _wait_settled(client, clients, settle_s)
    made = [made for each in clients for made in each.made]
    _assert_sources(client, made)
    _assert_searches(client, made)
    _assert_webhooks(site, made)
    for each in clients:
        # A replay of each idempotency key returns the source that the key has created.
        assert [key for key, (send, source_id) in each.answered.items() if send(key)["id"] != source_id] == []
        each.close()


def _wait_settled(client: httpx.Client, clients: Sequence[Client], settle_s: float) -> None:
    """Wait until all deletions, all indexing and all webhook calls have ended."""
    for task_id in (task_id for each in clients for task_id in each.cascades):
        assert wait_task(client, task_id, settle_s)["status"] == "succeeded"
    for made in (made for each in clients for made in each.made if not made.is_deleted):
        wait_ended(client, made.id, settle_s)

    def is_quiet() -> bool:
        return not client.get("/v1/webhooks/deliveries", params={"status": "pending"}).json()["deliveries"]

    wait_until(is_quiet, "the end of all webhook calls", settle_s)


def _assert_sources(client: httpx.Client, made: Sequence[Made]) -> None:
    """Assert that the buckets contain each acknowledged source once, and no others."""
    wanted = {(bucket, each.id) for each in made if not each.is_deleted for bucket in each.buckets}
    listed = [(bucket, source) for bucket in BUCKETS for source in list_sources(client, bucket)]
    assert Counter((bucket, source["id"]) for bucket, source in listed) == Counter(wanted)
    sources = {source["id"]: source for _, source in listed}
    for each in made:
        if each.is_deleted:
            assert client.get(f"/v1/sources/{each.id}").status_code == 404, each
            continue
        source = sources[each.id]
        assert source["ready"] == each.is_readable, source
        assert each.title in (None, source["title"])
        assert each.sha256 in (None, source["sha256"])


def _assert_searches(client: httpx.Client, made: Sequence[Made]) -> None:
    """Assert that a search finds each source by its unique word, and no deleted source and no stored question."""
    for start in range(0, len(made), WORDS_AT_ONCE):
        some = made[start : start + WORDS_AT_ONCE]
        query = {"query": " ".join(each.word for each in some), "buckets": list(BUCKETS), "max_num_results": 50}
        answer = client.post("/v1/search", json=query)
        found = {hit["source_id"] for hit in answer.json()["data"]}
        there = {each.id for each in some if each.is_readable and each.type != "qa" and not each.is_deleted}
        assert found & {each.id for each in some} == there, (some, found)


def _assert_webhooks(site: Site, made: Sequence[Made]) -> None:
    """Assert that each remaining source with a URL was reported as ready, with the same event id in each call."""
    events: dict[str, set[str]] = {}
    for call in (json.loads(seen.body) for seen in site.server.requests if seen.path == "/hook"):
        assert call["event"] == "source.ready", call
        events.setdefault(call["source_id"], set()).add(call["id"])
    assert {source_id for source_id, ids in events.items() if len(ids) > 1} == set()
    assert {each.id for each in made if each.path and not each.is_deleted} - events.keys() == set()
