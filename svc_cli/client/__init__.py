"""The Python client of svc.

    from svc_cli.client import Client, answer_text

    with Client() as client:
        client.ensure_bucket("handbook")
        source = client.upload_file("handbook", "leave.md")
        client.wait_until_ready(source["id"])
        page = client.search("how many days of leave", buckets=["handbook"])
        answer = client.ask("How many days of leave do I have?", buckets=["handbook"])
        print(page["data"][0]["text"], answer_text(answer))

docs/how-to/python.md shows more. Up to 100 files can be sent as a batch:

    files = {"a.txt": b"First", "b.txt": b"Second"}
    members = [
        Member(Description(filename=name, title=name, sha256=hashlib.sha256(data).hexdigest()), len(data))
        for name, data in files.items()
    ]
    contents = {each.client_file_id: BytesContent(data) for each, data in zip(members, files.values())}
    batch = client.open_batch("handbook", members, "night-1").body
    for item in batch["items"]:
        client.send_bytes(item["upload_url"], contents[item["client_file_id"]])
    client.finalize_batch("handbook", batch["batch_id"])

`Client` describes answers, errors, retries and threads. `svc_cli.client.types` has the types of answers.
"""

from svc_cli.client.agents import answer_text
from svc_cli.client.api import Client
from svc_cli.client.batches import Member
from svc_cli.client.imports import ImportRequest
from svc_cli.client.new_files import BytesContent, Content, Description, NewFile, idempotency_key
from svc_cli.client.retries import RetryPolicy
from svc_cli.client.waiting import Watch, wait_until_settled
from svc_cli.client.webhooks import verify_webhook
from svc_cli.errors import (
    ApiError,
    BadAnswer,
    DaemonUnreachable,
    NetworkFailed,
    NotAuthenticated,
    NotReady,
    SourceAmbiguous,
    SvcError,
    TitleConflict,
    UsageError,
    WaitTimedOut,
)

__all__ = [
    "ApiError",
    "BadAnswer",
    "BytesContent",
    "Client",
    "Content",
    "DaemonUnreachable",
    "Description",
    "ImportRequest",
    "Member",
    "NetworkFailed",
    "NewFile",
    "NotAuthenticated",
    "NotReady",
    "RetryPolicy",
    "SourceAmbiguous",
    "SvcError",
    "TitleConflict",
    "UsageError",
    "WaitTimedOut",
    "Watch",
    "answer_text",
    "idempotency_key",
    "verify_webhook",
    "wait_until_settled",
]
