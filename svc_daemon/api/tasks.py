"""Handler of tasks."""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.presenting import answer, caller, context_of
from svc_daemon.operations.views import view_task
from svc_daemon.store.tasks import get_task
from svc_daemon.wire.tasks import TaskAnswer


async def show(request: Request) -> Response:
    key = caller(request)
    task_id = request.path_params["task_id"]
    task = context_of(request).read(lambda connection: get_task(connection, key.team_id, task_id))
    return answer(request, TaskAnswer, view_task(task))
