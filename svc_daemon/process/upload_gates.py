"""Makes indexing wait for uploads that are being stored. Use `Gates` only on the event loop."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Longest time in seconds that indexing waits for uploads that are being stored.
UPLOADS_TURN_S = 0.25


class Gates:
    """Counts the uploads being stored, so that indexing can wait for them."""

    def __init__(self) -> None:
        self._uploads = 0
        self._no_uploads = asyncio.Event()
        self._no_uploads.set()

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """While the block runs, count one more upload that is being stored."""
        self._uploads += 1
        self._no_uploads.clear()
        try:
            yield
        finally:
            self._uploads -= 1
            if self._uploads == 0:
                self._no_uploads.set()

    async def let_uploads_go_first(self) -> None:
        """Wait until no upload is being stored, but at most `UPLOADS_TURN_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(UPLOADS_TURN_S):
                await self._no_uploads.wait()
