"""Metrics of a real daemon under load are valid for Prometheus' own parser and agree with what its clients saw."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.acceptance.calls import make_bucket, upload
from tests.acceptance.installations import Installation, wait_until
from tests.acceptance.test_events import list_events

BUCKET = "inbox"
CLIENTS, ROUNDS, LARGE_ROUNDS = 4, 6, 200
FILES, SEARCH, SOURCE, BUCKETS = (
    ("POST", "/v1/buckets/{bucket}/files"),
    ("POST", "/v1/search"),
    ("GET", "/v1/sources/{source_id}"),
    ("GET", "/v1/buckets"),
)


def families(client: httpx.Client) -> dict[str, Metric]:
    text = client.get("/metrics").raise_for_status().text
    return {family.name: family for family in text_string_to_metric_families(text)}


def work(one: Installation, number: int, rounds: int) -> Counter[tuple[str, ...]]:
    """Upload, search and send failing requests, and return how often each request had each status."""
    seen: Counter[tuple[str, ...]] = Counter()
    with one.client() as client:
        for turn in range(rounds):
            for name, data in (("good.md", b"# Binder\n\nWords."), ("broken.pdf", b"%PDF-1.7\nnothing")):
                sent = upload(client, BUCKET, name, data + str((number, turn)).encode())
                seen[*FILES, str(sent.status_code)] += 1
            found = client.post("/v1/search", json={"query": "words", "buckets": [BUCKET]})
            seen[*SEARCH, str(found.status_code)] += 1
            seen[*SOURCE, str(client.get("/v1/sources/src_none").status_code)] += 1
            seen[*BUCKETS, str(client.get("/v1/buckets").status_code)] += 1
    return seen


def requests_of(shown: dict[str, Metric]) -> Counter[tuple[str, ...]]:
    """Return the counted requests of the kinds that the test sends."""
    counted = [sample for sample in shown["svc_requests"].samples if sample.name == "svc_requests_total"]
    kinds = {tuple(each.labels[name] for name in ("method", "route", "status")): int(each.value) for each in counted}
    return Counter({kind: count for kind, count in kinds.items() if kind[:2] in (FILES, SEARCH, SOURCE, BUCKETS)})


def monotonic_samples(shown: dict[str, Metric]) -> Iterator[tuple[tuple[str, frozenset[tuple[str, str]]], Sample]]:
    """Yield the samples whose values never decrease."""
    for family in shown.values():
        for sample in family.samples:
            if family.type in ("counter", "histogram", "summary"):
                yield (sample.name, frozenset(sample.labels.items())), sample


@pytest.mark.one_daemon  # each counts its own requests
def test_metrics_agree_with_the_responses_that_clients_saw_under_load(installation: Installation, large: bool) -> None:
    rounds = LARGE_ROUNDS if large else ROUNDS
    is_over = Event()
    with installation.client() as client, ThreadPoolExecutor(CLIENTS + 1) as threads:
        make_bucket(client, BUCKET)

        def scrape() -> int:
            count, last = 0, dict(monotonic_samples(families(client)))
            while not is_over.is_set() or count == 0:
                now = dict(monotonic_samples(families(client)))
                assert all(now[name].value >= sample.value for name, sample in last.items())
                count, last = count + 1, now
            return count

        scraping = threads.submit(scrape)
        clients = [threads.submit(work, installation, number, rounds) for number in range(CLIENTS)]
        seen = sum((each.result() for each in clients), Counter[tuple[str, ...]]())
        is_over.set()
        assert scraping.result() > 0
        # Requests are counted after their responses were sent.
        wait_until(lambda: requests_of(families(client)) == seen, "all requests are counted")
        made = CLIENTS * rounds

        def ended() -> dict[str, int]:
            return Counter(event["type"] for event in list_events(client, types="source.ready,source.failed"))

        wait_until(lambda: ended() == {"source.ready": made, "source.failed": made}, "all have ended")
        wait_until(lambda: work_of(families(client)) == (made, made, made), "the work is counted")


def work_of(shown: dict[str, Metric]) -> tuple[int, int, int]:
    """Return how many sources became ready, how many failed as unreadable, and how many searches there were."""
    ready = next(each for each in shown["svc_ready_seconds"].samples if each.name == "svc_ready_seconds_count")
    failed = [each for each in shown["svc_sources_failed"].samples if each.name == "svc_sources_failed_total"]
    searched = shown["svc_search_duration_seconds"].samples
    count = next(each for each in searched if each.name == "svc_search_duration_seconds_count")
    return (
        int(ready.value),
        int(sum(each.value for each in failed if each.labels["code"] == "document_unreadable")),
        int(count.value),
    )
