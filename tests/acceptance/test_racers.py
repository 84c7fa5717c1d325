"""Races of real processes and many clients: one of them makes the thing, and all others are told of that one."""

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

Said = list[tuple[str, bool]]


def _put_all(base_url: str, key: str, start: Barrier, said: "multiprocessing.SimpleQueue[Said]") -> None:
    """One racing process: for each slug it waits for the other one, then puts; id and `created` of each answer."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=base_url, headers=headers, trust_env=False, verify=False, timeout=30) as client:
        answers: Said = []
        for slug in SLUGS:
            start.wait(PATIENCE_S)
            body = client.put(f"/v1/buckets/{slug}").raise_for_status().json()
            answers.append((body["id"], body["created"]))
    said.put(answers)


def test_two_processes_that_race_for_a_bucket_make_it_once(shared_installation: Installation) -> None:
    spawning = multiprocessing.get_context("spawn")
    start, said = spawning.Barrier(2), spawning.SimpleQueue()
    arguments = (shared_installation.base_url, shared_installation.key, start, said)
    racers = [spawning.Process(target=_put_all, args=arguments) for _ in range(2)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(PATIENCE_S)
    assert [racer.exitcode for racer in racers] == [0, 0]
    one, other = said.get(), said.get()
    assert [id_ for id_, _ in one] == [id_ for id_, _ in other]
    assert [sorted((first[1], second[1])) for first, second in zip(one, other, strict=True)] == [[False, True]] * 200


def _race(installation: Installation, ask: Callable[[httpx.Client], httpx.Response]) -> list[dict[str, Any]]:
    """What each racer was told in the end; who hears `request_in_progress` asks again, as a client should."""
    start = threading.Barrier(RACERS)
    answers: list[httpx.Response] = []

    def attempt(client: httpx.Client) -> httpx.Response | None:
        answer = ask(client)
        if answer.status_code == 409 and answer.json()["error"]["code"] == "request_in_progress":
            return None
        return answer

    def run() -> None:
        with installation.client() as client:
            client.get("/healthz")
            start.wait(PATIENCE_S)
            answers.append(wait_until(lambda: attempt(client), "an answer", PATIENCE_S))

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
        told = _race(shared_installation, lambda racer: upload(racer, "one-call", "quay.md", DATA, "one-key"))
        (source_id,) = {each["id"] for each in told}
        assert [source["id"] for source in list_sources(client, "one-call")] == [source_id]
        assert wait_ended(client, source_id)["ready"]


def test_fifty_session_creates_with_one_key_are_one_session(shared_installation: Installation) -> None:
    body = {"filename": "quay.md", "size_bytes": len(DATA)}
    headers = {"Idempotency-Key": "one-session"}

    def ask(racer: httpx.Client) -> httpx.Response:
        return racer.post("/v1/buckets/sessions/uploads", json=body, headers=headers)

    with shared_installation.client() as client:
        make_bucket(client, "sessions")
        told = _race(shared_installation, ask)
        assert len({(each["session_id"], each["upload_url"]) for each in told}) == 1
        assert client.put(told[0]["upload_url"], content=DATA).status_code == 200
        path = f"/v1/buckets/sessions/uploads/{told[0]['session_id']}/finalize"
        finalized = _race(shared_installation, lambda racer: racer.post(path))
        (source_id,) = {each["id"] for each in finalized}
        assert [source["id"] for source in list_sources(client, "sessions")] == [source_id]


def test_fifty_legacy_creates_share_the_bucket_that_the_first_makes(shared_installation: Installation) -> None:
    body = {"filename": "quay.md", "size_bytes": len(DATA), "bucket": "made-once", "create_missing_buckets": True}
    headers = {"Idempotency-Key": "one-legacy-session"}

    def ask(racer: httpx.Client) -> httpx.Response:
        return racer.post("/v1/knowledge/files/upload-session", json=body, headers=headers)

    told = _race(shared_installation, ask)
    assert len({(each["session_id"], *each["bucket_ids"]) for each in told}) == 1
