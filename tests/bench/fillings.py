"""Buckets of a wanted size, filled through the daemon's own door, and what is in them to ask for."""

import sys

import httpx

from tests.acceptance.calls import list_sources, make_bucket, upload
from tests.acceptance.installations import wait_until
from tests.corpus import Prose

DOCUMENT_BYTES = 100_000


def make_document(prose: Prose, size_bytes: int, title: str) -> bytes:
    parts, length = [f"# {title}\n\n"], 0
    while length < size_bytes:
        parts.append(f"## {prose.heading()}\n\n{prose.paragraph()}\n\n{prose.paragraph()}\n\n")
        length += len(parts[-1])
    return "".join(parts).encode()[:size_bytes]


def fill_bucket(client: httpx.Client, bucket: str, chunks: int) -> int:
    """Make a bucket and upload until so many chunks are indexed; how many they are."""
    make_bucket(client, bucket)
    # The sentences of the whole standard library take some ten seconds to find.
    prose = Prose(bucket) if chunks < 1000 else Prose(bucket, packages=())
    number = stored = 0
    while stored < chunks:
        # About 100 chunks a document: the missing ones, in steps that never overshoot by much.
        for _ in range(max(1, (chunks - stored) // 130)):
            document = make_document(prose, DOCUMENT_BYTES, f"Document {number}")
            upload(client, bucket, f"{number}.md", document).raise_for_status()
            number += 1
        wait_until(lambda: is_indexed(client, bucket), f"the end of indexing of {bucket}", 14_400, every_s=0.5)
        stored = sum(source["extraction"]["chunks"] for source in list_sources(client, bucket))
        sys.stderr.write(f"{bucket}: {stored} chunks\n")
    return stored


def is_indexed(client: httpx.Client, bucket: str) -> bool:
    return not client.get(f"/v1/buckets/{bucket}").json()["bucketStore"]["pending_member_count"]


def passages(client: httpx.Client, bucket: str) -> list[str]:
    """Texts of the chunks of some 40 documents."""
    ids = [source["id"] for source in list_sources(client, bucket)]
    answers = [client.get(f"/v1/sources/{source_id}/text").json() for source_id in ids[:: max(1, len(ids) // 40)]]
    return [chunk["text"] for answer in answers for chunk in answer["chunks"]]
