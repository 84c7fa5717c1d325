"""Tells the service manager that started the daemon how it is, by systemd's protocol of sd_notify.

Once the daemon answers requests, it says that it is ready; from then on it says at intervals that its event loop
turns, so that a daemon that hangs is restarted; and when it has finished its requests, that it stops. Without a service
manager that asks for it, nothing is sent.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

READY, ALIVE, STOPPING = b"READY=1", b"WATCHDOG=1", b"STOPPING=1"


@asynccontextmanager
async def notifying_service_manager(environ: Mapping[str, str]) -> AsyncIterator[None]:
    """Within the block, the daemon is ready and alive."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        yield
        return
    _notify(address, READY)
    beating = asyncio.create_task(_beat(address, _limit_s(environ)))
    try:
        yield
    finally:
        beating.cancel()
        _notify(address, STOPPING)


def _limit_s(environ: Mapping[str, str]) -> float:
    """Return after how many seconds of silence the service manager restarts this process; 0 for never."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0
    return int(environ.get("WATCHDOG_USEC", "0")) / 1e6


async def _beat(address: str, limit_s: float) -> None:
    while limit_s:
        _notify(address, ALIVE)
        await asyncio.sleep(limit_s / 3)


def _notify(address: str, state: bytes) -> None:
    """Send the state. If that fails, the service manager treats this process as one that has said nothing."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        # A name with @ is in the abstract namespace, which Linux has beside the file system.
        channel.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        channel.send(state)
