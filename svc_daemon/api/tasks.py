"""Handler of tasks."""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.presenting import answer, caller, context_of
from svc_daemon.operations.keys import get_reachable_task
from svc_daemon.operations.views import view_task
from svc_daemon.wire.tasks import TaskAnswer


async def show(request: Request) -> Response:
    key = caller(request)
    task_id = request.path_params["task_id"]
    task = context_of(request).read(lambda connection: get_reachable_task(connection, key, task_id))
    return answer(request, TaskAnswer, view_task(task))
