"""The first words of an answer that is quoted from the sources, and its end, at a client of the daemon.

    python -m tests.bench.bench_answers --chunks 10000 100000

Each question has five words of one passage of the bucket, so that there is an answer. It is streamed over a connection
that stays open.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import httpx

from tests.acceptance.calls import list_sources, make_bucket, upload
from tests.acceptance.installations import Installation, wait_until
from tests.bench.installations import running_daemon
from tests.bench.machines import report, spread_ms
from tests.corpus import Prose

DOCUMENT_BYTES = 100_000
#: Questions before those that count.
WARM = 20
_WORD = re.compile(r"[a-z]{5,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, nargs="+", default=[10_000])
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, running_daemon(Path(name)) as daemon, daemon.client() as client:
        for chunks in options.chunks:
            bucket = f"bench-{chunks}"
            stored = _fill(client, bucket, chunks)
            questions = _questions(client, bucket, options.questions + WARM)
            _ask_all(daemon, bucket, questions[:WARM])
            figures = {
                f"{count} clients": _measure(daemon, bucket, questions[WARM:], count) for count in options.clients
            }
            results[str(chunks)] = {"stored": stored, **figures}
    report("answers", {"questions": options.questions}, {"chunks": results})


def _fill(client: httpx.Client, bucket: str, chunks: int) -> int:
    """Upload until so many chunks are indexed; how many they are."""
    make_bucket(client, bucket)
    prose, number, stored = Prose(bucket, packages=()), 0, 0
    while stored < chunks:
        for _ in range(max(1, (chunks - stored) // 130)):
            upload(client, bucket, f"{number}.md", _document(prose)).raise_for_status()
            number += 1
        wait_until(lambda: _is_indexed(client, bucket), f"the end of indexing of {bucket}", 14_400, every_s=0.5)
        stored = sum(source["extraction"]["chunks"] for source in list_sources(client, bucket))
        sys.stderr.write(f"{bucket}: {stored} chunks\n")
    return stored


def _document(prose: Prose) -> bytes:
    text = ""
    while len(text) < DOCUMENT_BYTES:
        text += f"## {prose.heading()}\n\n{prose.paragraph()}\n\n{prose.paragraph()}\n\n"
    return text.encode()


def _is_indexed(client: httpx.Client, bucket: str) -> bool:
    return bool(client.get(f"/v1/buckets/{bucket}").json()["bucketStore"]["pending_member_count"] == 0)


def _questions(client: httpx.Client, bucket: str, count: int) -> list[str]:
    """Each of five words that one passage has."""
    ids = [source["id"] for source in list_sources(client, bucket)]
    read = [client.get(f"/v1/sources/{source_id}/text").json() for source_id in ids[:: max(1, len(ids) // 40)]]
    passages = [sorted(set(_WORD.findall(chunk["text"].lower()))) for text in read for chunk in text["chunks"]]
    rich = [words for words in passages if len(words) >= 5]
    random = Random(5)
    return [f"What of {' '.join(random.sample(random.choice(rich), 5))}?" for _ in range(count)]


def _measure(daemon: Installation, bucket: str, questions: Sequence[str], clients: int) -> dict[str, Any]:
    shares = [questions[at::clients] for at in range(clients)]
    with ThreadPoolExecutor(clients) as threads:
        told = [each for share in threads.map(lambda share: _ask_all(daemon, bucket, share), shares) for each in share]
    first_s, last_s, grounded = zip(*told, strict=True)
    return {
        "first_words": spread_ms(list(first_s)),
        "whole": spread_ms(list(last_s)),
        "grounded_share": round(sum(grounded) / len(grounded), 3),
    }


def _ask_all(daemon: Installation, bucket: str, questions: Sequence[str]) -> list[tuple[float, float, bool]]:
    with daemon.client() as client:
        return [_ask(client, bucket, question) for question in questions]


def _ask(client: httpx.Client, bucket: str, question: str) -> tuple[float, float, bool]:
    """Seconds to the first words and to the end, and whether it was grounded."""
    body = {"model": "svc-agent", "input": question, "buckets": [bucket], "stream": True}
    began_s, first_s, last = time.perf_counter(), 0.0, ""
    with client.stream("POST", "/v1/responses", json=body) as answer:
        for line in answer.iter_lines():
            if not first_s and line.startswith("event: response.output_text.delta"):
                first_s = time.perf_counter() - began_s
            last = line or last
    return first_s, time.perf_counter() - began_s, bool(json.loads(last.removeprefix("data: "))["response"]["grounded"])


if __name__ == "__main__":
    main()
