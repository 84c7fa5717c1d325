"""Moves stored files that have no database row into a separate folder at startup, and deletes them some days later.

A file without a row may be left over from a crash. The file may also be the only copy of an upload whose row was lost
by a restore.
"""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from svc_daemon.core import ids
from svc_daemon.core.problems import lost_files
from svc_daemon.databases.contract import Connection
from svc_daemon.process.contexts import Context
from svc_daemon.provider.errors import ProviderError
from svc_daemon.store.files.contract import FileCounts
from svc_daemon.store.files.inspections import DataFolders
from svc_daemon.store.rows import sessions, tombstones
from svc_daemon.store.rows.sources import sources

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Owners:
    """What the state database knows about stored files."""

    #: Size of each source's stored file in bytes, by file name.
    sizes: dict[str, int]
    #: Names of files that were deleted on purpose.
    deleted: set[str]
    open_ids: set[str]
    #: Ids of upload sessions that have ended, but whose bytes are still stored.
    ended_ids: set[str]


async def sort_leftovers(context: Context) -> Counter[str]:
    """Delete or move stored files without a database row. Returns the number of files by action, such as `set aside`.

    Call this only at startup, because a running upload's file has no row yet.
    """
    folders = context.stores
    if not isinstance(folders, DataFolders):
        return Counter()
    done = await asyncio.to_thread(_sort, context, folders)
    await count_set_aside_files(context)
    if moved := ", ".join(f"{number} {what}" for what, number in done.items() if number):
        log.info("stored files without a row: %s", moved)
    if warning := lost_files(context.set_aside_files.counts.files, context.set_aside_files.counts.known):
        log.warning("%s They are in %s.", warning, folders.set_aside_files.folder)
    return done


async def clear_held(context: Context) -> int:
    """Remove files whose deletion was delayed by a backup that was then killed. Returns how many."""
    folders = context.stores
    return await asyncio.to_thread(folders.blobs.removals.clear_held) if isinstance(folders, DataFolders) else 0


async def count_set_aside_files(context: Context) -> None:
    """Count the files that were moved aside, and how many of them a search index still has in a bucket."""
    found = await asyncio.to_thread(context.set_aside_files.list_names)
    source_ids = {source_id for name in found if (source_id := ids.source_of(name))}
    known = await asyncio.to_thread(_count_known, context, source_ids) if source_ids else 0
    context.set_aside_files.counts = FileCounts(len(found), known)


async def forget_set_aside_files(context: Context) -> int:
    """Delete files that were moved aside longer ago than the limit. Returns how many."""
    day = context.clock.timestamp(-86400 * context.limits.set_aside_days)[:10]
    removed = await asyncio.to_thread(context.set_aside_files.remove_before, day)
    if removed:
        log.info("%d files that were set aside before %s are removed", removed, day)
        await count_set_aside_files(context)
    return removed


def _sort(context: Context, folders: DataFolders) -> Counter[str]:
    aside = folders.set_aside_files.find_all()
    owners = context.read(partial(_read_owners, names=[*folders.parts.list_ids(), *aside]))
    done = Counter(removed=folders.blobs.clear_staging() + folders.blobs.removals.clear_held())
    for name, path in aside.items():
        done[_settle_aside(folders, owners, name, path)] += 1
    if done["taken back"]:
        # A file's new name must be durable before its old one may be gone.
        folders.blobs.sync_folder()
        folders.parts.sync_folder()
    parts = set(folders.parts.list_ids())
    kept_by_sessions = {_identity(folders.parts.path(part_id)) for part_id in parts - owners.ended_ids}
    for name in set(folders.blobs.list_ids()) - owners.sizes.keys():
        path = folders.blobs.path(name)
        # A blob that belongs to no source is not needed if an upload session has the same bytes.
        is_needless = name in owners.deleted or _identity(path) in kept_by_sessions
        done[_remove(folders, path) if is_needless else _set_aside(context, folders, path)] += 1
    for part_id in parts - owners.open_ids:
        path = folders.parts.path(part_id)
        done[_remove(folders, path) if part_id in owners.ended_ids else _set_aside(context, folders, path)] += 1
    if done["set aside"]:
        folders.set_aside_files.sync()
    return done


def _read_owners(connection: Connection, *, names: list[str]) -> _Owners:
    open_ids = sessions.list_open_ids(connection)
    return _Owners(
        sources.list_all_blobs(connection),
        tombstones.list_deleted_blobs(connection),
        open_ids,
        {name for name in names if name not in open_ids and sessions.find_session(connection, name)},
    )


def _settle_aside(folders: DataFolders, owners: _Owners, name: str, path: Path) -> str:
    """Move the file back if the database names it again, or delete it if its source was deleted or its upload ended.

    Returns what was done.
    """
    if name in owners.deleted or name in owners.ended_ids:
        return _remove(folders, path)
    is_blob = owners.sizes.get(name) == path.stat().st_size
    place = folders.blobs.path(name) if is_blob else folders.parts.path(name)
    if (is_blob or name in owners.open_ids) and not place.exists():
        path.rename(place)
        return "taken back"
    return "kept aside"


def _remove(folders: DataFolders, path: Path) -> str:
    for error in folders.blobs.removals.remove([path]).values():
        raise error
    return "removed"


def _set_aside(context: Context, folders: DataFolders, path: Path) -> str:
    try:
        # Use the later of the file's date and today, so that a slow clock doesn't cause an early deletion.
        written = datetime.fromtimestamp(path.lstat().st_mtime, UTC).date().isoformat()
        if folders.set_aside_files.put(path, max(written, context.clock.timestamp()[:10])):
            return "set aside"
        reason = "it or a folder is a link, or a file of its name is there"
    except OSError as error:
        reason = str(error)
    log.warning("%s can't be moved aside, and stays: %s", path, reason)
    return "left"


def _identity(path: Path) -> tuple[int, int]:
    """Return device and inode, which are equal for hard links to the same file."""
    found = path.lstat()
    return found.st_dev, found.st_ino


def _count_known(context: Context, source_ids: set[str]) -> int:
    known: set[str] = set()
    # Ask the search index for the teams, because a database restored from a backup may lack newer teams.
    for team_id in filter(ids.TEAM_ID.fullmatch, context.provider.list_teams()):
        try:
            documents = context.provider.list_documents(team_id)
            known |= source_ids & {document.source_id for document in documents if document.bucket_ids}
        except ProviderError as error:
            log.warning("the index of %s can't be searched for files that were set aside: %s", team_id, error)
    return len(known)
