"""The daemon's results for each document of a wave, from the child's replies and its outcome."""

import asyncio
import os

import pytest

from svc_daemon.core.text.chunking import Document
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import no_text
from svc_daemon.extract.jobs import Job
from svc_daemon.extract.messages import LINE_BYTES, ChildOutcome, failure_line, own_child_line, reply_lines

pytestmark = pytest.mark.anyio

GOOD = b"".join(reply_lines("text/plain", Document(text="a", blocks=()), ()))


async def results_of(written: bytes, outcome: ChildOutcome, count: int) -> list[str]:
    """Return the results of a job whose child wrote these bytes, by name, and assert that the child was killed."""
    readable, writable = os.pipe()
    ended = asyncio.get_running_loop().create_future()
    ended.set_result(outcome)
    kills: list[str] = []
    job = Job(readable, ended, CageLimits(), lambda: kills.append("killed"))

    def write() -> None:
        try:
            with os.fdopen(writable, "wb") as pipe:
                pipe.write(written)
        except BrokenPipeError:
            pass

    _, results = await asyncio.gather(asyncio.to_thread(write), job.results(count))
    assert kills == ["killed"]
    return [str(getattr(result, "code", type(result).__name__)) for result in results]


async def test_damaged_reply_fails_one_document_and_ends_the_wave() -> None:
    done: ChildOutcome = {"exit": 0, "killed": "", "at": 2}
    failed = failure_line(no_text())
    endless = b"x" * (LINE_BYTES + 10**6)
    for damage in (b"words\n", b"[]\n", b"{}\n", b'{"head": 3}\n', b'{"chunks": [[1]]}\n', endless):
        found = await results_of(GOOD + failed + damage + GOOD, done, 4)
        assert found == ["Extraction", "no_extractable_text", "extraction_crashed", "NotRead"], damage[:20]
    assert await results_of(GOOD + own_child_line() + GOOD, done, 3) == ["Extraction", "NeedsOwnChild", "Extraction"]


async def test_outcome_of_a_child_fails_only_the_document_that_it_had_begun() -> None:
    cases: list[tuple[ChildOutcome, list[str]]] = [
        ({"exit": -9, "killed": "", "at": 1}, ["extraction_crashed", "NotRead"]),
        ({"exit": -9, "killed": "", "at": 0}, ["NotRead", "NotRead"]),
        ({"exit": -9, "killed": "wall", "at": 1}, ["extraction_limit_exceeded", "NotRead"]),
        # The child was killed just after it had begun the next document.
        ({"exit": -9, "killed": "wall", "at": -1}, ["NotRead", "NotRead"]),
        ({"exit": -24, "killed": "", "at": 0}, ["NotRead", "NotRead"]),
        ({"exit": 0, "killed": "", "at": 1}, ["extraction_crashed", "NotRead"]),
        ({"exit": None, "killed": "", "at": 0}, ["extraction_crashed", "NotRead"]),
        ({"exit": 128, "killed": "", "at": 1}, ["OSError", "OSError"]),
    ]
    for outcome, expected in cases:
        # The reply for the second document is incomplete.
        assert await results_of(GOOD + GOOD[:20], outcome, 3) == ["Extraction", *expected], outcome
