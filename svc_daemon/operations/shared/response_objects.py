"""Converts database rows to the objects that the API returns."""

from dataclasses import replace
from typing import Any, cast

from svc_daemon.core import readiness
from svc_daemon.operations.shared.schedules import view_refresh
from svc_daemon.process.contexts import Context
from svc_daemon.process.indexing_scheduler import ScanPace
from svc_daemon.process.resource_shortages import OpenShortage
from svc_daemon.store.rows.buckets import BucketRow, Cascade, Census
from svc_daemon.store.rows.keys import KeyRow
from svc_daemon.store.rows.sources.search_candidates import FoundSource
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.store.rows.tasks import TaskRow
from svc_daemon.wire import buckets, services, sources, tasks
from svc_daemon.wire.light.error_codes import ErrorCode

#: What is shown of an extraction by a release that did not note it.
_UNNOTED: dict[str, Any] = {"title": None, "hidden": 0, "parts": {}}


def view_description(source: SourceRow | FoundSource) -> sources.ShownDescription:
    """Convert what describes a source wherever it is shown to its API form."""
    return {
        "title": source.title,
        "filename": source.filename,
        "tags": list(source.tags),
        "metadata": source.metadata,
        "source_url": source.source_url,
    }


def view_source(source: SourceRow, key: KeyRow) -> sources.Source:
    """Convert a source to its API form, without the buckets that the key can't reach."""
    facts, reachable = source.facts, key.reachable(source.places)
    return {
        "id": source.id,
        "object": "knowledge_file",
        "type": source.type,
        "status": source.status,
        "ready": source.ready,
        "ready_withheld_by": withheld_by(source),
        "bucket_sync_status": source.sync_status,
        **view_description(source),
        "content_type": source.content_type,
        "size_bytes": source.size_bytes,
        "sha256": source.sha256,
        "task": _refer_to_task(source),
        "mapping": source.mapping,
        "final_url": facts.get("final_url"),
        "http_status": facts.get("http_status"),
        "etag": facts.get("etag"),
        "last_modified": facts.get("last_modified"),
        "fetched_at": facts.get("fetched_at"),
        "refresh": view_refresh(source.refresh, source.refresh_due_at) if source.refresh else None,
        "question": facts.get("question"),
        "answer": facts.get("answer"),
        "alternate_questions": facts.get("alternate_questions"),
        "bucket_ids": reachable,
        # The replaced source is in one of these buckets, but maybe in no other one that the key can reach.
        "replaces": source.replaces if len(reachable) == len(source.places) else None,
        "error": source.error,
        "warnings": list(source.warnings),
        "extraction": cast("sources.ExtractionFacts", _UNNOTED | source.extraction) if source.extraction else None,
        "created_at": source.created_at,
        "updated_at": source.updated_at,
    }


def _refer_to_task(source: SourceRow) -> sources.TaskReference | None:
    if source.task_id is None or source.task_type is None or source.task_status is None:
        return None
    return sources.TaskReference(id=source.task_id, type=source.task_type, status=source.task_status)


def view_member(source: SourceRow, key: KeyRow, bucket_id: str) -> sources.SourceMember:
    """Convert a source to its API form for the list of a bucket's sources, with the sync status in that bucket."""
    sync_status = source.places[bucket_id]
    ready = readiness.is_ready(source.status, [sync_status], in_maintenance=source.in_maintenance)
    shown = view_source(source, key)
    return {**shown, "ready": ready, "bucket_sync_status": sync_status, "bucketSyncStatus": sync_status}


def view_bucket(bucket: BucketRow, census: Census) -> buckets.Bucket:
    if bucket.status == readiness.DELETING:
        # The remaining sources are no longer listed or found, so don't count them.
        census = replace(census, active_ids=(), retrievable=0, indexed=0)
    return buckets.Bucket(
        id=bucket.id,
        object="bucket",
        teamId=bucket.team_id,
        slug=bucket.slug,
        name=bucket.name,
        description=bucket.description,
        status=bucket.status,
        metadata=bucket.metadata,
        chunking=bucket.chunking,
        knowledgeIds=list(census.active_ids),
        memberCount=census.indexed,
        counts=buckets.BucketCounts(
            total=census.total,
            file=census.types.get(readiness.FILE, 0),
            intents=0,
            website=census.types.get(readiness.PAGE, 0),
            qa=census.types.get(readiness.QA, 0),
            retrievable=census.retrievable,
        ),
        bucketStore=view_bucket_store(census),
        bytes=census.size_bytes,
        revision=census.revision,
        lastDeleteError=bucket.last_delete_error,
        createdAt=bucket.created_at,
        updatedAt=bucket.updated_at,
    )


def view_bucket_store(census: Census) -> buckets.BucketStore:
    store = buckets.BucketStore(
        status=readiness.store_status(
            census.indexed, census.pending, census.failed_syncs, in_maintenance=census.in_maintenance
        ),
        member_count=census.total,
        indexed_member_count=census.indexed,
        pending_member_count=census.pending,
        failed_member_count=census.failed,
        rechunking_member_count=census.rechunking,
        older_reader_member_count=census.older_reader,
        stale_member_count=census.stale,
    )
    if census.scans:
        store["scan_member_count"], store["scan_pages_left"] = census.scans, census.scan_pages
    if census.unread_scans:
        store["unread_scan_member_count"] = census.unread_scans
    return store


def view_shortage(shortage: OpenShortage | None) -> sources.Shortage | None:
    if shortage is None:
        return None
    return sources.Shortage(lack=shortage.kind.value, message=shortage.message, since=shortage.since)


def view_engines(context: Context) -> list[services.EngineState]:
    """Return the states of a cluster's engines as this node sees them; empty for a data directory."""
    return [
        services.EngineState(
            name=state.name, state="away" if state.message else "ok", message=state.message, since=state.since
        )
        for state in context.engines.now.values()
    ]


def view_deletion(cascade: Cascade) -> buckets.Deletion:
    return buckets.Deletion(
        task_id=cascade.task_id,
        total=cascade.total,
        deleted=cascade.deleted,
        detached=cascade.detached,
        failed=cascade.failed,
    )


def view_task(task: TaskRow, cascade: Cascade | None = None, pace: ScanPace | None = None) -> tasks.Task:
    """Convert a task to its API form. `cascade` is the progress of a bucket's deletion, `pace` that of scans."""
    progress = tasks.TaskProgress(stage=task.stage, chunks_done=task.chunks_done, chunks_total=task.chunks_total)
    if task.pages_total is not None:
        left = task.pages_total - task.pages_done
        progress["pages_done"], progress["pages_total"] = task.pages_done, task.pages_total
        progress["seconds_left"] = pace.seconds_left(left) if pace and not task.finished_at else None
    return tasks.Task(
        id=task.id,
        object="task",
        type=task.type,
        status=task.status,
        source_id=task.source_id,
        bucket_id=cascade.bucket_id if cascade else None,
        deletion=view_deletion(cascade) if cascade else None,
        attempt=task.attempt,
        max_attempts=task.max_attempts,
        progress=progress,
        error=task.error,
        next_attempt_at=task.next_attempt_at,
        created_at=task.created_at,
        started_at=task.started_at,
        finished_at=task.finished_at,
    )


def withheld_by(source: SourceRow) -> str | None:
    """Return `team_store_maintenance` if a rebuild of the index keeps the source from being ready."""
    is_waiting = source.in_maintenance and source.status != readiness.FAILED
    return str(ErrorCode.TEAM_STORE_MAINTENANCE) if is_waiting else None
