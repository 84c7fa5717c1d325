"""The first words of an answer that is quoted from the sources, and its end, at a client of the daemon.

    python -m tests.bench.bench_answers --chunks 10000 100000

Each question has five words of one passage of the bucket, so that there is an answer. It is streamed over a connection
that stays open.
"""

import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import httpx

from tests.acceptance.installations import Installation
from tests.bench.fillings import fill_bucket, passages
from tests.bench.installations import measured, read_options
from tests.bench.machines import report, spread_ms

#: Questions before those that count.
WARM = 20
_WORD = re.compile(r"[a-z]{5,}")


def main() -> None:
    options = read_options(__doc__, chunks=[10_000], questions=300, clients=[1, 4])
    results: dict[str, Any] = {}
    with measured(options.folder) as daemon, daemon.client() as client:
        for chunks in options.chunks:
            bucket = f"bench-{chunks}"
            stored = fill_bucket(client, bucket, chunks)
            questions = _questions(passages(client, bucket), options.questions + WARM)
            _ask_all(daemon, bucket, questions[:WARM])
            counted = questions[WARM:]
            figures = {f"{count} clients": _measure(daemon, bucket, counted, count) for count in options.clients}
            results[str(chunks)] = {"stored": stored, **figures}
    report("answers", vars(options), {"chunks": results})


def _questions(texts: Sequence[str], count: int) -> list[str]:
    """Each of five words that one passage has."""
    words = [sorted(set(_WORD.findall(text.lower()))) for text in texts]
    rich, random = [each for each in words if len(each) >= 5], Random(5)
    return [f"What of {' '.join(random.sample(random.choice(rich), 5))}?" for _ in range(count)]


def _measure(daemon: Installation, bucket: str, questions: Sequence[str], clients: int) -> dict[str, Any]:
    shares = [questions[at::clients] for at in range(clients)]
    with ThreadPoolExecutor(clients) as threads:
        asked = [each for share in threads.map(lambda share: _ask_all(daemon, bucket, share), shares) for each in share]
    first_s, last_s, grounded = zip(*asked, strict=True)
    share = round(sum(grounded) / len(grounded), 3)
    return {"first_words": spread_ms(first_s), "whole": spread_ms(last_s), "grounded_share": share}


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
