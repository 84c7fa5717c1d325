"""Signs of life: a task whose worker gives none is put back when its lease runs out."""

import asyncio

from svc_daemon.errors import StorageError
from svc_daemon.operations.claims import extend_claim
from svc_daemon.operations.contexts import Context
from svc_daemon.store.tasks import Task

#: A lease is extended three times before it would run out.
BEATS_PER_LEASE = 3
#: After a sign of life that the disk refused, seconds.
RETRY_S = 0.5


async def keep_lease(context: Context, task: Task) -> None:
    """Extend the lease until this is cancelled."""
    pause_s = beat_s = context.limits.lease_seconds / BEATS_PER_LEASE
    while True:
        await asyncio.sleep(pause_s)
        try:
            await extend_claim(context, task)
            pause_s = beat_s
        except StorageError:
            # The worker lives all the same: as soon as the disk takes it, before anybody else has the task.
            pause_s = min(RETRY_S, beat_s)
