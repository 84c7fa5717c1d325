"""Sends documents to child processes that extract their text, and collects the replies.

If the child ends early, the document that it was reading fails, with the exit status as the reason. Documents after it
count as not read (`NotRead`). If the machine lacks a resource, all remaining documents fail with an OSError.

A job is one child, with its own pipe for replies. The fork server reports how the child ended. If the fork server dies,
the documents that are being read fail and are retried. The next job starts a new fork server.
"""

import asyncio
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from svc_daemon.child_processes import await_end, last_words, start_module
from svc_daemon.core.shortages import find_shortage
from svc_daemon.core.text.chunking import Extraction
from svc_daemon.extract import documents
from svc_daemon.extract.child_limits import CageLimits
from svc_daemon.extract.documents import (
    WAVE_DOCUMENT_BYTES,
    WAVE_DOCUMENTS,
    ExtractionFailed,
    NeedsOwnChild,
    NotRead,
    StoredDocument,
)
from svc_daemon.extract.messages import (
    FAILED,
    LINE_BYTES,
    OUT_OF_MEMORY,
    SHORT,
    ChildOutcome,
    ChildReply,
    document_message,
    pack_wave,
    send_request,
)
from svc_daemon.wire.parsing import parse_json

_READ_BYTES = 256 * 1024


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


_log = logging.getLogger("svc.extract")


class Extractor:
    """Extracts text from stored files in child processes.

    No other process may use `scratch_dir`, the folder for the children's files.
    """

    def __init__(self, scratch_dir: Path, limits: CageLimits | None = None) -> None:
        #: The folder is emptied when a fork server starts, and deleted on `close`.
        self.scratch_dir = scratch_dir.absolute()
        self._limits = limits or CageLimits()
        self._slots = asyncio.Semaphore(self._limits.children)
        self._starting = asyncio.Lock()
        self._server: _Server | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Start the fork server, without waiting until it has loaded its modules."""
        await self._living_server()

    async def extract(self, document: StoredDocument) -> Extraction:
        """Extract the text and chunks of a stored file.

        Raises ExtractionFailed if it has no readable text, FileNotFoundError if it is missing, and other OSErrors if
        the machine lacks a resource. Cancelling kills the child process.
        """
        async with self._slots:
            async with document.content.open_file() as blob:
                server = await self._living_server()
                job = server.submit({"document": document_message(document)}, blob)
            (result,) = await job.results(1)
        if isinstance(result, Exception):
            raise result
        return result

    async def extract_wave(self, documents: Sequence[StoredDocument]) -> list[Extraction | Exception]:
        """Extract small stored files of one team in one child process (see `may_share_a_child`).

        Returns for each file an extraction, or an exception that `extract` would raise. A file with NotRead or
        NeedsOwnChild has not been read, and needs `extract`. Cancelling kills the child.
        """
        if len(documents) > WAVE_DOCUMENTS:
            raise ValueError(f"A wave has at most {WAVE_DOCUMENTS} documents, not {len(documents)}.")
        async with self._slots:
            contents = list(zip(documents, await asyncio.gather(*map(_read_small, documents)), strict=True))
            readable = [(document, data) for document, data in contents if isinstance(data, bytes)]
            results = iter(await self._read_wave(pack_wave(readable), len(readable)) if readable else ())
        return [next(results) if isinstance(data, bytes) else data for _, data in contents]

    async def _read_wave(self, packed: bytes, count: int) -> list[Extraction | Exception]:
        try:
            with _anonymous_file(packed) as blob:
                server = await self._living_server()
                job = server.submit({"documents": count}, blob.fileno())
            return await job.results(count)
        except OSError as shortage:
            return [shortage] * count
        except ExtractionFailed as failure:
            # The fork server didn't accept the documents, so none of them is the cause.
            _log.info("A wave was not read: %s", failure.message)
            return [NotRead() for _ in range(count)]

    async def close(self) -> None:
        """Stop the fork server and all children. Documents being read fail as after a crash."""
        self._is_closed = True
        async with self._starting:
            server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def _living_server(self) -> "_Server":
        async with self._starting:
            if self._is_closed:
                raise documents.crashed("The service is stopping.")
            if self._server is None or not self._server.is_alive:
                if self._server is not None:
                    await self._server.stop()
                self._server = await _Server.start(self.scratch_dir, self._limits)
            return self._server


class _Server:
    """A running fork server, and its jobs."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", control: socket.socket, limits: CageLimits, scratch: Path
    ) -> None:
        self._process = process
        self._control = control
        self._limits = limits
        self._scratch = scratch
        self._outcomes: dict[int, asyncio.Future[ChildOutcome]] = {}
        self._last_job = 0
        self.is_alive = True
        self._listener = asyncio.create_task(self._listen(), name="extract-outcomes")

    @classmethod
    async def start(cls, scratch: Path, limits: CageLimits) -> "_Server":
        control, theirs = socket.socketpair()
        control.setblocking(False)
        try:
            with theirs:
                process = await asyncio.to_thread(_spawn, theirs, scratch, limits)
        except BaseException:
            control.close()
            raise
        return cls(process, control, limits, scratch)

    def submit(self, request: dict[str, Any], blob: int) -> Job:
        """Send a job to the server. Raises ExtractionFailed, as for a crash, if the server doesn't accept it."""
        self._last_job += 1
        job = self._last_job
        readable, writable = os.pipe()
        try:
            send_request(self._control, {"job": job, **request}, (blob, writable))
        except OSError as error:
            os.close(readable)
            raise documents.crashed("The extraction server did not take the document.") from error
        finally:
            os.close(writable)
        outcome = self._outcomes[job] = asyncio.get_running_loop().create_future()
        if not self.is_alive:
            self._lose(outcome)
        return Job(readable, outcome, self._limits, partial(self.kill, job))

    def kill(self, job: int) -> None:
        """Ask the server to kill a job's child, if it is running."""
        if job in self._outcomes:
            with suppress(OSError):
                send_request(self._control, {"kill": job})

    async def stop(self) -> None:
        """Close the socket, which ends the server and its children, and wait until the server has ended."""
        # The listener reads from the socket, so end the listener before closing the socket.
        self._listener.cancel()
        await asyncio.wait([self._listener])
        self._control.close()
        self._fail_jobs()
        await asyncio.to_thread(await_end, self._process)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        rest = b""
        try:
            with suppress(OSError):
                while received := await loop.sock_recv(self._control, 65536):
                    *lines, rest = (rest + received).split(b"\n")
                    for outcome in map(parse_json, lines):
                        future = self._outcomes.pop(outcome["job"])
                        if not future.done():
                            future.set_result(outcome)
        finally:
            # The server can no longer report how its children ended.
            self._fail_jobs()
        _log.warning("The extraction server ended. %s", last_words(_error_log(self._scratch)))

    def _fail_jobs(self) -> None:
        self.is_alive = False
        for future in self._outcomes.values():
            self._lose(future)
        self._outcomes.clear()

    @staticmethod
    def _lose(future: "asyncio.Future[ChildOutcome]") -> None:
        if not future.done():
            future.set_result({"exit": None, "killed": "", "at": 0})


async def _read_small(document: StoredDocument) -> bytes | Exception:
    try:
        data = await document.content.read(0, WAVE_DOCUMENT_BYTES + 1)
    except OSError as error:
        return error
    return data if len(data) <= WAVE_DOCUMENT_BYTES else NeedsOwnChild()


def _anonymous_file(content: bytes) -> BinaryIO:
    """Return an unnamed file with this content, positioned at the start. On Linux, it is in memory."""
    file: BinaryIO
    if sys.platform == "linux":
        file = os.fdopen(os.memfd_create("svc-wave"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(content)
    file.seek(0)
    return file


def _spawn(control: socket.socket, scratch: Path, limits: CageLimits) -> "subprocess.Popen[bytes]":
    shutil.rmtree(scratch, ignore_errors=True)
    arguments = [str(scratch), json.dumps(asdict(limits))]
    tries = 3
    while True:
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return start_module("svc_daemon.extract.fork_server", arguments, control, _error_log(scratch))
        except FileNotFoundError:
            # The fork server of a killed daemon may have removed the folder. It does so only once, so try again.
            tries -= 1
            if not tries:
                raise


def _error_log(scratch: Path) -> Path:
    """Return the file for the fork server's error output. The output of its children is discarded."""
    return scratch / "server.log"
