"""Taking bytes in again that the state has lost: as the team's index names them, and never by a guess.

The index knows the source, its team, its title and its buckets; the bytes say their own size, hash and type. What else
was known of the source (tags, metadata, where it came from) is lost with the state.
"""

import asyncio
import hashlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection

from svc_daemon.core import ids, media_types, readiness
from svc_daemon.core.file_names import clean_file_name
from svc_daemon.errors import ServiceError
from svc_daemon.operations.contexts import Context
from svc_daemon.operations.ingest import add_source, queued_in
from svc_daemon.store.blobs import HEAD_BYTES
from svc_daemon.store.buckets import Bucket, create_bucket, find_bucket
from svc_daemon.store.sources import Source, find_source, update_content
from svc_daemon.store.teams import create_team, find_team
from svc_daemon.wire.tasks import INDEXING


async def take_in(context: Context, team_id: str, path: Path) -> None:
    """Make a source of the file, under the id in its name, and queue it to be read again.

    A team or a bucket that the state doesn't know any more is made under its id.
    """
    source_id = ids.source_of(path.name) or ""
    document = await asyncio.to_thread(context.provider.get_document, team_id, source_id)
    stored = await asyncio.to_thread(context.provider.get_text, team_id, source_id)
    if document is None or stored is None:
        return
    described = await asyncio.to_thread(_describe, context, path, team_id, stored.title)
    source = replace(described, generation=document.generation + 1)
    place = context.blobs.path(path.name)
    await context.blobs.run(lambda: path.rename(place))
    await context.blobs.run(context.blobs.sync_folder)
    await context.write(lambda connection: _add(connection, context, source, document.bucket_ids))


def _describe(context: Context, path: Path, team_id: str, title: str) -> Source:
    """What the bytes say of themselves. A title is the name of the file unless the sender had another."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        head = file.read(HEAD_BYTES)
    source_id, now = ids.source_of(path.name) or "", context.clock.timestamp()
    try:
        filename = clean_file_name(title)
    except ServiceError:
        filename = source_id
    return Source(
        id=source_id,
        team_id=team_id,
        type=readiness.FILE,
        title=title,
        filename=filename,
        content_type=media_types.detect(head, filename),
        size_bytes=path.stat().st_size,
        sha256=sha256,
        blob=None if path.name == source_id else path.name,
        task_id=context.ids.make(ids.TASK),
        task_type=INDEXING,
        task_status="queued",
        created_at=now,
        updated_at=now,
    )


def _add(connection: Connection, context: Context, source: Source, bucket_ids: Collection[str]) -> None:
    if find_source(connection, source.team_id, source.id) is not None:
        return
    if find_team(connection, source.team_id) is None:
        create_team(connection, source.team_id, _name(source.team_id), source.created_at)
    buckets = [
        find_bucket(connection, source.team_id, bucket_id) or _make_bucket(connection, source, bucket_id)
        for bucket_id in bucket_ids
    ]
    places = queued_in([bucket.id for bucket in buckets if bucket.status != readiness.DELETING])
    add_source(connection, context, replace(source, places=places))
    update_content(connection, source)


def _make_bucket(connection: Connection, source: Source, bucket_id: str) -> Bucket:
    """The id is the bucket's own; its name was in the state alone."""
    bucket = Bucket(
        id=bucket_id,
        team_id=source.team_id,
        slug=_name(bucket_id),
        name=_name(bucket_id),
        metadata={},
        created_at=source.created_at,
        updated_at=source.created_at,
    )
    create_bucket(connection, bucket)
    return bucket


def _name(known_id: str) -> str:
    return f"recovered-{known_id[-8:]}"
