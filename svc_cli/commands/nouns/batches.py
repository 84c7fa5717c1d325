"""`svc batch …`: shows the state of files that were uploaded together."""

from typing import Annotated

import typer

from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.console import Console
from svc_cli.render import fields, table
from svc_daemon.wire import JsonMapping

app = new_app("Show the state of files that were uploaded together as a batch.")


BATCH_PREFIX = "bat_"


@app.callback()
def group() -> None:
    """Show the state of files that were uploaded together as a batch."""
    # Without a callback, Typer would replace a group of only one command with that command.


@command(app, "show", "svc batch show bat_01k3zq8q4y7xd2m9q0r8s5t6vw --items")
def show(
    call: Invocation,
    batch: Annotated[str, typer.Argument(metavar="BATCH", help="The complete id of the batch.")],
    items: Annotated[bool, typer.Option("--items", help="Also list each file of the batch.")] = False,
) -> None:
    """Show how many files of a batch are ready, pending or failed."""
    with call.client() as client:
        answer = client.batch(batch, items=items)
    call.console.show(answer, lambda: render_batch(call.console, answer))


def render_batch(console: Console, batch: JsonMapping) -> str:
    """Render a batch, with its files if there are any."""
    counters = batch["counters"]
    # The counter has what was deleted or given up, too.
    words = {"failed": "failed or gone"}
    counts = "  ".join(
        f"{counters[name]} {words.get(name, name)}" for name in counters if name != "total" and counters[name]
    )
    head = fields(
        console,
        [
            ("batch", batch["batch_id"]),
            ("state", batch["status"]),
            ("ready", bool(batch["ready"])),
            ("files", f"{counters['total']}: {counts}"),
            ("buckets", batch["bucket_ids"]),
            ("created", batch["created_at"]),
            ("uploads end", batch["expires_at"]),
        ],
    )
    if not batch.get("items"):
        return head
    rows = [
        ("ready" if each["ready"] else each["status"], each["knowledge_id"], (each["error"] or {}).get("code"))
        for each in batch["items"]
    ]
    return f"{head}\n\n{table(console, ('state', 'source', 'why'), rows)}"
