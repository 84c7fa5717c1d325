"""Handles Ctrl-C: the first raises KeyboardInterrupt in the main thread, the second ends the process immediately.

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
from contextlib import contextmanager
from types import FrameType

from svc_cli.exits import Exit

#: Seconds before a lost interrupt is sent again. By then, the destructor in which it was lost has ended.
_RESEND_S = 0.01


class InterruptHandler:
    """The signal handler for SIGINT."""

    def __init__(self) -> None:
        self._was_pressed = False
        self._is_resent = False
        self._is_due = False
        self._shields = 0

    def __call__(self, _number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt for the first interrupt; end the process for the second."""
        if self._was_pressed and not self._is_resent:
            leave(_number, frame)
        self._was_pressed, self._is_resent = True, False
        self._is_due = self._shields > 0
        if not self._is_due:
            raise KeyboardInterrupt

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Delay interrupts until the block ends."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            if self._is_due and not self._shields:
                self._is_due = False
                raise KeyboardInterrupt

    def resend(self) -> None:
        """Send the interrupt again after a moment, because its exception was lost."""
        self._is_resent = True
        # Don't use `threading.Thread`: it takes locks that the interrupted code may hold.
        _thread.start_new_thread(_interrupt_soon, (threading.get_ident(),))


def _interrupt_soon(thread: int) -> None:
    time.sleep(_RESEND_S)
    if hasattr(signal, "pthread_kill"):
        # A signal to another thread would not wake the main thread.
        signal.pthread_kill(thread, signal.SIGINT)
    else:
        _thread.interrupt_main(signal.SIGINT)


def listen() -> None:
    """Install the handler for Ctrl-C, and a hook that detects lost interrupts."""
    handler = InterruptHandler()
    report_unraisable = sys.unraisablehook

    def on_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            handler.resend()
        else:
            report_unraisable(unraisable)

    sys.unraisablehook = on_unraisable
    signal.signal(signal.SIGINT, handler)


def leave(_number: int, _frame: FrameType | None) -> None:
    """End the process at once."""
    if sys.stderr is not None and sys.stderr.isatty():
        # A progress bar may have hidden the cursor.
        os.write(2, b"\x1b[?25h")
    os._exit(Exit.INTERRUPTED)


@contextmanager
def shielded() -> Iterator[None]:
    """Delay Ctrl-C until the block ends. For short code that takes locks."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, InterruptHandler) and threading.current_thread() is threading.main_thread():
        with handler.shield():
            yield
    else:
        yield
