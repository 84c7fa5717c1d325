"""`svc bucket …`: creates, shows, changes and deletes buckets."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from svc_cli.client.waiting import wait_for_task
from svc_cli.commands.daily.status import render_buckets
from svc_cli.commands.invocations import (
    DryRunOption,
    Invocation,
    JobsOption,
    NoCreateOption,
    TimeoutOption,
    WaitOption,
    accounted,
    command,
    new_app,
    parse_metadata,
)
from svc_cli.errors import UsageError, whole_error
from svc_cli.exits import Exit
from svc_cli.render import counted, fields, size
from svc_daemon.wire import Json, JsonMapping

if TYPE_CHECKING:
    from svc_cli.client.api import Client

app = new_app(
    "List, create, show, change, archive, export, import and delete buckets.",
    "svc bucket ls",
    "svc bucket create handbook --name 'Staff handbook'",
    "svc bucket rm drafts old-drafts",
)

NameOption = Annotated[str | None, typer.Option(help="Set the display name, such as 'Staff handbook'.")]
DescriptionOption = Annotated[str | None, typer.Option(help="Describe what the bucket holds.")]
MetaOption = Annotated[
    list[str] | None, typer.Option(metavar="K=V", help="Set the metadata field K to the text V; repeatable.")
]
ChunkSizeOption = Annotated[
    int | None,
    typer.Option(
        min=125,
        max=7272,
        metavar="N",
        help="Split documents into passages of about N characters, 125 to 7272; 1000 if never set.",
    ),
]
ChunkOverlapOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Repeat the last N characters of each passage at the start of the next passage; 0 if never set.",
    ),
]
BucketArgument = Annotated[str, typer.Argument(metavar="BUCKET", help="The bucket, by slug or id.")]


@command(app, "ls", "svc bucket ls", "svc bucket ls --all --json")
def ls(
    call: Invocation,
    everything: Annotated[bool, typer.Option("--all", help="Also list archived buckets.")] = False,
    names: Annotated[bool, typer.Option("--names", help="Print only the short names (slugs), one per line.")] = False,
) -> None:
    """List buckets, those with failed sources first."""
    with call.client() as client:
        answer = client.buckets(include_archived=everything, members=False)
    if names and call.console.is_text:
        call.console.print("\n".join(bucket["slug"] for bucket in answer["buckets"]))
        return
    empty = "no buckets yet: `svc bucket create SLUG` creates one."
    call.console.show_page(answer, "buckets", lambda: render_buckets(call.console, answer["buckets"]) or empty)


@command(
    app, "create", "svc bucket create handbook", "svc bucket create handbook --name 'Staff handbook' --meta team=hr"
)
def create(
    call: Invocation,
    slug: Annotated[
        str,
        typer.Argument(metavar="SLUG", help="The slug, a short name of lowercase letters, digits and hyphens."),
    ],
    name: NameOption = None,
    description: DescriptionOption = None,
    meta: MetaOption = None,
    chunk_size: ChunkSizeOption = None,
    chunk_overlap: ChunkOverlapOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Create a bucket, unless it exists already."""
    given = _given(name, description, meta, _chunking(chunk_size, chunk_overlap))
    with call.client() as client:
        answer: JsonMapping = client.ensure_bucket(slug, **given, dry_run=dry_run)
    if dry_run:
        text = f"would create {slug}" if answer["would_create"] else f"{slug} exists; nothing would be created"
    else:
        text = f"created {slug} ({answer['id']})" if answer["created"] else f"{slug} exists ({answer['id']})"
    call.console.show(answer, lambda: text)
    call.console.next_step(f"svc upload FILE -b {slug}")


@command(app, "set", "svc bucket set handbook --name 'Staff handbook'", "svc bucket set handbook --chunk-size 1200")
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
    """Change a bucket's name, description or metadata, or how its documents are split into passages.

    Documents are split again in the background. Until then, searches use the old passages.
    """
    given = _given(name, description, meta, _chunking(chunk_size, chunk_overlap))
    if not given:
        raise UsageError("There is nothing to change.", hint="`svc bucket set --help` lists what can be changed.")
    with call.client() as client:
        answer: JsonMapping = (
            {**client.bucket(bucket), "dry_run": True} if dry_run else client.update_bucket(bucket, **given)
        )
    text = f"would change {answer['slug']}" if dry_run else f"changed {answer['slug']}"
    text += f"; {_left(answer)} sources are being split again" if _left(answer) else ""
    call.console.show(answer, lambda: text)
    if _left(answer):
        call.console.next_step(f"svc bucket show {answer['slug']}")


def _given(name: str | None, description: str | None, meta: list[str] | None, chunking: Json | None) -> Json:
    """Build the request body for a bucket from the given fields."""
    fields_named = {
        "name": name,
        "description": description,
        "metadata": parse_metadata(meta or []) or None,
        "chunking": chunking,
    }
    return {field: value for field, value in fields_named.items() if value is not None}


def _chunking(size: int | None, overlap: int | None) -> Json | None:
    """Build the chunking settings, if any. Chunks have 80 % to 110 % of the target size."""
    sizes = {} if size is None else {"target": size, "min": size * 4 // 5, "max": size * 11 // 10}
    overlaps = {} if overlap is None else {"overlap": overlap}
    return {**sizes, **overlaps} or None


def _left(bucket: JsonMapping) -> int:
    """Return how many sources still must be split into passages again."""
    return int(bucket["bucketStore"].get("rechunking_member_count", 0))


@command(app, "show", "svc bucket show handbook")
def show(call: Invocation, bucket: BucketArgument) -> None:
    """Show everything about one bucket."""
    with call.client() as client:
        answer: JsonMapping = client.bucket(bucket, members=not call.console.is_text)
    counts, store = answer["counts"], answer["bucketStore"]
    nouns = {"file": "file", "website": "page", "qa": "written answer"}
    kinds = ", ".join(counted(counts[kind], noun) for kind, noun in nouns.items())
    pairs = [
        ("bucket", answer["slug"]),
        ("id", answer["id"]),
        ("name", answer["name"]),
        ("description", answer.get("description")),
        ("state", answer["status"]),
        ("index", store["status"]),
        ("sources", f"{counts['total']} ({kinds})"),
        ("failed", store.get("failed_member_count") or None),
        ("ready", counts["retrievable"]),
        ("pending", store["pending_member_count"]),
        ("size", size(answer["bytes"]) if "bytes" in answer else None),
        ("to be split again", _left(answer) or None),
        ("chunk size", (answer["chunking"] or {}).get("target")),
        ("metadata", "  ".join(f"{key}={value}" for key, value in (answer.get("metadata") or {}).items())),
        ("revision", answer.get("revision")),
        ("created", answer.get("createdAt")),
    ]
    call.console.show(answer, lambda: fields(call.console, pairs))


@command(app, "archive", "svc bucket archive handbook", "svc bucket archive --restore handbook")
def archive(
    call: Invocation,
    bucket: BucketArgument,
    restore: Annotated[bool, typer.Option("--restore", help="Make an archived bucket active again.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Exclude a bucket from uploads and searches, without deleting anything in it."""
    status: Literal["active", "archived"] = "active" if restore else "archived"
    with call.client() as client:
        answer = client.bucket(bucket) if dry_run else client.update_bucket(bucket, status=status)
    text = f"would be {status}: {answer['slug']}" if dry_run else f"{answer['slug']} is {status}"
    call.console.show({**answer, "dry_run": True} if dry_run else answer, lambda: text)
    if not restore and not dry_run:
        call.console.next_step(f"svc bucket archive --restore {answer['slug']}")


@command(app, "export", "svc bucket export handbook handbook.tar")
def export(
    call: Invocation,
    bucket: BucketArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file to write. If it exists, it is replaced when the export is complete."
        ),
    ],
    no_vectors: Annotated[
        bool,
        typer.Option("--no-vectors", help="Leave out the vectors for search by meaning, so that the file is smaller."),
    ] = False,
    timeout: TimeoutOption = None,
) -> None:
    """Write everything in a bucket to one file.

    The command first waits until nothing in the bucket is being indexed. Two exports of the same content are equal,
    byte for byte.
    """
    from svc_cli.commands.nouns.bucket_exports import export_bucket

    export_bucket(call, bucket, file, timeout, no_vectors=no_vectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketImportFlags:
    """The options of `bucket import`."""

    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that `svc bucket export` wrote.")]
    bucket: Annotated[
        str | None,
        typer.Option(
            "--bucket", "-b", metavar="BUCKET", help="The bucket, by slug or id.  [default: the bucket that FILE names]"
        ),
    ] = None
    as_new: Annotated[
        bool,
        typer.Option("--as-new", help="Add a source even if the bucket has a different source with the same title."),
    ] = False
    keep_mapping: Annotated[
        bool,
        typer.Option(
            "--keep-mapping",
            help="Keep the names of the synced folders that sources came from. A later sync of such a folder can "
            "then update or remove its sources.",
        ),
    ] = False
    no_vectors: Annotated[
        bool,
        typer.Option(
            "--no-vectors",
            help="Compute all vectors again instead of using those in FILE. Use this if you don't trust FILE.",
        ),
    ] = False
    wait: WaitOption = None
    timeout: TimeoutOption = None
    jobs: JobsOption = None
    no_create: NoCreateOption = False
    dry_run: DryRunOption = False


@command(
    app,
    "import",
    "svc bucket import handbook.tar",
    "svc bucket import handbook.tar -b handbook-2026 --dry-run",
)
def import_file(call: Invocation, flags: BucketImportFlags) -> Exit:
    """Import the contents of an exported bucket into a bucket, and wait until they are searchable.

    The whole file is checked first. If a part of it is damaged or invalid, nothing is changed. If you run the command
    again, nothing is added twice.
    """
    from svc_cli.commands.nouns.bucket_exports import import_bucket

    return import_bucket(call, flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFlags:
    """The options of `bucket rm`."""

    buckets: Annotated[list[str], typer.Argument(metavar="BUCKET", help="The buckets, by slug or id.")]
    force: Annotated[bool, typer.Option("--force", help="Delete without asking.")] = False
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the buckets are deleted; exit with code 3 if a deletion fails.")
    ] = False
    timeout: TimeoutOption = None
    dry_run: DryRunOption = False


@command(app, "rm", "svc bucket rm drafts", "svc bucket rm drafts old-drafts --force --wait")
def rm(call: Invocation, flags: RemoveFlags) -> Exit:
    """Delete buckets, and those of their sources that are in no other bucket."""
    call.limit_time(flags.timeout)
    with call.client() as client:
        answers: list[JsonMapping] = []
        with accounted(len(flags.buckets)) as outcomes:
            named_once = {each["id"]: each for each in (client.bucket(name, members=False) for name in flags.buckets)}
            found = list(named_once.values())
            if flags.dry_run:
                return _show_deletions(call, [{**bucket, "dry_run": True} for bucket in found])
            if not flags.force:
                named = ", ".join(
                    f"{bucket['slug']} ({counted(bucket['counts']['total'], 'source')})" for bucket in found
                )
                call.confirm(f"delete {named}, with every source that is in no other bucket?")
            outcomes |= {bucket["slug"]: False for bucket in found}
            for bucket in found:
                answers.append(client.delete_bucket(bucket["id"], force=True))
                outcomes[bucket["slug"]] = True
        if flags.wait:
            answers = [_wait_for_deletion(call, client, answer) for answer in answers]
    code = _show_deletions(call, answers)
    for answer in answers:
        if answer["status"] == "deleting":
            call.console.next_step(f"svc bucket show {answer['slug']}")
    return code


def _wait_for_deletion(call: Invocation, client: "Client", answer: JsonMapping) -> JsonMapping:
    """Wait for the deletion task, and return the answer with its outcome."""
    with call.progress() as progress:
        progress.begin("deleting", answer["deletion"]["total"])
        task = wait_for_task(client, answer["deletion"]["task_id"], call.deadline.within(None), progress.update)
    if task["status"] == "failed":
        return {**answer, "status": "active", "deletion": task["deletion"], "error": whole_error(task["error"])}
    return {**answer, "status": "deleted", "deletion": task["deletion"]}


def _show_deletions(call: Invocation, answers: list[JsonMapping]) -> Exit:
    code = Exit.FAILED if any(answer.get("error") for answer in answers) else Exit.DONE
    value = {"v": 1, "type": "bucket.deletions", "items": answers, "exit_code": int(code)}
    lines = []
    for answer in answers:
        slug, deletion = answer["slug"], answer.get("deletion") or {}
        if answer.get("dry_run"):
            lines.append(f"would delete {slug} and up to {counted(answer['counts']['total'], 'source')}")
        elif answer["status"] == "deleting":
            lines.append(f"deleting {slug}: {counted(deletion['total'], 'source')}; no search finds them any more")
        elif answer["status"] == "active":
            lines.append(f"{slug} was not deleted completely and is active again: {answer['error']['message']}")
        else:
            gone, stay = deletion["deleted"], deletion["detached"]
            lines.append(f"deleted {slug}: {counted(gone, 'source')}, {stay} stay in other buckets")
    call.console.show(answers[0] if len(answers) == 1 else value, lambda: "\n".join(lines))
    return code
