"""Runs the embedding model in a process of its own.

If the process dies, the texts sent to it fail. The next call starts a new process after a pause, which doubles each
time a process dies. A process that doesn't respond is killed.
"""

import json
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from svc_daemon.child_processes import await_end, last_words, start_module
from svc_daemon.embed.contract import RUN_LIBRARIES, EmbedFailed, ModelProblem, require
from svc_daemon.embed.installed_models import InstalledModel, ModelFolder
from svc_daemon.embed.messages import DONE, PATIENT, PROCESS, URGENT, Frame, receive_frame, send_frame

log = logging.getLogger(__name__)

#: Time limit in seconds for loading the model, and for each vector of a batch.
PATIENCE_S = 60.0
#: If a query is unanswered for this many seconds, the process counts as stuck, and the next query kills it.
QUERY_PATIENCE_S = 10.0
#: Pause in seconds after the process has died for the first time, and the longest pause.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


class LocalEmbedder:
    """Runs the installed model in a separate process."""

    def __init__(
        self,
        folder: ModelFolder,
        model: InstalledModel,
        *,
        threads: int = 0,
        error_log: Path,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the embedder without starting its process.

        `threads` is how many texts are embedded at once; 0 means one per core.
        """
        self.model = model.model
        self.dimension = model.dimension
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._arguments = [str(folder.root), json.dumps(asdict(model)), str(threads or cores)]
        self._error_log = error_log
        self._monotonic = monotonic
        #: Held while a process is started, so that only one process is started.
        self._starting = threading.Lock()
        self._process: _Process | None = None
        self._is_closed = False
        self._pause_s = FIRST_PAUSE_S
        self._not_before_s = 0.0

    @property
    def pid(self) -> int | None:
        """The process id; None without a process."""
        return self._process.pid if self._process is not None and self._process.is_alive else None

    @property
    def is_stale(self) -> bool:
        """False: a loaded model never changes."""
        return False

    def start(self) -> None:
        """Start the process and wait until the model is loaded. Raises EmbedFailed."""
        self._living(PATIENCE_S)

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        process = self._living(PATIENCE_S)
        # Longest first, so that all cores finish at about the same time.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]), reverse=True)
        answers = {place: process.ask(texts[place], PATIENT) for place in order}
        try:
            # Wait in the order of sending, so that the time limit applies to each text, not to all together.
            vectors = {place: answer.result(PATIENCE_S) for place, answer in answers.items()}
        except TooLate as error:
            process.stop()
            raise EmbedFailed(f"The model did not answer within {PATIENCE_S:g} s.") from error
        self._pause_s, self._not_before_s = FIRST_PAUSE_S, 0.0
        return [vectors[place] for place in range(len(texts))]

    def embed_query(self, text: str, deadline_s: float | None) -> bytes:
        process = self._living(self._rest_s(deadline_s))
        # Sending to a stuck process, which doesn't read, would block.
        process.kill_if_stuck()
        try:
            return process.ask(text, URGENT).result(self._rest_s(deadline_s))
        except TooLate as error:
            raise EmbedFailed("The query was not embedded in time.") from error

    def close(self) -> None:
        """End the process. Waiting texts fail."""
        with self._starting:
            self._is_closed = True
        if self._process is not None:
            self._process.stop()

    def _rest_s(self, deadline_s: float | None) -> float:
        return PATIENCE_S if deadline_s is None else max(deadline_s - self._monotonic(), 0.0)

    def _living(self, patience_s: float) -> "_Process":
        """Return a process with a loaded model, started if needed. Raises EmbedFailed."""
        with self._starting:
            if self._is_closed:
                raise EmbedFailed("The model is no longer in use.")
            process = self._process
            if process is None or not process.is_alive:
                now_s = self._monotonic()
                if now_s < self._not_before_s:
                    raise EmbedFailed("The process that runs the model died; another is started in a moment.")
                self._not_before_s, self._pause_s = now_s + self._pause_s, min(self._pause_s * 2, LONGEST_PAUSE_S)
                try:
                    require(RUN_LIBRARIES)
                    process = self._process = _Process(self._arguments, self._error_log, self._monotonic)
                except ModelProblem as problem:
                    raise EmbedFailed(f"{problem.message} {problem.hint}") from problem
                except OSError as error:
                    raise EmbedFailed(f"The process that runs the model can't be started: {error.strerror}.") from error
        process.await_ready(patience_s)
        return process


class _Process:
    """A process that runs the model, and the texts that it has not answered yet."""

    def __init__(self, arguments: Sequence[str], error_log: Path, monotonic: Callable[[], float]) -> None:
        """Start the process. Raises OSError."""
        self._monotonic = monotonic
        self._control, theirs = socket.socketpair()
        # A process that doesn't read must not block the callers.
        self._control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(QUERY_PATIENCE_S), 0))
        with theirs:
            self._popen = start_module("svc_daemon.embed.model_process", arguments, theirs, error_log)
        self.pid = self._popen.pid
        self._error_log = error_log
        self._started_s = monotonic()
        self._lock = threading.Lock()
        #: Resolved once the model is loaded or has failed to load.
        self._ready: Future[bytes] = Future()
        self._asked: dict[int, Future[bytes]] = {PROCESS: self._ready}
        #: When each unanswered query was sent, including queries that no caller waits for any more.
        self._queries: dict[int, float] = {}
        self._last_number = PROCESS
        self.is_alive = True
        threading.Thread(target=self._listen, name="embed-answers", daemon=True).start()

    def await_ready(self, patience_s: float) -> None:
        """Wait until the model is loaded. Raises EmbedFailed after `patience_s` seconds or if loading fails."""
        try:
            self._ready.result(patience_s)
        except TooLate as error:
            if self._monotonic() - self._started_s < PATIENCE_S:
                raise EmbedFailed("The model is being loaded.") from error
            self._popen.kill()
            raise EmbedFailed(f"The model was not loaded within {PATIENCE_S:g} s.") from error
        except EmbedFailed:
            self.stop()
            raise

    def ask(self, text: str, kind: int) -> Future[bytes]:
        """Send a text. The future returns its vector or raises EmbedFailed."""
        answer: Future[bytes] = Future()
        with self._lock:
            self._last_number += 1
            self._asked[self._last_number] = answer
            if kind == URGENT:
                self._queries[self._last_number] = self._monotonic()
            try:
                send_frame(self._control, Frame(self._last_number, kind, text.encode()))
            except OSError:
                # The process is dead or stuck, so all unanswered texts fail.
                self._popen.kill()
                self.is_alive = False
        if not self.is_alive:
            self._fail_asked()
        return answer

    def kill_if_stuck(self) -> None:
        """Kill the process if a query has waited too long. All unanswered texts fail."""
        asked_s = next(iter(self._queries.copy().values()), None)
        if asked_s is not None and self._monotonic() - asked_s > QUERY_PATIENCE_S:
            self._popen.kill()

    def stop(self) -> None:
        """End the process by closing the connection, and wait for it."""
        # Unlike `close`, this wakes the listener thread.
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        await_end(self._popen)

    def _listen(self) -> None:
        incoming = self._control.makefile("rb")
        while (frame := receive_frame(incoming)) is not None:
            with self._lock:
                answer = self._asked.pop(frame.number, None)
                self._queries.pop(frame.number, None)
            if answer is None:
                continue
            if frame.kind == DONE:
                answer.set_result(frame.content)
            else:
                answer.set_exception(EmbedFailed(frame.content.decode("utf-8", "replace"), retryable=False))
        self.is_alive = False
        self._fail_asked()
        incoming.close()
        self._control.close()
        await_end(self._popen)

    def _fail_asked(self) -> None:
        with self._lock:
            lost, self._asked = self._asked, {}
        if lost:
            reason = last_words(self._error_log).rpartition("\n")[2] or "it printed nothing"
            log.warning("the process that runs the model ended: %s", reason)
        for answer in lost.values():
            answer.set_exception(EmbedFailed("The process that runs the model ended."))
