"""Shows the state for `svc status --watch`, redrawn in place on a terminal."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from svc_cli.console import Console, clean_styled, is_terminal
from svc_cli.progress import PLAIN_INTERVAL_S

if TYPE_CHECKING:
    from rich.live import Live


class Screen:
    """Shows each text on stderr in place of the previous one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._said_s = time.monotonic()

    def __enter__(self) -> Self:
        movable = is_terminal(self._console.err) and self._console.environ.get("TERM") != "dumb"
        if movable and self._console.is_text:
            from rich.console import Console as RichConsole
            from rich.live import Live

            self._live = Live(console=RichConsole(file=self._console.err), transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, text: str) -> None:
        """Replace the displayed text."""
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text.from_ansi(clean_styled(text)), refresh=True)
        elif time.monotonic() - self._said_s >= PLAIN_INTERVAL_S:
            self._said_s = time.monotonic()
            self._console.message(text.replace("\n", "; "))
