"""Reports the daemon's state to the service manager by systemd's protocol sd_notify.

The daemon reports that it is ready, then at intervals that it is alive, and at the end that it is stopping. If the
reports cease, the service manager can restart the daemon. Nothing is sent unless the service manager asks for it.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

READY, ALIVE, STOPPING = b"READY=1", b"WATCHDOG=1", b"STOPPING=1"


@asynccontextmanager
async def notifying_service_manager(environ: Mapping[str, str]) -> AsyncIterator[None]:
    """Report that the daemon is ready, then repeatedly that it is alive, and after the block that it is stopping."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        yield
        return
    _notify(address, READY)
    is_watched = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    # After this many seconds without a message, the service manager restarts this process; 0 means never.
    limit_s = int(environ.get("WATCHDOG_USEC", "0")) / 1e6 if is_watched else 0
    beating = asyncio.create_task(_beat(address, limit_s))
    try:
        yield
    finally:
        beating.cancel()
        _notify(address, STOPPING)


async def _beat(address: str, limit_s: float) -> None:
    while limit_s:
        _notify(address, ALIVE)
        await asyncio.sleep(limit_s / 3)


def _notify(address: str, state: bytes) -> None:
    """Send the state, ignoring errors."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        # `@` marks Linux's abstract namespace, not the file system.
        channel.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        channel.send(state)
