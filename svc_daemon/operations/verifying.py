"""Checks an installation for damaged, missing or inconsistent data, without changing anything.

In a running cluster, changes during the check may look like damage. So the caller checks twice, and `confirmed` keeps
the problems that were found both times.
"""

import errno
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from svc_daemon.core import ids, readiness
from svc_daemon.core.problems import LOG_BYTES, Problem, Repair
from svc_daemon.databases.contract import Connection
from svc_daemon.errors import StorageError
from svc_daemon.operations.installations import INSTALLATION_ID
from svc_daemon.provider.contract import InspectedDocument, Inspector
from svc_daemon.store import checks
from svc_daemon.store.checks import BlobRow
from svc_daemon.store.files.inspections import BytesInspector, StoredBytes
from svc_daemon.store.migrations import check_current
from svc_daemon.store.rows import sessions, teams, tombstones
from svc_daemon.store.rows.moves import find_arrival
from svc_daemon.store.rows.sources.sources import SourceRow
from svc_daemon.store.rows.teams import find_fact
from svc_daemon.wire.light.error_codes import SourceErrorCode
from svc_daemon.wire.light.parsing import parse_json

T = TypeVar("T")

#: Number of sources read in one query.
PAGE_ROWS = 1000


class Snapshots(Protocol):
    """A state database that can be read in snapshots."""

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one snapshot of the database, and return the result. `work` must not write."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The stores of an installation, opened for a check."""

    state: Snapshots
    bytes: BytesInspector
    #: None if the team indexes are not checked.
    index: Inspector | None
    #: Size in bytes of the state database's write-ahead log; 0 for a database server.
    log_bytes: int = 0
    #: Whether the stores are on servers, which other nodes and installations may use too.
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class InstallationFindings:
    """The problems of an installation, and how much was checked."""

    problems: list[Problem]
    #: How many objects of each kind were checked.
    counts: Counter[str] = field(default_factory=lambda: Counter(sources=0, blobs=0, parts=0, documents=0))
    #: Stored files that neither the database nor a search index knows. They are deleted after some days.
    aside: list[StoredBytes] = field(default_factory=list)


def verify(inspection: Inspection, *, read_data: bool) -> InstallationFindings:
    """Check the installation. If `read_data` is set, also read every stored file and the whole index.

    Raises StorageError if the database has another release's schema, or if only a part of the installation was moved
    here.
    """
    blobs = dict(inspection.bytes.list_blobs())
    # A database server checks its own files, and its schema was checked when the connection was opened.
    if not inspection.is_shared:
        if damage := inspection.state.read(checks.check_file):
            # A damaged database must be restored before anything else can be checked.
            return InstallationFindings(damage)
        inspection.state.read(check_current)
    if unreadable := inspection.state.read(checks.check_words):
        return InstallationFindings(unreadable)
    if inspection.state.read(find_arrival) is not None:
        raise StorageError("Only a part of an installation was moved here: run the same `svc-daemon move` again.")
    if inspection.state.read(partial(find_fact, name=INSTALLATION_ID)) is None and blobs:
        message = f"the state database is new, and knows none of the {len(blobs)} stored files: put back a copy of the"
        return InstallationFindings([Problem("I10", f"{message} one that it took the place of")])
    findings = InstallationFindings([])
    if inspection.log_bytes >= LOG_BYTES:
        message = f"the log of the state database has {inspection.log_bytes} bytes"
        findings.problems.append(Problem("I10", message, Repair.TRIM_LOG))
    of_rows = (checks.check_references, checks.check_rows, checks.check_agents)
    findings.problems.extend(inspection.state.read(lambda rows: [found for check in of_rows for found in check(rows)]))
    unowned = _check_blobs(inspection, findings, blobs, read_data=read_data)
    _check_leftovers(inspection, findings)
    known = inspection.state.read(teams.list_team_ids)
    indexed = inspection.index.list_teams() if inspection.index else []
    for team_id in sorted({*known, *indexed}):
        team = _Team(team_id, has_index=team_id in indexed, is_foreign=inspection.is_shared and team_id not in known)
        _check_team(inspection, findings, team, unowned, read_data=read_data)
    for stored in sorted((each for found in unowned.values() for each in found), key=lambda each: each.place):
        if stored.may_wait:
            findings.aside.append(stored)
        else:
            message = f"blob {stored.name} has no source, and no search index knows its bucket"
            findings.problems.append(Problem("I4", message, Repair.SET_ASIDE, {"blob": stored.name}))
    return findings


def confirmed(first: InstallationFindings, second: InstallationFindings) -> InstallationFindings:
    """Return the problems that both checks found. Problems found only once were changes in progress."""
    found = {(problem.invariant, problem.message) for problem in first.problems}
    problems = [problem for problem in second.problems if (problem.invariant, problem.message) in found]
    return InstallationFindings(problems, second.counts, second.aside)


def _pages(inspection: Inspection, team_id: str) -> Iterator[list[SourceRow]]:
    """Iterate over the team's sources, one page at a time."""
    after = ""
    while page := inspection.state.read(
        partial(checks.list_every_source, team_id=team_id, after_id=after, limit=PAGE_ROWS)
    ):
        yield page
        after = page[-1].id


def _check_blobs(
    inspection: Inspection, findings: InstallationFindings, unowned: dict[str, StoredBytes], *, read_data: bool
) -> dict[str, list[StoredBytes]]:
    """Check the stored file of each source. Returns the stored files that the database doesn't name.

    The keys are the source ids in the file names. A file whose name contains no source id is keyed by its whole name.
    """
    hash_of = inspection.bytes.hash if read_data else None
    with ThreadPoolExecutor(inspection.bytes.readers) as readers:
        after = ""
        while page := inspection.state.read(partial(checks.list_blob_rows, after_id=after, limit=PAGE_ROWS)):
            after = page[-1].source_id
            stored = [unowned.pop(row.blob_name, None) for row in page]
            findings.counts["sources"] += len(page)
            findings.counts["blobs"] += sum(each is not None for each in stored)
            check = partial(_check_bytes, hash_of)
            # Threads only help if the bytes are read.
            for found in map(check, page, stored) if hash_of is None else readers.map(check, page, stored):
                findings.problems.extend(found)
    # Don't report the blobs of deleted sources and of open uploads, because the daemon takes care of them.
    for name in unowned.keys() & (
        inspection.state.read(tombstones.list_deleted_blobs) | inspection.state.read(sessions.list_open_ids)
    ):
        del unowned[name]
    named: dict[str, list[StoredBytes]] = {}
    for name, left in unowned.items():
        named.setdefault(ids.source_of(name) or name, []).append(left)
    return named


def _check_bytes(
    hash_of: Callable[[str, StoredBytes], str] | None, row: BlobRow, stored: StoredBytes | None
) -> list[Problem]:
    """Check a source's stored file. A file that was moved aside is no problem: the next start moves the file back."""
    if stored is None or not stored.is_plain:
        is_known = parse_json(row.error or "{}").get("code") == SourceErrorCode.STORED_BYTES_LOST
        return [] if is_known else [_broken(row, "I3", f"source {row.source_id} has no blob")]
    blob = f"blob {row.blob_name} of source {row.source_id}"
    if stored.size_bytes != row.size_bytes:
        return [_broken(row, "I2", f"{blob} has {stored.size_bytes} bytes, its row has {row.size_bytes}")]
    if hash_of is None:
        return []
    try:
        actual = hash_of(row.blob_name, stored)
    except FileNotFoundError:
        return [_broken(row, "I3", f"source {row.source_id} has no blob")]
    except OSError as error:
        problem = _broken(row, "I2", f"{blob} can't be read: {error.strerror}")
        # Only a failing disk has lost the bytes. What the system refuses to this user may be whole.
        return [problem if error.errno == errno.EIO else replace(problem, repair=None)]
    wrong = f"{blob} hashes to {actual}, its row has {row.sha256}"
    return [_broken(row, "I2", wrong)] if actual != row.sha256 else []


def _broken(row: BlobRow, invariant: str, message: str) -> Problem:
    about = {"source_id": row.source_id, "team_id": row.team_id, "blob": row.blob_name}
    return Problem(invariant, message, Repair.FAIL_SOURCE, about)


def _check_leftovers(inspection: Inspection, findings: InstallationFindings) -> None:
    """Report temporary files of uploads that no request will continue."""
    for name in inspection.bytes.list_staged():
        problem = Problem("I4", f"staging file {name} belongs to no upload", Repair.REMOVE_FILE, {"staged": name})
        findings.problems.append(problem)
    parts, open_ids = inspection.bytes.list_parts(), inspection.state.read(sessions.list_open_ids)
    findings.counts["parts"] = len(parts)
    for name in sorted(parts.keys() - open_ids):
        if parts[name].may_wait:
            findings.aside.append(parts[name])
            continue
        is_known = inspection.state.read(partial(sessions.find_session, session_id=name)) is not None
        repair = Repair.REMOVE_FILE if is_known else Repair.SET_ASIDE
        findings.problems.append(Problem("I4", f"part {name} has no open session", repair, {"part": name}))


@dataclass(frozen=True, slots=True)
class _Team:
    id: str
    has_index: bool
    #: Whether the index may belong to another installation.
    is_foreign: bool


def _check_team(
    inspection: Inspection,
    findings: InstallationFindings,
    team: _Team,
    unowned: dict[str, list[StoredBytes]],
    *,
    read_data: bool,
) -> None:
    index = inspection.index
    if index is None or team.id in inspection.state.read(checks.list_rebuilding):
        # During a rebuild, documents may be missing.
        return
    is_checked = team.has_index and not team.is_foreign
    found_wrong = index.check_index(team.id, read_data=read_data) if is_checked else []
    findings.problems.extend(found_wrong)
    broken = {problem.invariant for problem in found_wrong if problem.repair is Repair.REBUILD_INDEX}
    if "I10" in broken:
        return
    documents: Mapping[str, InspectedDocument] = index.list_documents(team.id)
    if broken or team.is_foreign:
        # If the index is damaged or another installation's, use it only to identify files that the database lacks.
        documents = {source_id: document for source_id, document in documents.items() if source_id in unowned}
    findings.counts["documents"] += len(documents)
    # Read these in one snapshot, so that they are consistent.
    uncleaned, waiting, deleting_buckets = inspection.state.read(
        lambda rows: (checks.list_uncleaned(rows), checks.list_awaiting_index(rows), checks.list_deleting_buckets(rows))
    )
    known = set(uncleaned)
    for source in (each for page in _pages(inspection, team.id) for each in page):
        known.add(source.id)
        if source.status == readiness.ACTIVE and not broken:
            found = documents.get(source.id)
            findings.problems.extend(_check_document(source, found))
            if found is not None and source.id not in waiting:
                findings.problems.extend(_check_words(source, found, deleting_buckets))
    for source_id in sorted(documents.keys() - known):
        buckets = set(documents[source_id].bucket_ids) - deleting_buckets
        findings.problems.extend(_stray(team.id, documents[source_id], buckets, unowned))


def _stray(
    team_id: str, found: InspectedDocument, buckets: set[str], unowned: dict[str, list[StoredBytes]]
) -> Iterator[Problem]:
    """Report a document without a source. If the source's file is stored, a repair can recover the source."""
    about = {"source_id": found.source_id, "team_id": team_id}
    stored = unowned.get(found.source_id, [])
    if not stored:
        message = f"the index of {team_id} has a document of {found.source_id}, which is not a source"
        yield Problem("I8", message, Repair.REMOVE_DOCUMENT, about)
    elif len(stored) == 1 and buckets:
        # To recover the source, a repair needs exactly one stored file and a bucket.
        (blob,) = unowned.pop(found.source_id)
        message = f"blob {blob.name} has no source, and the index of {team_id} has it as {found.title!r} in"
        yield Problem("I4", f"{message} {', '.join(sorted(buckets))}", Repair.RECOVER, about | {"file": blob.place})


def _check_document(source: SourceRow, found: InspectedDocument | None) -> Iterator[Problem]:
    """Check that an active source is in the index, with a valid generation and all of its active buckets."""
    if found is None or found.generation not in source.generations:
        has = "is not in the index" if found is None else f"is in the index as generation {found.generation}"
        message = f"source {source.id} is active in generation {source.generation}, and {has}"
        yield Problem("I6", message, Repair.QUEUE_SOURCE, _about(source))
        return
    chunks = source.extraction["chunks"] if source.extraction else None
    # While a source is split again, the index has the new chunks before the source's row has their number.
    if found.chunks != chunks and not source.rechunk:
        message = f"source {source.id} was read into {chunks} chunks, the index has {found.chunks}"
        yield Problem("I7", message, Repair.QUEUE_SOURCE, _about(source))
    synced = {bucket for bucket in source.searched_places if source.places[bucket] == readiness.ACTIVE}
    for bucket_id in sorted(synced - set(found.bucket_ids)):
        message = f"source {source.id} is active in bucket {bucket_id}, and no search of that finds it"
        yield Problem("I6", message, Repair.SYNC_SOURCE, _about(source) | {"bucket_id": bucket_id})


def _check_words(source: SourceRow, found: InspectedDocument, deleting: set[str]) -> Iterator[Problem]:
    """Check that the index has the source's title and no wrong buckets.

    The caller skips sources with changes that the index doesn't have yet.
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
