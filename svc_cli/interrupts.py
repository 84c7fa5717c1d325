"""Ctrl-C: once raises KeyboardInterrupt in the main thread, a second time ends the process at once.

An interrupt may arrive between any two steps. Inside the locks that Python's thread pools, futures and events are made
of, that can leave a lock taken for ever; such steps are shielded: the interrupt is raised when they are over. Nothing
that may last is shielded. Python drops an exception that is raised inside a destructor, such as that of a generator
left before its end; an interrupt that was lost there is sent again a moment later.
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

#: How long after its loss an interrupt is sent again; the destructor that dropped it has ended by then.
_RESEND_S = 0.01


class InterruptHandler:
    """The handler of SIGINT."""

    def __init__(self) -> None:
        self._was_pressed = False
        self._is_resent = False
        self._is_due = False
        self._shields = 0

    def __call__(self, _number: int, frame: FrameType | None) -> None:
        """Interrupt the main thread, or leave."""
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
        """Interrupt again in a moment, since the first one was dropped."""
        self._is_resent = True
        # Not threading's: it takes locks, and whatever was interrupted by the destructor may hold them.
        _thread.start_new_thread(_interrupt_soon, (threading.get_ident(),))


def _interrupt_soon(thread: int) -> None:
    time.sleep(_RESEND_S)
    # To the very thread: it may wait for a lock that the destructor left taken, and no other thread's signal ends that.
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
