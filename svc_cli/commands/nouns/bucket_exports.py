"""`svc bucket export` and `svc bucket import`."""

import time
from functools import partial
from pathlib import Path

from svc_cli.commands.daily.upload import check_jobs, stream_item
from svc_cli.commands.invocations import Invocation
from svc_cli.commands.nouns.buckets import BucketImportFlags
from svc_cli.commands.reports import show_report
from svc_cli.console import clean
from svc_cli.exits import Exit
from svc_cli.exports.exporting import write_export
from svc_cli.exports.importing import BucketImport, OpenedExport, VectorSender, open_export, plan_import
from svc_cli.exports.manifests import check_limits
from svc_cli.render import counted, size
from svc_cli.transfer.queues import TransferQueue
from svc_cli.transfer.reports import Report, elapsed_ms
from svc_cli.transfer.runs import TransferRun, resumable
from svc_cli.transfer.uploads import find_or_create, look, send_entries


@resumable
def export_bucket(call: Invocation, bucket: str, file: str, timeout: str | None, *, no_vectors: bool) -> None:
    """Write the bucket to the file, and report its content."""
    began_s = time.monotonic()
    call.limit_time(timeout)
    with call.client() as client, call.progress() as progress:
        exported = write_export(client, bucket, file, progress, with_vectors=not no_vectors)
    manifest = exported.manifest
    value = {
        "v": 1,
        "type": "bucket.export",
        "bucket": manifest.bucket.slug,
        "file": file,
        "sha256": exported.sha256,
        "size_bytes": exported.size_bytes,
        "sources": len(manifest.sources),
        "questions": len(manifest.questions),
        "without_text": sum(source.text is None for source in manifest.sources),
        "model": manifest.model.name if manifest.model else None,
        "without_vector": exported.without_vector,
        "duration_ms": elapsed_ms(began_s),
        "exit_code": int(Exit.DONE),
    }
    kinds = [counted(len(manifest.sources), "source"), counted(len(manifest.questions), "written answer")]
    text = f"wrote {clean(file)}: {', '.join(kinds if manifest.questions else kinds[:1])}, {size(exported.size_bytes)}"
    call.console.show(value, lambda: text)
    if exported.without_vector:
        lacking = counted(exported.without_vector, "passage")
        call.console.note(f"{lacking} had no vector yet; an import computes what the file lacks.")
    call.console.next_step(f"svc bucket import {file} --base-url URL")


@resumable
def import_bucket(call: Invocation, flags: BucketImportFlags) -> Exit:
    """Check the file, add the sources that the bucket lacks, and report the result for each source."""
    began_s = time.monotonic()
    call.limit_time(flags.timeout)
    with call.progress() as progress:
        opened = open_export(Path(flags.file), progress)
        bucket = flags.bucket or opened.archive.manifest.bucket.slug
        report = Report(kind="bucket.import", bucket=bucket, began_s=began_s, is_dry=flags.dry_run)
        with call.client() as client:
            run = TransferRun(client, progress, report, partial(stream_item, call, "bucket.import.item"))
            labels, sender = _add_missing(call, run, opened, flags)
    report.end(labels)
    report.vectors = {"found": sender.found, "kept": sender.kept} if sender.found else None
    return show_report(call.console, report, _describe_vectors(sender))


def _describe_vectors(sender: VectorSender) -> str:
    """Describe how many vectors of the export the service kept; empty if the export has none."""
    if not sender.found:
        return ""
    if sender.kept == sender.found:
        return f"the service kept {counted(sender.kept, 'vector')} of the export, and uses those that pass its checks."
    found = counted(sender.found, "vector")
    return f"the service kept {sender.kept} of {found} of the export, and computes the others if it has a model."


def _add_missing(
    call: Invocation, run: TransferRun, opened: OpenedExport, flags: BucketImportFlags
) -> tuple[list[str], VectorSender]:
    """Send the sources that the bucket lacks. Returns the label of each source in the export, and the VectorSender."""
    client, name, manifest = run.client, run.report.bucket, opened.archive.manifest
    jobs, limits = check_jobs(call.settings.get("upload.jobs", flags.jobs)), client.limits()["limits"]
    check_limits(manifest, limits)
    client.pace_creates(limits["creates_per_second"]["value"])
    note, fields, may_create = call.console.note, manifest.bucket.fields(), not flags.no_create
    bucket = find_or_create(client, name, note, may_create=may_create, is_dry=flags.dry_run, fields=fields)
    known = look(client, bucket)
    if bucket and not bucket.get("created") and bucket["chunking"] != fields.get("chunking"):
        note(f"{name} splits documents into passages of other sizes than the exported bucket did.")
    plan = plan_import(manifest, [each for some in known.by_title.values() for each in some], as_new=flags.as_new)
    model = None if flags.no_vectors else manifest.model
    sender = VectorSender(client, known.bucket_id or name, model)
    importing = BucketImport(
        client=client,
        bucket_id=known.bucket_id or name,
        opened=opened,
        vectors=sender,
        keeps_mappings=flags.keep_mapping,
        is_dry=flags.dry_run,
    )
    run.progress.begin("sending", len(manifest.sources))
    with run.ended():
        send_entries(TransferQueue(run, importing.bucket_id, jobs, "batch"), importing.files(plan))
    if not run.report.stopped_by:
        run.progress.begin("adding questions", len(questions := importing.questions(plan)))
        run.do_all(questions, jobs)
    if not flags.dry_run and call.settings.get("wait", flags.wait) == "ready":
        run.finish(call.deadline.timeout_s)
    return [each.label for each in plan], sender
