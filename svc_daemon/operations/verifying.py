"""Verifying: holds a data directory whose daemon is not running to what must hold, and changes nothing.

What a start or the workers would put right by themselves is no problem as long as somebody owns it: an open task, a
due sync, a deleted source that waits to be cleared, a title that the index has still to hear of. Files that nobody
owns are told: the next start removes them too.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from sqlite3 import Connection

from svc_daemon.core import readiness
from svc_daemon.core.problems import LOG_BYTES, Mend, Problem
from svc_daemon.provider.inspections import InspectedDocument, Inspector
from svc_daemon.store import checks, teams, uploads
from svc_daemon.store.blobs import Blobs
from svc_daemon.store.migrations import check_current
from svc_daemon.store.parts import Parts
from svc_daemon.store.sources import Source
from svc_daemon.wire.codes import SourceErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """A data directory that nobody changes while it is looked at."""

    state: Connection
    #: Size of the state's log.
    log_bytes: int
    blobs: Blobs
    parts: Parts
    inspector: Inspector


@dataclass(frozen=True, slots=True)
class Findings:
    """What a look at a directory told."""

    problems: list[Problem]
    #: How many there are of each thing that was looked at.
    counts: Counter[str] = field(default_factory=lambda: Counter(sources=0, blobs=0, parts=0, documents=0))


def verify(directory: Directory, *, read_data: bool) -> Findings:
    """Look at everything; with `read_data` at every stored byte and every word of the index too.

    Raises StorageError for a database that another release made.
    """
    damage = checks.check_file(directory.state)
    if damage:
        # Nothing else can be told, and nothing be mended: a backup is the way out.
        return Findings(damage)
    check_current(directory.state)
    if unreadable := checks.check_words(directory.state):
        return Findings(unreadable)
    findings = Findings([*_check_log(directory), *checks.check_references(directory.state)])
    findings.problems.extend(checks.check_rows(directory.state))
    findings.problems.extend(checks.check_agents(directory.state))
    _check_blobs(directory, findings, read_data=read_data)
    findings.problems.extend(_check_leftovers(directory, findings.counts))
    for team_id in sorted({*teams.list_team_ids(directory.state), *directory.inspector.list_teams()}):
        _check_team(directory, findings, team_id, read_data=read_data)
    return findings


def _check_log(directory: Directory) -> Iterator[Problem]:
    if directory.log_bytes >= LOG_BYTES:
        yield Problem("I10", f"the log of the state database has {directory.log_bytes} bytes", Mend.TRIM_LOG)


def _check_blobs(directory: Directory, findings: Findings, *, read_data: bool) -> None:
    unowned = _names(directory.blobs.list_ids)
    findings.counts["blobs"] = len(unowned)
    for source in checks.list_every_source(directory.state):
        findings.counts["sources"] += 1
        findings.problems.extend(_check_bytes(directory, source, read_data=read_data))
        unowned.discard(source.blob_name)
    unowned -= set(checks.list_uncleaned(directory.state).values())
    findings.problems.extend(
        Problem("I4", f"blob {name} has no source", Mend.REMOVE_FILE, {"blob": name}) for name in sorted(unowned)
    )


def _check_bytes(directory: Directory, source: Source, *, read_data: bool) -> Iterator[Problem]:
    path = directory.blobs.path(source.blob_name)
    broken = partial(Problem, mend=Mend.FAIL_SOURCE, about=_about(source))
    if not path.is_file():
        if not _is_known_lost(source):
            yield broken("I3", f"source {source.id} has no blob")
        return
    size_bytes = path.stat().st_size
    if size_bytes != source.size_bytes:
        told = f"blob {source.blob_name} of source {source.id} has {size_bytes} bytes"
        yield broken("I2", f"{told}, its row says {source.size_bytes}")
    elif read_data and (error := _unlike(path, source.sha256)):
        yield broken("I2", f"blob {source.blob_name} of source {source.id} {error}")


def _is_known_lost(source: Source) -> bool:
    """Whether it has failed for that very reason, and says so."""
    return source.status == readiness.FAILED and (source.error or {}).get("code") == SourceErrorCode.STORED_BYTES_LOST


def _unlike(path: Path, sha256: str) -> str | None:
    """How the file's bytes are not those of the hash."""
    try:
        with path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"can't be read: {error.strerror}"
    return None if actual == sha256 else f"hashes to {actual}, its row says {sha256}"


def _check_leftovers(directory: Directory, counts: Counter[str]) -> Iterator[Problem]:
    """Files on their way in that nobody goes on with."""
    for name in sorted(_names(directory.blobs.list_staged)):
        yield Problem("I4", f"staging file {name} belongs to nobody", Mend.REMOVE_FILE, {"staged": name})
    parts, open_ids = _names(directory.parts.list_ids), uploads.list_open_ids(directory.state)
    counts["parts"] = len(parts)
    for name in sorted(parts - open_ids):
        yield Problem("I4", f"part {name} has no open session", Mend.REMOVE_FILE, {"part": name})


def _names(list_names: Callable[[], Iterable[str]]) -> set[str]:
    """The names in a folder; one that is missing holds nothing."""
    try:
        return set(list_names())
    except FileNotFoundError:
        return set()


def _check_team(directory: Directory, findings: Findings, team_id: str, *, read_data: bool) -> None:
    if team_id in checks.list_rebuilding(directory.state):
        # A task makes the index anew: what it lacks says nothing yet.
        return
    if team_id in directory.inspector.list_teams():
        broken = directory.inspector.check_index(team_id, read_data=read_data)
        findings.problems.extend(broken)
        if any(problem.mend is Mend.REBUILD_INDEX for problem in broken):
            # What it holds tells nothing then, and all of it is made again.
            return
    documents = directory.inspector.list_documents(team_id)
    findings.counts["documents"] += len(documents)
    known = set(checks.list_uncleaned(directory.state))
    untold, deleting = checks.list_untold(directory.state), checks.list_deleting_buckets(directory.state)
    for source in checks.list_every_source(directory.state, team_id):
        known.add(source.id)
        if source.status == readiness.ACTIVE:
            found = documents.get(source.id)
            findings.problems.extend(_check_document(source, found))
            if found is not None and source.id not in untold:
                findings.problems.extend(_check_words(source, found, deleting))
    findings.problems.extend(_stray(team_id, source_id) for source_id in sorted(documents.keys() - known))


def _stray(team_id: str, source_id: str) -> Problem:
    told = f"the index of {team_id} has a document of {source_id}, which is no source"
    return Problem("I8", told, Mend.REMOVE_DOCUMENT, {"source_id": source_id, "team_id": team_id})


def _check_document(source: Source, found: InspectedDocument | None) -> Iterator[Problem]:
    """An indexed source is in the index, in its generation and in every bucket in which it is active."""
    if found is None or found.generation not in source.generations:
        has = "is not in the index" if found is None else f"is in the index as generation {found.generation}"
        told = f"source {source.id} is active in generation {source.generation}, and {has}"
        yield Problem("I6", told, Mend.QUEUE_SOURCE, _about(source))
        return
    chunks = (source.extraction or {}).get("chunks")
    # One that is being cut anew has the new pieces a moment before it says so.
    if found.chunks != chunks and not source.rechunk:
        told = f"source {source.id} was read into {chunks} chunks, the index has {found.chunks}"
        yield Problem("I7", told, Mend.QUEUE_SOURCE, _about(source))
    synced = {bucket for bucket in source.searched_places if source.places[bucket] == readiness.ACTIVE}
    for bucket_id in sorted(synced - set(found.bucket_ids)):
        told = f"source {source.id} is active in bucket {bucket_id}, and no search of that finds it"
        yield Problem("I6", told, Mend.SYNC_SOURCE, _about(source) | {"bucket_id": bucket_id})


def _check_words(source: Source, found: InspectedDocument, deleting: set[str]) -> Iterator[Problem]:
    """What the index says of a source of which it has nothing new to hear."""
    if source.sync_status == readiness.ACTIVE or not source.places:
        for bucket_id in sorted(set(found.bucket_ids) - set(source.searched_places) - deleting):
            told = f"source {source.id} is not in bucket {bucket_id}, and the index has it there"
            yield Problem("I8", told, Mend.TELL_INDEX, _about(source) | {"bucket_id": bucket_id})
    if found.title != source.title.encode(errors="replace").decode():
        told = f"source {source.id} is called {source.title!r}, and the index has it as {found.title!r}"
        yield Problem("I6", told, Mend.TELL_INDEX, _about(source))


def _about(source: Source) -> dict[str, str]:
    return {"source_id": source.id, "team_id": source.team_id, "blob": source.blob_name}
