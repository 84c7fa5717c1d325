"""The storage door: raw bytes of an upload session, by Google's resumable protocol; the token in the URL lets one in.

Pages of any origin may send here (`cross_origins`), since a browser uploads directly; nowhere else.
"""

from starlette.requests import Request
from starlette.responses import Response

from svc_daemon.api.bodies import content_length, refuse_encoding
from svc_daemon.api.presenting import context_of, header_of, respond
from svc_daemon.api.request_ids import request_id_of
from svc_daemon.core.uploads import sessions as rules
from svc_daemon.operations import uploads as verbs
from svc_daemon.wire.uploads import StorageAnswer

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "PUT, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, Content-Range, X-Guploader-No-308",
    "Access-Control-Max-Age": "3600",
    # A public page may send to a service on a private address or on the reader's own machine.
    "Access-Control-Allow-Private-Network": "true",
}


async def preflight(_request: Request) -> Response:
    return Response(status_code=204, headers=_PREFLIGHT)


async def put(request: Request) -> Response:
    context = context_of(request)
    refuse_encoding(request)
    upload = verbs.authorize(context, request.path_params["session_id"], request.path_params["token"])
    asked = rules.parse_range(header_of(request, "Content-Range"))
    sending = verbs.ChunkBody(asked, content_length(request), request.stream())
    progress = await verbs.put_bytes(context, upload.id, sending)
    return _partial(request, progress) if progress.sha256 is None else _complete(request, progress)


def _complete(request: Request, progress: verbs.UploadProgress) -> Response:
    told = {
        "session_id": progress.upload.id,
        "status": progress.state,
        "received_bytes": progress.received_bytes,
        "sha256": progress.sha256,
        "request_id": request_id_of(request.scope),
    }
    return respond(request, StorageAnswer.model_validate(told))


def _partial(request: Request, progress: verbs.UploadProgress) -> Response:
    """308 with what is stored; browsers' fetch can't read one, and says so with a header."""
    stored = rules.stored_range(progress.received_bytes)
    headers = {} if stored is None else {"Range": stored}
    if request.headers.get("X-Guploader-No-308", "").lower() == "yes":
        return Response(status_code=200, headers=headers | {"X-Http-Status-Code-Override": "308"})
    return Response(status_code=308, headers=headers)
