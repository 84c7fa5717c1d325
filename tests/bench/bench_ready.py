"""From the client's 201 to the first search that finds it: Markdown documents, one at a time, idle daemon."""

import argparse
import tempfile
import time
from pathlib import Path

import httpx

from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.bench.installations import running_daemon
from tests.bench.machines import report, spread_ms
from tests.corpus import Prose, phrase_of

BUCKET = "bench"
#: Between two searches: far below what is measured.
POLL_S = 0.002
TIMEOUT_S = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--size-bytes", type=int, default=10_240)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_daemon(Path(folder)) as daemon, daemon.client() as client:
        make_bucket(client, BUCKET)
        # The first one starts what extraction keeps ready from then on, and gives the bucket something to search.
        wait_ended(client, upload(client, BUCKET, "first.md", b"# First\n\nSome text.").json()["id"])
        waits_s = [wait_s(client, number, options.size_bytes) for number in range(options.documents)]
        parameters = {"documents": options.documents, "size_bytes": options.size_bytes}
        report("accepted_to_found", parameters, spread_ms(waits_s), Path(folder))


def wait_s(client: httpx.Client, number: int, size_bytes: int) -> float:
    """Seconds between the answer to one upload and the first search that has it."""
    phrase = phrase_of(number)
    accepted = upload(client, BUCKET, f"{number}.md", make_document(phrase, number, size_bytes))
    begin_s = time.perf_counter()
    accepted.raise_for_status()
    while not _is_found(client, phrase, accepted.json()["id"]):
        if time.perf_counter() - begin_s > TIMEOUT_S:
            raise TimeoutError(f"document {number} was not found within {TIMEOUT_S} s")
        time.sleep(POLL_S)
    found_s = time.perf_counter() - begin_s
    wait_ended(client, accepted.json()["id"])
    return found_s


def _is_found(client: httpx.Client, phrase: str, source_id: str) -> bool:
    answer = client.post("/v1/search", json={"query": phrase, "buckets": [BUCKET], "mode": "keyword"})
    answer.raise_for_status()
    return any(hit["source_id"] == source_id for hit in answer.json()["data"])


def make_document(phrase: str, number: int, size_bytes: int) -> bytes:
    prose = Prose(number)
    text = f"# The {phrase}\n\n"
    while len(text) < size_bytes:
        text += f"## {prose.heading()}\n\n{prose.paragraph()}\n\n"
    return text.encode()[:size_bytes]


if __name__ == "__main__":
    main()
