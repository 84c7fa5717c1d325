"""`svc bucket …`: named collections of sources."""

from typing import Annotated, Any

import typer

from svc_cli.client.waiting import wait_for_task
from svc_cli.commands.options import (
    DryRunOption,
    Invocation,
    TimeoutOption,
    command,
    new_app,
    parse_duration,
    parse_metadata,
)
from svc_cli.commands.status import BUCKET_HEADS, bucket_row
from svc_cli.console import Console
from svc_cli.errors import UsageError
from svc_cli.exits import Exit
from svc_cli.render import fields, table

app = new_app("List, create, show, archive and delete buckets.")

Json = dict[str, Any]
NameOption = Annotated[str | None, typer.Option(help="Name for people.")]
DescriptionOption = Annotated[str | None, typer.Option(help="What it holds.")]
MetaOption = Annotated[list[str] | None, typer.Option(metavar="K=V", help="Metadata; may be repeated.")]
ChunkSizeOption = Annotated[
    int | None,
    typer.Option(min=125, max=7272, metavar="N", help="Characters of the pieces that documents are cut into."),
]
ChunkOverlapOption = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Characters that a piece repeats of the one before.")
]
BucketArgument = Annotated[str, typer.Argument(metavar="BUCKET", help="Slug or id.")]


@command(app, "ls")
def ls(
    call: Invocation,
    everything: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    names: Annotated[bool, typer.Option("--names", help="Only their slugs, one a line.")] = False,
) -> None:
    """List buckets."""
    with call.client() as client:
        answer = client.buckets(include_archived=everything)
    rows = [bucket_row(bucket) for bucket in answer["buckets"]]
    if names and call.console.is_text:
        call.console.print("\n".join(bucket["slug"] for bucket in answer["buckets"]))
        return
    empty = "no buckets yet: `svc bucket create SLUG` makes one."
    call.console.show(answer, lambda: table(call.console, BUCKET_HEADS, rows) if rows else empty)


@command(app, "create")
def create(
    call: Invocation,
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="Lower case letters, digits and hyphens.")],
    name: NameOption = None,
    description: DescriptionOption = None,
    meta: MetaOption = None,
    chunk_size: ChunkSizeOption = None,
    chunk_overlap: ChunkOverlapOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Make a bucket; one that exists is left as it is."""
    given = _given(name, description, meta, _chunking(chunk_size, chunk_overlap))
    with call.client() as client:
        answer = client.ensure_bucket(slug, given, dry_run=dry_run)
    call.console.show(answer, lambda: _created(answer, slug))
    call.console.next_step(f"svc upload FILE -b {slug}")


def _created(answer: Json, slug: str) -> str:
    if answer.get("dry_run"):
        return f"would create {slug}, unless it exists"
    return f"created {slug} ({answer['id']})" if answer["created"] else f"{slug} exists ({answer['id']})"


@command(app, "set")
def set_fields(
    call: Invocation,
    bucket: BucketArgument,
    name: NameOption = None,
    description: DescriptionOption = None,
    meta: MetaOption = None,
    chunk_size: ChunkSizeOption = None,
    chunk_overlap: ChunkOverlapOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Change what is said of a bucket, or how its documents are cut.

    They are cut anew in the background; the old pieces answer until the new ones are there.
    """
    given = _given(name, description, meta, _chunking(chunk_size, chunk_overlap))
    if not given:
        raise UsageError("There is nothing to change.", hint="`svc bucket set --help` shows what can be.")
    with call.client() as client:
        answer = client.bucket(bucket) | {"dry_run": True} if dry_run else client.update_bucket(bucket, given)
    said = f"would change {answer['slug']}" if dry_run else f"changed {answer['slug']}"
    call.console.show(answer, lambda: said + _to_cut(answer))
    if _left(answer):
        call.console.next_step(f"svc bucket show {answer['slug']}")


def _given(name: str | None, description: str | None, meta: list[str] | None, chunking: Json | None) -> Json:
    """The fields that were named on the command line."""
    fields_named = {
        "name": name,
        "description": description,
        "metadata": parse_metadata(meta or []) or None,
        "chunking": chunking,
    }
    return {field: value for field, value in fields_named.items() if value is not None}


def _chunking(size: int | None, overlap: int | None) -> Json | None:
    """In the proportions of the default's, a piece is a fifth shorter or a tenth longer at most; the rest stays."""
    sizes = {} if size is None else {"target": size, "min": size * 4 // 5, "max": size * 11 // 10}
    overlaps = {} if overlap is None else {"overlap": overlap}
    return {**sizes, **overlaps} or None


def _left(bucket: Json) -> int:
    return int(bucket["bucketStore"].get("rechunking_member_count", 0))


def _to_cut(bucket: Json) -> str:
    return f"; {_left(bucket)} sources are cut anew" if _left(bucket) else ""


@command(app, "show")
def show(call: Invocation, bucket: BucketArgument) -> None:
    """Show one bucket."""
    with call.client() as client:
        answer = client.bucket(bucket)
    call.console.show(answer, lambda: _render(call.console, answer))


def _render(console: Console, bucket: Json) -> str:
    counts, store = bucket["counts"], bucket["bucketStore"]
    return fields(
        console,
        [
            ("bucket", bucket["slug"]),
            ("id", bucket["id"]),
            ("name", bucket["name"]),
            ("description", bucket.get("description")),
            ("state", bucket["status"]),
            ("index", store["status"]),
            (
                "sources",
                f"{counts['total']} ({counts['file']} files, {counts['website']} pages, {counts['qa']} q and a)",
            ),
            ("ready", counts["retrievable"]),
            ("pending", store["pending_member_count"]),
            ("to be cut anew", _left(bucket) or None),
            ("chunk size", (bucket["chunking"] or {}).get("target")),
            ("metadata", "  ".join(f"{key}={value}" for key, value in (bucket.get("metadata") or {}).items())),
            ("revision", bucket.get("revision")),
            ("created", bucket.get("createdAt")),
        ],
    )


@command(app, "archive")
def archive(
    call: Invocation,
    bucket: BucketArgument,
    restore: Annotated[bool, typer.Option("--restore", help="Make an archived bucket active again.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Take a bucket out of uploads and searches; nothing in it is lost."""
    status = "active" if restore else "archived"
    with call.client() as client:
        answer = client.bucket(bucket) if dry_run else client.update_bucket(bucket, {"status": status})
    said = f"would be {status}: {answer['slug']}" if dry_run else f"{answer['slug']} is {status}"
    call.console.show({**answer, "dry_run": True} if dry_run else answer, lambda: said)
    if not restore and not dry_run:
        call.console.next_step(f"svc bucket archive --restore {answer['slug']}")


@command(app, "rm")
def rm(
    call: Invocation,
    bucket: BucketArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Really delete it, and the sources that have no other bucket.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Return when it is gone. Exit 3 when some of it is left.")
    ] = False,
    timeout: TimeoutOption = None,
    dry_run: DryRunOption = False,
) -> Exit:
    """Delete a bucket and every source that is in no other one."""
    timeout_s = parse_duration(timeout)
    with call.client() as client, call.progress() as progress:
        if dry_run:
            return _would_delete(call.console, client.bucket(bucket))
        answer = client.delete_bucket(bucket, force=force)
        if wait:
            progress.begin("deleting", answer["deletion"]["total"])
            answer |= _outcome(wait_for_task(client, answer["deletion"]["task_id"], timeout_s, progress.update))
    call.console.show(answer, lambda: _deleted(answer))
    if answer["status"] == "deleting":
        call.console.next_step(f"svc bucket show {answer['slug']}")
    return Exit.FAILED if answer.get("error") else Exit.DONE


def _would_delete(console: Console, bucket: Json) -> Exit:
    total = bucket["counts"]["total"]
    console.show({**bucket, "dry_run": True}, lambda: f"would delete {bucket['slug']} and up to {total} sources")
    return Exit.DONE


def _outcome(task: Json) -> Json:
    """What the end of the task changes in the answer of the deletion."""
    if task["status"] == "failed":
        return {"status": "active", "deletion": task["deletion"], "error": task["error"]}
    return {"status": "deleted", "deletion": task["deletion"]}


def _deleted(answer: Json) -> str:
    deletion = answer["deletion"]
    if answer["status"] == "deleting":
        return f"deleting {answer['slug']}: {deletion['total']} sources; no search finds them any more"
    if answer["status"] == "active":
        return f"{answer['slug']} is back: {answer['error']['message']}"
    return f"deleted {answer['slug']}: {deletion['deleted']} sources, {deletion['detached']} stay in other buckets"
