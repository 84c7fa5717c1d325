"""The Python client of svc. The command line uses it, and any other program can.

    from svc_cli.client import Client

    with Client("http://127.0.0.1:7820", api_key) as client:
        client.ensure_bucket("handbook")
        source = client.upload("handbook", NewFile(filename="leave.md", data=text.encode(), title="leave.md"))
        client.wait_until_ready([source["id"]])
        page = client.search("how many days of leave", buckets=["handbook"])
        answer = client.ask({"model": "svc-agent", "input": "How many days of leave do I have?"})

A large file can be sent through an upload session, which can be resumed after an interruption. Up to 100 files can be
sent as a batch:

    description = Description(filename="plan.pdf", title="plan.pdf")
    source = client.upload_content("handbook", description, BytesContent(data), idempotency_key="plan-1")

    members = [Member(Description(filename=name, title=name, sha256=digest), size) for name, digest, size in files]
    batch = client.open_batch("handbook", members, "night-1").body
    for item in batch["items"]:
        client.send_bytes(item["upload_url"], contents[item["client_file_id"]])
    client.finalize_batch("handbook", batch["batch_id"])

With `pack=True`, `open_batch` also returns a URL that accepts the bytes of all files in a single request.

Methods return the API's JSON objects as dicts. Errors are defined in `svc_cli.errors`: ApiError carries the API's error
code and the HTTP status. Requests are retried after temporary errors. Threads may share a client; when the
service asks for a pause, all of them wait before they create anything.
"""

from svc_cli.client.api import Client
from svc_cli.client.batches import Member
from svc_cli.client.contents import BytesContent, Content
from svc_cli.client.imports import ImportRequest
from svc_cli.client.signatures import verify_webhook
from svc_cli.client.uploads import Description, NewFile, idempotency_key
from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.errors import ApiError, NetworkFailed, SvcError, WaitTimedOut

__all__ = [
    "ApiError",
    "BytesContent",
    "Client",
    "Content",
    "Description",
    "ImportRequest",
    "Member",
    "NetworkFailed",
    "NewFile",
    "SvcError",
    "WaitTimedOut",
    "Watch",
    "idempotency_key",
    "verify_webhook",
    "wait_until_settled",
]
