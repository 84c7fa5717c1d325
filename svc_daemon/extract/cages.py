"""The daemon's side of the cage: submits documents, receives the results, and keeps the fork server running.

A job is one document. It yields two results: the reply on the job's own pipe, and the child's exit status from the fork
server. A complete reply is used at once; if it is incomplete, the exit status explains why. If the fork server dies,
its jobs fail (their callers retry them), and the next document starts a new server.
"""

import asyncio
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from svc_daemon.child_processes import await_end, last_words, start_module
from svc_daemon.core.problems import find_lack
from svc_daemon.core.text.chunking import ChunkingOptions, Extraction
from svc_daemon.extract import failures
from svc_daemon.extract.failures import ExtractionFailed
from svc_daemon.extract.limits import CageLimits
from svc_daemon.extract.messages import FAILED, LINE_BYTES, OUT_OF_MEMORY, SHORT, ChildReply, send_request

_log = logging.getLogger("svc.extract")

Outcome = dict[str, Any]


class Extractor:
    """Reads stored files, each in its own child process.

    No other process may use `scratch_dir`: it is emptied at start, and holds the children's private folders.
    """

    def __init__(self, scratch_dir: Path, limits: CageLimits | None = None) -> None:
        #: Emptied whenever a fork server starts, and deleted when the extractor is closed.
        self.scratch_dir = scratch_dir.absolute()
        self._limits = limits or CageLimits()
        self._slots = asyncio.Semaphore(self._limits.children)
        self._starting = asyncio.Lock()
        self._server: _Server | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Start the fork server. Returns as soon as the process exists, before it has loaded its modules."""
        await self._living_server()

    async def extract(self, path: Path, *, filename: str, content_type: str, chunking: ChunkingOptions) -> Extraction:
        """Extract the text and chunks of a stored file; `content_type` is the declared media type.

        Raises ExtractionFailed if no text can be read from the document, FileNotFoundError if the file does not exist,
        and other OSErrors if the machine is out of a resource. Cancelling the call kills the child.
        """
        request = {"filename": filename, "content_type": content_type, "chunking": asdict(chunking)}
        async with self._slots:
            blob = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                server = await self._living_server()
                job = server.submit(request, blob)
            finally:
                os.close(blob)
            return await job.result()

    async def close(self) -> None:
        """Stop the fork server and all children. Documents still being read fail as crashed."""
        self._is_closed = True
        async with self._starting:
            server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def _living_server(self) -> "_Server":
        async with self._starting:
            if self._is_closed:
                raise failures.crashed("The service is stopping.")
            if self._server is None or not self._server.is_alive:
                if self._server is not None:
                    await self._server.stop()
                self._server = await _Server.start(self.scratch_dir, self._limits)
            return self._server


class _Server:
    """One fork server and its jobs."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", control: socket.socket, limits: CageLimits, scratch: Path
    ) -> None:
        self._process = process
        self._control = control
        self._limits = limits
        self._scratch = scratch
        self._outcomes: dict[int, asyncio.Future[Outcome]] = {}
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

    def submit(self, request: dict[str, Any], blob: int) -> "_Job":
        """Send a document to the server. Raises ExtractionFailed (crashed) if the server does not accept it."""
        self._last_job += 1
        job = self._last_job
        readable, writable = os.pipe()
        try:
            send_request(self._control, {"job": job, **request}, (blob, writable))
        except OSError as error:
            os.close(readable)
            raise failures.crashed("The extraction server did not take the document.") from error
        finally:
            os.close(writable)
        outcome = self._outcomes[job] = asyncio.get_running_loop().create_future()
        if not self.is_alive:
            self._lose(outcome)
        return _Job(self, job, readable, outcome, self._limits)

    def kill(self, job: int) -> None:
        """Ask the server to kill a job's child if it is still running."""
        if job in self._outcomes:
            with suppress(OSError):
                send_request(self._control, {"kill": job})

    async def stop(self) -> None:
        """Close the socket, which makes the server and its children end, and wait until the server has ended."""
        # The listener reads from the socket, so cancel it before the socket is closed.
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
                    for outcome in map(json.loads, lines):
                        future = self._outcomes.pop(outcome["job"])
                        if not future.done():
                            future.set_result(outcome)
        finally:
            # No more outcomes will arrive, so wake the callers that wait for one.
            self._fail_jobs()
        _log.warning("The extraction server ended. %s", last_words(_error_log(self._scratch)))

    def _fail_jobs(self) -> None:
        self.is_alive = False
        for future in self._outcomes.values():
            self._lose(future)
        self._outcomes.clear()

    @staticmethod
    def _lose(future: "asyncio.Future[Outcome]") -> None:
        if not future.done():
            future.set_result({"exit": None, "killed": ""})


class _Job:
    """One document in the cage."""

    def __init__(
        self, server: _Server, number: int, readable: int, outcome: "asyncio.Future[Outcome]", limits: CageLimits
    ) -> None:
        self._server = server
        self._number = number
        self._readable = readable
        self._outcome = outcome
        self._limits = limits

    async def result(self) -> Extraction:
        """Wait for the extraction. Raises ExtractionFailed, or OSError if the machine is out of a resource."""
        try:
            reply = await self._read_reply()
            if reply.is_complete:
                return reply.extraction()
            outcome = await self._outcome
            if (short_of := (outcome["exit"] or 0) - SHORT) > 0:
                refused = OSError(short_of, os.strerror(short_of))
                if find_lack(refused):
                    raise refused
                raise failures.crashed("The extraction server could not begin with the document.") from refused
            raise self._explain(outcome)
        except ValueError as error:
            # A line exceeded the limit.
            raise failures.crashed("The parser's reply was damaged.") from error
        finally:
            # Kill the child if the call was cancelled or needs no more of the reply; no effect if it has ended.
            self._server.kill(self._number)

    async def _read_reply(self) -> ChildReply:
        """Read the reply until the child closes its pipe. Raises ValueError if a line exceeds the limit."""
        reply, size = ChildReply(), 0
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._readable, "rb", buffering=0)
        )
        with closing(transport):
            while line := await reader.readline():
                size += len(line)
                if size > self._limits.output_bytes:
                    raise failures.over_limit(f"The document's text is over {self._limits.output_bytes // 1024**2} MB.")
                reply.feed(line)
                # Reading buffered lines does not suspend, so let other tasks run.
                await asyncio.sleep(0)
        return reply

    def _explain(self, outcome: Outcome) -> ExtractionFailed:
        """Convert the child's exit status to the error that explains an incomplete reply."""
        if outcome["killed"] == "wall":
            return failures.over_limit(f"Reading took more than {self._limits.wall_seconds:g} s.")
        if outcome["exit"] == -signal.SIGXCPU:
            return failures.over_limit(f"Reading took more than {self._limits.cpu_seconds} s of processor time.")
        if outcome["exit"] == OUT_OF_MEMORY:
            return failures.over_limit(f"Reading took more than {self._limits.memory_bytes // 1024**2} MB of memory.")
        if outcome["exit"] == FAILED:
            return failures.unreadable("The parser failed: the file is damaged, or not what its content seems to be.")
        if outcome["exit"] is None:
            return failures.crashed("The extraction server ended while it read the document.")
        return failures.crashed(f"The parser died on the document (exit status {outcome['exit']}).")


def _spawn(control: socket.socket, scratch: Path, limits: CageLimits) -> "subprocess.Popen[bytes]":
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700, parents=True)
    arguments = [str(scratch), json.dumps(asdict(limits))]
    return start_module("svc_daemon.extract.fork_server", arguments, control, _error_log(scratch))


def _error_log(scratch: Path) -> Path:
    """Return the file for the fork server's standard error; that of its children is discarded."""
    return scratch / "server.log"
