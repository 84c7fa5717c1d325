"""Handles Ctrl-C, SIGTERM and SIGHUP: the first raises KeyboardInterrupt with its number in the main thread.

A second Ctrl-C ends the process immediately. A second SIGTERM or SIGHUP doesn't: `timeout` and terminals send two.

An exception while the main thread takes a lock could leave it locked forever. Code that takes locks runs in
`shielded()`, which delays the exception. Python ignores exceptions in destructors; an interrupt that was lost there is
sent again.
"""

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from types import FrameType
from typing import Any

#: The signals that end a command. Windows has no SIGHUP.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
#: What `--json` prints if a signal ends the process before the command has begun; `errors` may not be loaded yet.
_ENVELOPE = (
    '{"error": {"code": "svc_interrupted", "message": "Interrupted.", "retryable": true, "details": {}, '
    '"hint": null}, "request_id": null, "exit_code": %d}\n'
)
#: Seconds before a lost interrupt is sent again. By then, the destructor in which it was lost has ended.
_RESEND_S = 0.01


class InterruptHandler:
    """The signal handler of a command."""

    def __init__(self) -> None:
        self._was_pressed = False
        self._is_resent = False
        #: The number of the signal that the end of the outermost shield raises; 0 if there is none.
        self._due = 0
        self._shields = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt for the first signal; end the process for a second Ctrl-C."""
        if self._was_pressed and not self._is_resent:
            if number == signal.SIGINT:
                leave(number, frame)
            return
        self._was_pressed, self._is_resent = True, False
        self._due = number if self._shields else 0
        if not self._due:
            raise KeyboardInterrupt(number)

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Delay interrupts until the block ends."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            if self._due and not self._shields:
                number, self._due = self._due, 0
                raise KeyboardInterrupt(number)

    def resend(self, number: int) -> None:
        """Send the signal again after a moment, because its exception was lost."""
        self._is_resent = True
        # Don't use `threading.Thread`: it takes locks that the interrupted code may hold.
        _thread.start_new_thread(_interrupt_soon, (threading.get_ident(), number))


def _interrupt_soon(thread: int, number: int) -> None:
    time.sleep(_RESEND_S)
    if hasattr(signal, "pthread_kill"):
        # A signal to another thread would not wake the main thread.
        signal.pthread_kill(thread, number)
    else:
        _thread.interrupt_main(signal.Signals(number))


def listen() -> None:
    """Install the handler of a command, and a hook that detects lost interrupts."""
    handler = InterruptHandler()
    report_unraisable = sys.unraisablehook

    def on_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            lost = unraisable.exc_value
            handler.resend(lost.args[0] if lost and lost.args else signal.SIGINT)
        else:
            report_unraisable(unraisable)

    sys.unraisablehook = on_unraisable
    catch(handler)


def catch(handler: Any) -> None:
    """Install a handler for the signals that end a command; not for those that `nohup` lets it ignore."""
    for number in ENDING:
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def end_early(number: int, _frame: FrameType | None) -> None:
    """End the process before the command has begun, when there is nothing to clean up."""
    options = list(takewhile(lambda argument: argument != "--", sys.argv))
    if "--json" in options or "--ndjson" in options:
        with suppress(OSError):
            os.write(1, (_ENVELOPE % (128 + number)).encode())
    os._exit(128 + number)


def leave(number: int, _frame: FrameType | None) -> None:
    """End the process at once."""
    if sys.stderr is not None and sys.stderr.isatty():
        # A progress bar may have hidden the cursor.
        os.write(2, b"\x1b[?25h")
    os._exit(128 + number)


@contextmanager
def shielded() -> Iterator[None]:
    """Delay interrupts until the block ends. For short code that takes locks."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, InterruptHandler) and threading.current_thread() is threading.main_thread():
        with handler.shield():
            yield
    else:
        yield
