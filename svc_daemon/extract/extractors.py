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
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from svc_daemon.child_processes import await_end, last_words, start_module
from svc_daemon.core.text.chunking import Extraction, RecognizedPage
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
from svc_daemon.extract.jobs import Job
from svc_daemon.extract.messages import ChildOutcome, document_message, pack_pages, pack_wave, send_request
from svc_daemon.wire.light.parsing import parse_json

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
        #: One document at a time, beside the others: recognising text takes a core and much memory.
        self._recognizing = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._server: _Server | None = None
        self._is_closed = False

    @property
    def recognizes(self) -> bool:
        """Whether text in scans and pictures is recognised."""
        return bool(self._limits.recognizer)

    @property
    def unrecognized(self) -> str:
        """Return why no text is recognised in scans and pictures; empty if it is."""
        return self._limits.unrecognized

    async def start(self) -> None:
        """Start the fork server, without waiting until it has loaded its modules."""
        await self._living_server()

    async def extract(self, document: StoredDocument) -> Extraction:
        """Extract the text and chunks of a stored file.

        Raises ExtractionFailed if it has no readable text, FileNotFoundError if it is missing, and other OSErrors if
        the machine lacks a resource. Cancelling kills the child process.
        """
        request: dict[str, Any] = {"document": document_message(document)}
        async with self._slots:
            async with document.content.open_file() as blob:
                server = await self._living_server()
                if document.recognized:
                    with _anonymous_file(pack_pages(document.recognized)) as pages:
                        job = server.submit({**request, "pages": True}, blob, pages.fileno())
                else:
                    job = server.submit(request, blob)
            (result,) = await job.results(1)
        if isinstance(result, Exception):
            raise result
        return result

    async def recognize(self, document: StoredDocument, pages: Sequence[int]) -> AsyncGenerator[RecognizedPage, None]:
        """Recognise the text of these pages, and yield each when it is read, in order. One document at a time.

        A page that can't be read is yielded with its problem. Raises ExtractionFailed if the recogniser ended for
        another reason, and OSError as `extract` does. Closing kills the child process.
        """
        left = list(pages)
        async with self._recognizing:
            while left:
                async with document.content.open_file() as blob:
                    server = await self._living_server()
                    job = server.submit({"document": document_message(document), "recognize": left}, blob, scans=True)
                try:
                    async with aclosing(job.pages(len(left))) as recognized:
                        async for page in recognized:
                            left = left[1:]
                            yield page
                except ExtractionFailed as failure:
                    if failure.retryable:
                        raise
                    problem = failure.message[0].lower() + failure.message[1:].rstrip(".")
                    yield RecognizedPage(left.pop(0), "", problem=problem)
                except NotRead as ended:
                    raise documents.crashed("The recogniser ended between two pages.") from ended

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
        spawning = asyncio.ensure_future(asyncio.to_thread(_spawn, theirs, scratch, limits))
        # The thread uses the socket until the process has begun, even if nobody waits for it any more.
        spawning.add_done_callback(lambda _: theirs.close())
        try:
            process = await asyncio.shield(spawning)
        except BaseException:
            control.close()
            await asyncio.wait([spawning])
            if not spawning.exception():
                await asyncio.to_thread(await_end, spawning.result())
            raise
        return cls(process, control, limits, scratch)

    def submit(self, request: dict[str, Any], *files: int, scans: bool = False) -> Job:
        """Send a job to the server, with the limits for scans if wanted.

        Raises ExtractionFailed, as for a crash, if the server doesn't accept it.
        """
        self._last_job += 1
        job = self._last_job
        readable, writable = os.pipe()
        try:
            send_request(self._control, {"job": job, **request}, (files[0], writable, *files[1:]))
        except OSError as error:
            os.close(readable)
            raise documents.crashed("The extraction server did not take the document.") from error
        finally:
            os.close(writable)
        outcome = self._outcomes[job] = asyncio.get_running_loop().create_future()
        if not self.is_alive:
            self._lose(outcome)
        limits = self._limits.for_scans() if scans else self._limits
        return Job(readable, outcome, limits, partial(self.kill, job))

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
