"""From the client's 201 to the first search that finds it: Markdown documents, one at a time, idle daemon."""

import time

import httpx

from tests.acceptance.calls import make_bucket, upload, wait_ended
from tests.acceptance.installations import wait_until
from tests.bench.fillings import make_document
from tests.bench.installations import measured, read_options
from tests.bench.machines import report, spread_ms
from tests.corpus import Prose, phrase_of

BUCKET = "bench"


def main() -> None:
    options = read_options(__doc__, documents=40, size_bytes=10_240)
    with measured(options.folder) as daemon, daemon.client() as client:
        begin(client)
        waits_s = [wait_s(client, number, options.size_bytes) for number in range(options.documents)]
        report("accepted_to_found", vars(options), spread_ms(waits_s), daemon.root)


def begin(client: httpx.Client) -> None:
    """Upload the document that starts what reading keeps ready from then on, and gives the bucket some text."""
    make_bucket(client, BUCKET)
    wait_ended(client, upload(client, BUCKET, "first.md", b"# First\n\nSome text.").json()["id"])


def wait_s(client: httpx.Client, number: int, size_bytes: int) -> float:
    """Seconds between the answer to one upload and the first search that has it."""
    phrase = phrase_of(number)
    accepted = upload(client, BUCKET, f"{number}.md", document(number, size_bytes))
    begin_s = time.perf_counter()
    source_id = accepted.raise_for_status().json()["id"]

    def is_found() -> bool:
        answer = client.post("/v1/search", json={"query": phrase, "buckets": [BUCKET], "mode": "keyword"})
        return any(hit["source_id"] == source_id for hit in answer.raise_for_status().json()["data"])

    # Between two searches is far less than what is measured.
    wait_until(is_found, f"a search that finds document {number}", every_s=0.002)
    found_s = time.perf_counter() - begin_s
    wait_ended(client, source_id)
    return found_s


def document(number: int, size_bytes: int) -> bytes:
    """The document with the phrase of this number."""
    return make_document(Prose(number), size_bytes, f"The {phrase_of(number)}")


if __name__ == "__main__":
    main()
