"""Stored bytes without a row, sorted at the start: some are deleted, some moved aside, some taken back.

A kill leaves bytes that were never acknowledged. An older state (a restored copy, a log that lost its end) leaves bytes
that were acknowledged, and they may be the only copy. The folders don't show which is which, so both are moved aside
and kept for days. Bytes that were deleted on purpose have a tombstone, or belong to a session that has ended, and are
deleted. Bytes aside are moved back when the state names them again.
"""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from sqlite3 import Connection

from svc_daemon.core import ids
from svc_daemon.core.problems import lost_files
from svc_daemon.process.contexts import Context
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store import sources, tombstones, uploads
from svc_daemon.store.asides import Tally

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Owners:
    """What the state knows of stored bytes."""

    #: The size of each source's bytes, by their name.
    sizes: dict[str, int]
    #: Names of bytes that were deleted on purpose.
    deleted: set[str]
    open_ids: set[str]
    #: Sessions that have ended, of those that have bytes.
    ended_ids: set[str]


async def sort_leftovers(context: Context) -> Counter[str]:
    """Remove or move everything without a row. Returns how many files were `removed`, `taken back`, `set aside`.

    Only at the start: while uploads run, a blob is stored before its row.
    """
    done = await asyncio.to_thread(_sort, context)
    await count_asides(context)
    if moved := ", ".join(f"{number} {what}" for what, number in done.items() if number):
        log.info("stored files without a row: %s", moved)
    if warning := lost_files(context.asides.tally.files, context.asides.tally.known):
        log.warning("%s They are in %s.", warning, context.asides.folder)
    return done


async def count_asides(context: Context) -> None:
    """Count the files that lie aside, and those of them that a team's index knows with their bucket."""
    found = await asyncio.to_thread(context.asides.find_all)
    source_ids = {source_id for name in found if (source_id := ids.source_of(name))}
    known = await asyncio.to_thread(_count_known, context, source_ids) if source_ids else 0
    context.asides.tally = Tally(len(found), known)


async def forget_asides(context: Context) -> int:
    """Delete what was moved aside too long ago. Returns how many files."""
    day = context.clock.timestamp(-86400 * context.limits.set_aside_days)[:10]
    removed = await asyncio.to_thread(context.asides.remove_before, day)
    if removed:
        log.info("%d files that were set aside before %s are removed", removed, day)
        await count_asides(context)
    return removed


def _sort(context: Context) -> Counter[str]:
    aside = context.asides.find_all()
    owners = context.read(partial(_read_owners, names=[*context.parts.list_ids(), *aside]))
    done = Counter(removed=context.blobs.clear_staging())
    for name, path in aside.items():
        done[_settle_aside(context, owners, name, path)] += 1
    parts = set(context.parts.list_ids())
    kept_by_sessions = {_identity(context.parts.path(part_id)) for part_id in parts - owners.ended_ids}
    for name in set(context.blobs.list_ids()) - owners.sizes.keys():
        path = context.blobs.path(name)
        # A finished part becomes a blob by a second name: without a row, the session still has the first.
        is_needless = name in owners.deleted or _identity(path) in kept_by_sessions
        done[_remove(path) if is_needless else _set_aside(context, path)] += 1
    for part_id in parts - owners.open_ids:
        path = context.parts.path(part_id)
        done[_remove(path) if part_id in owners.ended_ids else _set_aside(context, path)] += 1
    return done


def _read_owners(connection: Connection, *, names: list[str]) -> _Owners:
    open_ids = uploads.list_open_ids(connection)
    return _Owners(
        sources.list_all_blobs(connection),
        tombstones.list_deleted_blobs(connection),
        open_ids,
        {name for name in names if name not in open_ids and uploads.find_upload(connection, name)},
    )


def _settle_aside(context: Context, owners: _Owners, name: str, path: Path) -> str:
    """Move files back that have a row again, and delete those that were deleted on purpose since."""
    if name in owners.deleted or name in owners.ended_ids:
        return _remove(path)
    is_blob = owners.sizes.get(name) == path.stat().st_size
    place = context.blobs.path(name) if is_blob else context.parts.path(name)
    if (is_blob or name in owners.open_ids) and not place.exists():
        path.rename(place)
        return "taken back"
    return "kept aside"


def _remove(path: Path) -> str:
    path.unlink(missing_ok=True)
    return "removed"


def _set_aside(context: Context, path: Path) -> str:
    try:
        # A clock that is behind (at a boot without a battery) must not make it look old already.
        written = datetime.fromtimestamp(path.lstat().st_mtime, UTC).date().isoformat()
        if context.asides.put(path, max(written, context.clock.timestamp()[:10])):
            return "set aside"
        reason = "it or a folder is a link, or a file of its name is there"
    except OSError as error:
        reason = str(error)
    log.warning("%s can't be moved aside, and stays: %s", path, reason)
    return "left"


def _identity(path: Path) -> tuple[int, int]:
    """Two names of one file have the same."""
    found = path.lstat()
    return found.st_dev, found.st_ino


def _count_known(context: Context, source_ids: set[str]) -> int:
    known: set[str] = set()
    # A team that was made after the state was copied is in no row.
    for team_id in filter(ids.TEAM_ID.fullmatch, context.provider.list_teams()):
        try:
            documents = context.provider.list_documents(team_id)
            known |= source_ids & {document.source_id for document in documents if document.bucket_ids}
        except ProviderError as error:
            log.warning("the index of %s can't be asked what was set aside: %s", team_id, error)
    return len(known)
