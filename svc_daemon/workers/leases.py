"""Signs of life: a task whose worker gives none is put back when its lease runs out."""

import asyncio

from svc_daemon.operations.claims import extend_claim
from svc_daemon.operations.contexts import Context
from svc_daemon.store.tasks import Task

#: A lease is extended three times before it would run out.
BEATS_PER_LEASE = 3


async def keep_lease(context: Context, task: Task) -> None:
    """Extend the lease until this is cancelled."""
    while True:
        await asyncio.sleep(context.limits.lease_seconds / BEATS_PER_LEASE)
        await extend_claim(context, task)
