"""A job of a child process, as the daemon sees it: the replies that arrive through a pipe, and how the child ended."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Self

from svc_daemon.core.shortages import find_shortage
from svc_daemon.core.text.chunking import Extraction, RecognizedPage
from svc_daemon.extract import documents
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import ExtractionFailed, NotRead
from svc_daemon.extract.messages import (
    FAILED,
    LINE_BYTES,
    OUT_OF_MEMORY,
    SHORT,
    ChildOutcome,
    ChildReply,
    parse_page,
)

_READ_BYTES = 256 * 1024
#: Signals that end a program for its own fault. Others come from outside, such as when the machine lacks memory.
_FAULTS = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})


class Job:
    """A child process that reads one document, or a wave of small documents."""

    def __init__(
        self, readable: int, outcome: "asyncio.Future[ChildOutcome]", limits: CageLimits, kill: Callable[[], None]
    ) -> None:
        self._readable = readable
        self._outcome = outcome
        self._limits = limits
        self._kill = kill

    async def results(self, count: int) -> list[Extraction | Exception]:
        """Return an extraction or an exception for each of the child's documents, in order."""
        results: list[Extraction | Exception] = []
        ended_by: Exception | None = None
        try:
            await self._collect(results, count)
            if len(results) < count:
                ended_by = self._explain(await self._outcome, len(results))
        except (ExtractionFailed, NotRead) as end:
            ended_by = end
        finally:
            # Kill the child in case it is still running, as after a cancellation or a refused reply.
            self._kill()
        if ended_by is not None:
            results.append(ended_by)
        unread = count - len(results)
        results += [ended_by] * unread if isinstance(ended_by, OSError) else [NotRead() for _ in range(unread)]
        return results

    async def pages(self, count: int) -> AsyncGenerator[RecognizedPage, None]:
        """Yield the child's pages as they are recognised.

        If the child ends before all are, raises ExtractionFailed about the next page, NotRead if the child ended
        between two pages, or OSError if the machine lacks a resource.
        """
        done = 0
        try:
            with _ReplyPipe(self._readable) as pipe:
                while done < count and (lines := await pipe.read_lines()) is not None:
                    for line in lines:
                        done += 1
                        yield parse_page(line)
            if done < count:
                outcome = await self._outcome
                status = outcome["exit"]
                is_fault = status is not None and (status == FAILED or -status in _FAULTS)
                if is_fault and outcome["at"] == done:
                    raise documents.unreadable("the recogniser failed on it.")
                raise self._explain(outcome, done)
        finally:
            self._kill()

    async def _collect(self, results: list[Extraction | Exception], count: int) -> None:
        """Append results until there are `count`, or the child closes its pipe.

        Raises ExtractionFailed if a reply is damaged or too large, NotRead if the replies together are too large.
        """
        reply, reply_bytes, earlier_bytes = ChildReply(), 0, 0
        with _ReplyPipe(self._readable) as pipe:
            while len(results) < count and (lines := await pipe.read_lines()) is not None:
                for line in lines:
                    reply_bytes += len(line)
                    if reply_bytes > self._limits.output_bytes:
                        most = self._limits.output_bytes // 1024**2
                        raise documents.over_limit(f"The document's text is over {most} MB.")
                    if earlier_bytes > self._limits.wave_output_bytes:
                        raise NotRead
                    reply.feed(line)
                    if reply.result is not None:
                        results.append(reply.result)
                        reply, reply_bytes, earlier_bytes = ChildReply(), 0, earlier_bytes + reply_bytes

    def _explain(self, outcome: ChildOutcome, number: int) -> Exception:
        """Return the error for the first document without a reply, according to how the child ended."""
        if (short_of := (outcome["exit"] or 0) - SHORT) > 0:
            refused = OSError(short_of, os.strerror(short_of))
            if find_shortage(refused):
                return refused
            failure = documents.crashed("The extraction server could not begin with the document.")
            failure.__cause__ = refused
            return failure
        if outcome["exit"] is None:
            return documents.crashed("The extraction server ended while it read the document.")
        if outcome["at"] != number:
            # The child ended between two documents.
            return NotRead()
        return self._explain_end(outcome["exit"], is_overdue=outcome["killed"] == "wall")

    def _explain_end(self, status: int, *, is_overdue: bool) -> ExtractionFailed:
        if is_overdue:
            return documents.over_limit(f"Reading took more than {self._limits.wall_seconds:g} s.")
        if status in (-signal.SIGPROF, -signal.SIGXCPU):
            return documents.over_limit(f"Reading took more than {self._limits.cpu_seconds} s of processor time.")
        if status == OUT_OF_MEMORY:
            return documents.over_limit(f"Reading took more than {self._limits.memory_bytes // 1024**2} MB of memory.")
        if status == FAILED:
            return documents.unreadable(
                "The parser failed: the file is damaged, or not of the type that it seems to be."
            )
        return documents.crashed(f"The parser died on the document (exit status {status}).")


class _ReplyPipe:
    """Reads replies line by line. Setting up an asyncio stream instead would take as long as reading a document."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self._ready = asyncio.Event()

    def __enter__(self) -> Self:
        os.set_blocking(self._descriptor, False)
        asyncio.get_running_loop().add_reader(self._descriptor, self._ready.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    async def read_lines(self) -> list[bytes] | None:
        """Return the next complete lines, or None at the end. Raises ExtractionFailed if a line is too long."""
        # Wait for the event loop even if data has arrived, so that other tasks run between two reads.
        await self._ready.wait()
        self._ready.clear()
        try:
            piece = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return []
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            raise documents.crashed("The parser's reply was damaged.")
        return lines if piece else None
