"""Verifying: check the invariants of a data directory whose daemon is not running, without changing anything.

Work that the next start or the workers will do anyway is not a problem: an open task, a due sync, a deleted source that
is not cleared yet, moved-aside bytes that have a row again, a title that the index does not have yet. Files without an
owner are reported.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from svc_daemon.core import ids, readiness
from svc_daemon.core.problems import LOG_BYTES, Problem, Repair
from svc_daemon.databases.contract import Connection
from svc_daemon.operations.installations import INSTALLATION_ID
from svc_daemon.provider.inspections import InspectedDocument, Inspector
from svc_daemon.store import checks, teams, tombstones, uploads
from svc_daemon.store.asides import DataFolders
from svc_daemon.store.facts import find_fact
from svc_daemon.store.migrations import check_current
from svc_daemon.store.sources import SourceRow
from svc_daemon.wire.codes import SourceErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """A data directory that no other process changes during the checks."""

    state: Connection
    #: Size of the state database's write-ahead log.
    log_bytes: int
    folders: DataFolders
    #: None leaves the indexes out.
    inspector: Inspector | None


@dataclass(frozen=True, slots=True)
class DirectoryFindings:
    """The problems found in a data directory, and how much of it was checked."""

    problems: list[Problem]
    #: How many objects of each kind were checked.
    counts: Counter[str] = field(default_factory=lambda: Counter(sources=0, blobs=0, parts=0, documents=0))
    #: Files that were moved aside and can't be restored, because no index knows their bucket.
    aside: list[Path] = field(default_factory=list)


def verify(directory: Directory, *, read_data: bool) -> DirectoryFindings:
    """Check everything; with `read_data`, also every stored byte and every word of the index.

    Raises StorageError if the database is of another release.
    """
    damage = checks.check_file(directory.state)
    if damage:
        # Nothing else can be checked or repaired: a backup is needed.
        return DirectoryFindings(damage)
    check_current(directory.state)
    if unreadable := checks.check_words(directory.state):
        return DirectoryFindings(unreadable)
    if find_fact(directory.state, INSTALLATION_ID) is None and (stored := directory.folders.blobs.list_ids()):
        message = (
            f"the state database is new, and knows none of the {len(stored)} stored files: put back a copy of the one"
        )
        return DirectoryFindings([Problem("I10", f"{message} that it took the place of")])
    findings = DirectoryFindings([])
    if directory.log_bytes >= LOG_BYTES:
        message = f"the log of the state database has {directory.log_bytes} bytes"
        findings.problems.append(Problem("I10", message, Repair.TRIM_LOG))
    findings.problems.extend(checks.check_references(directory.state))
    findings.problems.extend(checks.check_rows(directory.state))
    findings.problems.extend(checks.check_agents(directory.state))
    unowned = _check_blobs(directory, findings, read_data=read_data)
    findings.problems.extend(_check_leftovers(directory, findings.counts))
    team_ids = {
        *teams.list_team_ids(directory.state),
        *(directory.inspector.list_teams() if directory.inspector else ()),
    }
    for team_id in sorted(team_ids):
        _check_team(directory, findings, team_id, unowned, read_data=read_data)
    for path in sorted(path for paths in unowned.values() for path in paths):
        if path == directory.folders.blobs.path(path.name):
            message = f"blob {path.name} has no source, and no search index knows its bucket"
            findings.problems.append(Problem("I4", message, Repair.SET_ASIDE, {"blob": path.name}))
        else:
            findings.aside.append(path)
    return findings


def _check_blobs(directory: Directory, findings: DirectoryFindings, *, read_data: bool) -> dict[str, list[Path]]:
    """Check the blobs. Returns the files without a row, by the source id in the file name, or by the whole name."""
    unowned = directory.folders.asides.find_all()
    unowned |= {name: directory.folders.blobs.path(name) for name in _names(directory.folders.blobs.list_ids)}
    for source in checks.list_every_source(directory.state):
        findings.counts["sources"] += 1
        path = unowned.pop(source.blob_name, directory.folders.blobs.path(source.blob_name))
        findings.counts["blobs"] += path.exists()
        findings.problems.extend(_check_bytes(path, source, read_data=read_data))
    # Don't report files that the next start handles: it removes deleted blobs, and moves back files of open uploads.
    for name in unowned.keys() & (
        tombstones.list_deleted_blobs(directory.state) | uploads.list_open_ids(directory.state)
    ):
        del unowned[name]
    named: dict[str, list[Path]] = {}
    for name, path in unowned.items():
        named.setdefault(ids.source_of(name) or name, []).append(path)
    return named


def _check_bytes(path: Path, source: SourceRow, *, read_data: bool) -> Iterator[Problem]:
    """Check the bytes of a source. They may have been moved aside; the next start moves them back."""
    broken = partial(Problem, repair=Repair.FAIL_SOURCE, about=_about(source))
    if path.is_symlink() or not path.is_file():
        known = source.error or {}
        if source.status != readiness.FAILED or known.get("code") != SourceErrorCode.STORED_BYTES_LOST:
            yield broken("I3", f"source {source.id} has no blob")
        return
    blob, size_bytes = f"blob {source.blob_name} of source {source.id}", path.stat().st_size
    if size_bytes != source.size_bytes:
        yield broken("I2", f"{blob} has {size_bytes} bytes, its row has {source.size_bytes}")
    elif read_data:
        try:
            with path.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            yield broken("I2", f"{blob} can't be read: {error.strerror}")
            return
        if actual != source.sha256:
            yield broken("I2", f"{blob} hashes to {actual}, its row has {source.sha256}")


def _check_leftovers(directory: Directory, counts: Counter[str]) -> Iterator[Problem]:
    """Find temporary files of uploads that nothing will continue."""
    for name in sorted(_names(directory.folders.blobs.list_staged)):
        yield Problem("I4", f"staging file {name} belongs to no upload", Repair.REMOVE_FILE, {"staged": name})
    parts, open_ids = _names(directory.folders.parts.list_ids), uploads.list_open_ids(directory.state)
    counts["parts"] = len(parts)
    for name in sorted(parts - open_ids):
        is_known = uploads.find_upload(directory.state, name) is not None
        repair = Repair.REMOVE_FILE if is_known else Repair.SET_ASIDE
        yield Problem("I4", f"part {name} has no open session", repair, {"part": name})


def _names(list_names: Callable[[], Iterable[str]]) -> set[str]:
    """Return the names in a folder; a missing folder counts as empty."""
    try:
        return set(list_names())
    except FileNotFoundError:
        return set()


def _check_team(
    directory: Directory, findings: DirectoryFindings, team_id: str, unowned: dict[str, list[Path]], *, read_data: bool
) -> None:
    inspector = directory.inspector
    if inspector is None or team_id in checks.list_rebuilding(directory.state):
        # A task is rebuilding the index, so missing documents are expected.
        return
    has_index = team_id in inspector.list_teams()
    found_wrong = inspector.check_index(team_id, read_data=read_data) if has_index else []
    findings.problems.extend(found_wrong)
    broken = {problem.invariant for problem in found_wrong if problem.repair is Repair.REBUILD_INDEX}
    if "I10" in broken:
        return
    documents = inspector.list_documents(team_id)
    if broken:
        # The index will be rebuilt; until then, only it knows which sources unowned bytes belonged to.
        documents = {source_id: document for source_id, document in documents.items() if source_id in unowned}
    findings.counts["documents"] += len(documents)
    known = set(checks.list_uncleaned(directory.state))
    waiting, deleting = checks.list_awaiting_index(directory.state), checks.list_deleting_buckets(directory.state)
    for source in checks.list_every_source(directory.state, team_id):
        known.add(source.id)
        if source.status == readiness.ACTIVE and not broken:
            found = documents.get(source.id)
            findings.problems.extend(_check_document(source, found))
            if found is not None and source.id not in waiting:
                findings.problems.extend(_check_words(source, found, deleting))
    for source_id in sorted(documents.keys() - known):
        buckets = set(documents[source_id].bucket_ids) - deleting
        findings.problems.extend(_stray(team_id, documents[source_id], buckets, unowned))


def _stray(
    team_id: str, found: InspectedDocument, buckets: set[str], unowned: dict[str, list[Path]]
) -> Iterator[Problem]:
    """Report a document without a source: a leftover of a deletion, unless its bytes are stored."""
    about = {"source_id": found.source_id, "team_id": team_id}
    paths = unowned.get(found.source_id, [])
    if not paths:
        message = f"the index of {team_id} has a document of {found.source_id}, which is not a source"
        yield Problem("I8", message, Repair.REMOVE_DOCUMENT, about)
    elif len(paths) == 1 and buckets:
        # A repair is possible only if there is a single file and a bucket to add it to.
        (path,) = unowned.pop(found.source_id)
        message = f"blob {path.name} has no source, and the index of {team_id} has it as {found.title!r} in"
        yield Problem("I4", f"{message} {', '.join(sorted(buckets))}", Repair.RECOVER, about | {"file": str(path)})


def _check_document(source: SourceRow, found: InspectedDocument | None) -> Iterator[Problem]:
    """Check that an active source is in the index, with a valid generation and in every bucket where it is active."""
    if found is None or found.generation not in source.generations:
        has = "is not in the index" if found is None else f"is in the index as generation {found.generation}"
        message = f"source {source.id} is active in generation {source.generation}, and {has}"
        yield Problem("I6", message, Repair.QUEUE_SOURCE, _about(source))
        return
    chunks = (source.extraction or {}).get("chunks")
    # A source that is being rechunked may have new chunks in the index before its row is updated.
    if found.chunks != chunks and not source.rechunk:
        message = f"source {source.id} was read into {chunks} chunks, the index has {found.chunks}"
        yield Problem("I7", message, Repair.QUEUE_SOURCE, _about(source))
    synced = {bucket for bucket in source.searched_places if source.places[bucket] == readiness.ACTIVE}
    for bucket_id in sorted(synced - set(found.bucket_ids)):
        message = f"source {source.id} is active in bucket {bucket_id}, and no search of that finds it"
        yield Problem("I6", message, Repair.SYNC_SOURCE, _about(source) | {"bucket_id": bucket_id})


def _check_words(source: SourceRow, found: InspectedDocument, deleting: set[str]) -> Iterator[Problem]:
    """Check that the index has the source's title, and doesn't list the source in buckets that it is not in.

    The caller skips sources whose changes have not been written to the index yet.
    """
    if source.sync_status == readiness.ACTIVE or not source.places:
        for bucket_id in sorted(set(found.bucket_ids) - set(source.searched_places) - deleting):
            message = f"source {source.id} is not in bucket {bucket_id}, and the index has it there"
            yield Problem("I8", message, Repair.UPDATE_INDEX, _about(source) | {"bucket_id": bucket_id})
    if found.title != source.title.encode(errors="replace").decode():
        message = f"source {source.id} is called {source.title!r}, and the index has it as {found.title!r}"
        yield Problem("I6", message, Repair.UPDATE_INDEX, _about(source))


def _about(source: SourceRow) -> dict[str, str]:
    return {"source_id": source.id, "team_id": source.team_id, "blob": source.blob_name}
