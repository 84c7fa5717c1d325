"""Ctrl-C: once raises KeyboardInterrupt in the main thread, a second time ends the process at once.

An interrupt may arrive between any two instructions. Inside the locks of thread pools, futures and events it can leave
a lock locked for ever, so such steps are shielded: the interrupt is raised after them. Only short steps are shielded.
Python drops an exception that is raised inside a destructor, such as that of a generator left before its end; an
interrupt that was lost there is sent again a moment later.
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

#: Delay before a lost interrupt is sent again; the destructor that dropped it has ended by then.
_RESEND_S = 0.01


class InterruptHandler:
    """The handler of SIGINT."""

    def __init__(self) -> None:
        self._was_pressed = False
        self._is_resent = False
        self._is_due = False
        self._shields = 0

    def __call__(self, _number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, or end the process at the second interrupt."""
        if self._was_pressed and not self._is_resent:
            leave(_number, frame)
        self._was_pressed, self._is_resent = True, False
        self._is_due = self._shields > 0
        if not self._is_due:
            raise KeyboardInterrupt

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Hold an interrupt back until the block ends."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            if self._is_due and not self._shields:
                self._is_due = False
                raise KeyboardInterrupt

    def resend(self) -> None:
        """Send the interrupt again in a moment, because the first one was dropped."""
        self._is_resent = True
        # Not a `threading.Thread`: it uses locks, which the interrupted code may hold.
        _thread.start_new_thread(_interrupt_soon, (threading.get_ident(),))


def _interrupt_soon(thread: int) -> None:
    time.sleep(_RESEND_S)
    # Sent to the main thread itself, which may wait for a lock that only a signal to this thread interrupts.
    signal.pthread_kill(thread, signal.SIGINT)


def listen() -> None:
    """Take Ctrl-C in two steps from now on."""
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
        os.write(2, b"\x1b[?25h")  # a bar hides the cursor and has no time to bring it back
    os._exit(Exit.INTERRUPTED)


@contextmanager
def shielded() -> Iterator[None]:
    """Hold Ctrl-C back while the block takes locks that other threads need; only for what ends within a moment."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, InterruptHandler) and threading.current_thread() is threading.main_thread():
        with handler.shield():
            yield
    else:
        yield
