"""Handler of tasks."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.presenting import answer, caller, context_of
from svc_daemon.operations.keys import get_reachable_task
from svc_daemon.operations.views import view_shortage, view_task
from svc_daemon.store.cascades import find_cascade
from svc_daemon.wire.tasks import TaskAnswer


async def show(request: Request) -> Response:
    key = caller(request)
    context, task_id = context_of(request), request.path_params["task_id"]
    read = context.read
    task = read(partial(get_reachable_task, key=key, task_id=task_id))
    # After the task, so that one that has ended never comes with counts of a moment before.
    cascade = read(partial(find_cascade, task_id=task_id))
    shortage = view_shortage(context.shortages.now) if task.finished_at is None else None
    return answer(request, TaskAnswer, view_task(task, cascade), waits_for=shortage)
