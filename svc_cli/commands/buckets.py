"""`svc bucket …`: named collections of sources."""

from typing import Annotated, Any

import typer

from svc_cli.commands.options import DryRunOption, Invocation, command, new_app, parse_metadata
from svc_cli.commands.status import BUCKET_HEADS, bucket_row
from svc_cli.console import Console
from svc_cli.render import fields, table

app = new_app("List, create, show, archive and delete buckets.")

Json = dict[str, Any]
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
    name: Annotated[str | None, typer.Option(help="Name for people.")] = None,
    description: Annotated[str | None, typer.Option(help="What it holds.")] = None,
    meta: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Metadata; may be repeated.")] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Make a bucket; one that exists is left as it is."""
    given = {"name": name, "description": description, "metadata": parse_metadata(meta or []) or None}
    with call.client() as client:
        fields_given = {key: value for key, value in given.items() if value is not None}
        answer = client.ensure_bucket(slug, fields_given, dry_run=dry_run)
    call.console.show(answer, lambda: _created(answer, slug))
    call.console.next_step(f"svc upload FILE -b {slug}")


def _created(answer: Json, slug: str) -> str:
    if answer.get("dry_run"):
        return f"would create {slug}, unless it exists"
    return f"created {slug} ({answer['id']})" if answer["created"] else f"{slug} exists ({answer['id']})"


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
    dry_run: DryRunOption = False,
) -> None:
    """Delete a bucket and every source that is in no other one."""
    with call.client() as client:
        answer = client.bucket(bucket) if dry_run else client.delete_bucket(bucket, force=force)
    if dry_run:
        total = answer["counts"]["total"]
        call.console.show(
            {**answer, "dry_run": True}, lambda: f"would delete {answer['slug']} and up to {total} sources"
        )
        return
    deletion = answer.get("deletion") or {}
    call.console.show(answer, lambda: f"deleting {answer['slug']}: {deletion.get('total', 0)} sources")
