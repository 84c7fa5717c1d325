"""The Python client of svc: what the command line uses, for any program.

    from svc_cli.client import Client

    with Client("http://127.0.0.1:7820", api_key) as client:
        client.ensure_bucket("handbook")
        source = client.upload("handbook", Upload(filename="leave.md", data=text.encode(), title="leave.md"))
        client.wait_until_ready([source["id"]])
        page = client.search("how many days of leave", buckets=["handbook"])

Answers are the API's own JSON objects as dicts. Errors are those of `svc_cli.errors`: ApiError carries the API's code
and status. Requests are retried where that is safe; creates are held back together when the service says so.
Threads may share a client.
"""

from svc_cli.client.api import Client
from svc_cli.client.uploads import Upload, idempotency_key
from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError, NetworkFailed, SvcError, WaitTimedOut

__all__ = [
    "ApiError",
    "Client",
    "NetworkFailed",
    "SvcError",
    "Upload",
    "WaitTimedOut",
    "Watch",
    "idempotency_key",
    "wait_until_settled",
]
