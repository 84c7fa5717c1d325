"""Races of real processes and many clients: one of them makes the thing, and all others get that one."""

import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

import httpx

from tests.acceptance.calls import list_sources, make_bucket, upload, wait_ended
from tests.acceptance.installations import Installation, wait_until

SLUGS = [f"race-{number}" for number in range(200)]
RACERS = 50
PATIENCE_S = 60.0
DATA = b"# Quay\n\nThe umber quay was built of grey stone.\n"

Answers = list[tuple[str, bool]]


def _put_all(base_url: str, key: str, start: Barrier, results: "multiprocessing.SimpleQueue[Answers]") -> None:
    """One racing process: for each slug it waits for the other one, then puts; id and `created` of each answer."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=base_url, headers=headers, trust_env=False, verify=False, timeout=30) as client:
        answers: Answers = []
        for slug in SLUGS:
            start.wait(PATIENCE_S)
            body = client.put(f"/v1/buckets/{slug}").raise_for_status().json()
            answers.append((body["id"], body["created"]))
    results.put(answers)


def test_two_processes_that_race_for_a_bucket_make_it_once(shared_installation: Installation) -> None:
    spawning = multiprocessing.get_context("spawn")
    start, results = spawning.Barrier(2), spawning.SimpleQueue()
    arguments = (shared_installation.base_url, shared_installation.key, start, results)
    racers = [spawning.Process(target=_put_all, args=arguments) for _ in range(2)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(PATIENCE_S)
    assert [racer.exitcode for racer in racers] == [0, 0]
    for (one, is_made), (other, is_made_too) in zip(results.get(), results.get(), strict=True):
        assert (one, {is_made, is_made_too}) == (other, {False, True})


def _race(installation: Installation, ask: Callable[[httpx.Client], httpx.Response]) -> list[dict[str, Any]]:
    """The last answer to each racer; who gets `request_in_progress` asks again, as a client should."""
    start = threading.Barrier(RACERS)
    answers: list[httpx.Response] = []

    def run() -> None:
        with installation.client() as client:

            def attempt() -> httpx.Response | None:
                answer = ask(client)
                is_early = answer.status_code == 409 and answer.json()["error"]["code"] == "request_in_progress"
                return None if is_early else answer

            client.get("/healthz")
            start.wait(PATIENCE_S)
            answers.append(wait_until(attempt, "an answer", PATIENCE_S))

    threads = [threading.Thread(target=run) for _ in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(answer.status_code for answer in answers) == [200] * (RACERS - 1) + [201], answers
    assert sum(answer.headers.get("Idempotent-Replayed") == "true" for answer in answers) == RACERS - 1
    return [answer.json() for answer in answers]


def test_fifty_uploads_with_one_key_are_one_source(shared_installation: Installation) -> None:
    with shared_installation.client() as client:
        make_bucket(client, "one-call")
        answers = _race(shared_installation, lambda racer: upload(racer, "one-call", "quay.md", DATA, "one-key"))
        (source_id,) = {each["id"] for each in answers}
        assert [source["id"] for source in list_sources(client, "one-call")] == [source_id]
        assert wait_ended(client, source_id)["ready"]


def test_fifty_session_creates_and_finalizes_with_one_key_are_one(shared_installation: Installation) -> None:
    path, body = "/v1/buckets/sessions/uploads", {"filename": "quay.md", "size_bytes": len(DATA)}
    headers = {"Idempotency-Key": "one-session"}
    with shared_installation.client() as client:
        make_bucket(client, "sessions")
        opened = _race(shared_installation, lambda racer: racer.post(path, json=body, headers=headers))
        ((session_id, upload_url),) = {(each["session_id"], each["upload_url"]) for each in opened}
        assert client.put(upload_url, content=DATA).status_code == 200
        finalized = _race(shared_installation, lambda racer: racer.post(f"{path}/{session_id}/finalize"))
        (source_id,) = {each["id"] for each in finalized}
        assert [source["id"] for source in list_sources(client, "sessions")] == [source_id]


def test_fifty_legacy_creates_share_the_bucket_that_the_first_makes(shared_installation: Installation) -> None:
    body = {"filename": "quay.md", "size_bytes": len(DATA), "bucket": "made-once", "create_missing_buckets": True}
    headers, path = {"Idempotency-Key": "one-legacy-session"}, "/v1/knowledge/files/upload-session"
    answers = _race(shared_installation, lambda racer: racer.post(path, json=body, headers=headers))
    assert len({(each["session_id"], *each["bucket_ids"]) for each in answers}) == 1
