"""`svc source …`: the files and pages inside buckets."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from svc_cli.commands.options import BucketOption, DryRunOption, Invocation, command, new_app
from svc_cli.commands.source_views import render_source, source_rows
from svc_cli.console import clean
from svc_cli.render import place_of, state_of, table

app = new_app("List, show, read, retry, refresh, attach, detach and delete sources.")

Json = dict[str, Any]
SourceArgument = Annotated[str, typer.Argument(metavar="SOURCE", help="The source's id.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFlags:
    """Which sources are listed."""

    bucket: BucketOption = None
    status: Annotated[
        Literal["ready", "all", "queued", "indexing", "failed"], typer.Option(help="Which ones.  [default: all]")
    ] = "all"
    type: Annotated[Literal["file", "page", "qa"] | None, typer.Option("--type", help="Only this kind.")] = None
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only with this tag.")] = None
    q: Annotated[str | None, typer.Option("-q", metavar="TEXT", help="Only where title or file name hold this.")] = None
    title: Annotated[str | None, typer.Option(metavar="TITLE", help="Only with exactly this title.")] = None
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, max=1000, help="At most so many.")] = None
    after: Annotated[str | None, typer.Option(metavar="ID", help="Only those after this id.")] = None

    def filters(self) -> dict[str, str | int]:
        """The query that asks the API for them; ready ones are what it lists unasked."""
        status = None if self.status == "ready" else self.status
        wanted = {"status": status, "type": self.type, "tag": self.tag, "q": self.q, "title": self.title}
        paging = {"limit": self.limit, "after": self.after}
        return {name: value for name, value in {**wanted, **paging}.items() if value is not None}


@command(app, "ls")
def ls(call: Invocation, flags: ListFlags) -> None:
    """List the sources of a bucket."""
    bucket = call.bucket(flags.bucket)
    with call.client() as client:
        answer = client.sources_page(bucket, flags.filters())
    heads, rows = source_rows(answer["sources"])
    call.console.show(answer, lambda: table(call.console, heads, rows) if rows else "no sources.")
    if answer.get("has_more"):
        call.console.note(f"there is more: --after {answer['last_id']}")


@command(app, "show")
def show(
    call: Invocation,
    source: SourceArgument,
    verify: Annotated[bool, typer.Option("--verify", help="Ask the search index too.")] = False,
) -> None:
    """Show one source in full."""
    with call.client() as client:
        answer = client.source(source, verify=verify)
    call.console.show(answer, lambda: render_source(call.console, answer))


@command(app, "text")
def text(
    call: Invocation,
    source: SourceArgument,
    chunks: Annotated[bool, typer.Option("--chunks", help="Piece by piece, each with its place.")] = False,
) -> None:
    """Print the text that was read from a source."""
    with call.client() as client:
        answer = client.source_text(source)
    call.console.show(answer, lambda: _chunks(answer) if chunks else _cleaned(answer["text"]))


def _cleaned(text: str) -> str:
    return "\n".join(clean(line) for line in text.rstrip("\n").split("\n"))


def _chunks(answer: Json) -> str:
    blocks = []
    for chunk in answer["chunks"]:
        headings = " > ".join(chunk["location"].get("headings") or [])
        place = ", ".join(filter(None, (place_of(chunk["location"]), headings)))
        blocks.append(f"-- {chunk['chunk_id']}  {clean(place)}\n{_cleaned(chunk['text'])}")
    return "\n\n".join(blocks)


@command(app, "retry")
def retry(call: Invocation, source: SourceArgument, dry_run: DryRunOption = False) -> None:
    """Queue a failed source again, from the bytes that are stored."""
    with call.client() as client:
        answer = client.source(source) if dry_run else client.retry_source(source)
    said = "would be queued again" if dry_run else state_of(answer)
    call.console.show(_marked(answer, dry_run), lambda: f"{answer['id']}  {said}  {clean(answer['title'])}")
    if not dry_run:
        call.console.next_step(f"svc wait {answer['id']}")


@command(app, "refresh")
def refresh(
    call: Invocation,
    source: SourceArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Also when a page has become a file, or a file a page.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Fetch a source's URL again; it is indexed anew only where its content has changed."""
    with call.client() as client:
        answer = client.source(source) if dry_run else client.refresh_source(source, force=force)
    said = "would be fetched again" if dry_run else "changed" if answer["changed"] else "unchanged"
    call.console.show(_marked(answer, dry_run), lambda: f"{answer['id']}  {said}  {clean(answer['title'])}")
    if answer.get("changed"):
        call.console.next_step(f"svc wait {answer['id']}")


@command(app, "attach")
def attach(
    call: Invocation, source: SourceArgument, bucket: BucketOption = None, dry_run: DryRunOption = False
) -> None:
    """Put a source into one more bucket."""
    target = call.bucket(bucket)
    with call.client() as client:
        answer = client.source(source) if dry_run else client.attach_source(target, source)
    verb = "would be attached to" if dry_run else "is in"
    call.console.show(_marked(answer, dry_run), lambda: f"{source} {verb} {target}")


@command(app, "detach")
def detach(
    call: Invocation, source: SourceArgument, bucket: BucketOption = None, dry_run: DryRunOption = False
) -> None:
    """Take a source out of one bucket; it stays, and so do its other buckets."""
    target = call.bucket(bucket)
    with call.client() as client:
        answer = client.source(source) if dry_run else client.detach_source(target, source)
    verb = "would be taken out of" if dry_run else "is no longer in"
    call.console.show(_marked(answer, dry_run), lambda: f"{source} {verb} {target}")


@command(app, "rm")
def rm(
    call: Invocation,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE", help="Ids of sources.")],
    force: Annotated[bool, typer.Option("--force", help="Even if something depends on it.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Delete sources everywhere: stored bytes, index, every bucket."""
    answers = []
    with call.client() as client:
        for source in sources:
            answer = client.source(source) if dry_run else client.delete_source(source, force=force)
            answers.append(_marked(answer, dry_run))
            call.console.event({"type": "source.deleted", **answer})
    verb = "would delete" if dry_run else "deleted"
    value = answers[0] if len(answers) == 1 else {"v": 1, "type": "source.deletions", "items": answers, "exit_code": 0}
    call.console.show(value, lambda: "\n".join(f"{verb} {answer['id']}" for answer in answers))


def _marked(answer: Json, is_dry: bool) -> Json:
    return {**answer, "dry_run": True} if is_dry else answer
