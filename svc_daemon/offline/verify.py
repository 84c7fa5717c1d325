"""`svc-daemon verify`: checks and repairs a data directory, which is locked meanwhile, so that no daemon uses it.

A check only reads. After a repair, everything is checked again, and the result of this second check is reported.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from svc_daemon.core.access.urls import AddressPolicy
from svc_daemon.core.problems import MANY_FILES, Problem
from svc_daemon.data_directory import NoDirectory, hand_over, has_state, lock_directory, make_folders
from svc_daemon.databases.contract import Connection
from svc_daemon.databases.sqlite import log_bytes, open_copy
from svc_daemon.errors import StorageError
from svc_daemon.fetch.fetchers import Fetcher
from svc_daemon.operations.installations import refuse_lost_state
from svc_daemon.operations.verifying import Inspection, InstallationFindings, verify
from svc_daemon.paths import DataFiles
from svc_daemon.provider.embedded.checks import IndexInspector
from svc_daemon.settings.limits import Limits
from svc_daemon.store.files.blobs import Blobs
from svc_daemon.store.files.inspections import DataFolders, FolderInspector, SetAsideFiles
from svc_daemon.store.files.parts import Parts

if TYPE_CHECKING:
    from svc_daemon.server.engines import Engines

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check or repair."""

    #: The data directory's path, or a description of the cluster.
    name: str
    findings: InstallationFindings
    #: The repaired problems; None if no repair was requested.
    repaired: list[Problem] | None

    @property
    def is_whole(self) -> bool:
        return not self.findings.problems

    def lines(self) -> Iterator[str]:
        """Yield a line for each problem, then a summary."""
        yield from (f"repaired {problem.invariant}: {problem.message}" for problem in self.repaired or [])
        yield from (f"{problem.invariant}: {problem.message}" for problem in self.findings.problems)
        aside = self.findings.aside
        yield from (f"set aside: {each.place} ({each.size_bytes} bytes)" for each in aside)
        if len(aside) >= MANY_FILES:
            yield (
                f"warning: {len(aside)} files are set aside, and no search index knows them. Was an older state.db"
                " restored? Copy what you want to keep: the files are deleted after SVC_LIMIT_SET_ASIDE_DAYS."
            )
        found = f"{len(self.findings.problems)} problems in {self.name}"
        repairable = sum(problem.repair is not None for problem in self.findings.problems)
        if self.is_whole:
            summary = f"{self.name} is whole"
        elif self.repaired is not None:
            summary = f"{found} are left: repairing them would require a guess"
        else:
            summary = f"{found}; --repair can repair {repairable} of them"
        counted = ", ".join(f"{number} {name}" for name, number in self.findings.counts.items())
        yield f"{summary} ({counted or 'nothing could be read'})"

    def as_json(self) -> dict[str, Any]:
        return {
            "whole": self.is_whole,
            "problems": [_as_json(problem) for problem in self.findings.problems],
            **({"repaired": [_as_json(problem) for problem in self.repaired]} if self.repaired is not None else {}),
            "set_aside": [each.place for each in self.findings.aside],
            "counts": dict(self.findings.counts),
        }


def verify_directory(root: Path, *, read_data: bool, repair: bool) -> Verdict:
    """Check the directory, and repair it if requested.

    Raises NoDirectory or DirectoryLocked, and StorageError if the database is of another release. Raises StorageError
    instead of repairing a directory whose stored files are all missing.
    """
    files = DataFiles(root)
    if not files.root.is_dir():
        raise NoDirectory(files)
    if not has_state(files):
        message = f"{files.state} is missing or empty: restore a backup, or set SVC_DATA_DIR to the right folder"
        try:
            refuse_lost_state(files)
        except StorageError as error:
            message = error.message
        return Verdict(str(root), InstallationFindings([Problem("I10", message)]), [] if repair else None)
    refuse_lost_state(files)
    with lock_directory(files):
        findings = check_files(files, read_data=read_data)
        if not repair:
            return Verdict(str(root), findings, None)
        # If all files are missing, a volume is probably not mounted.
        if findings.counts["sources"] and not findings.counts["blobs"]:
            raise StorageError(
                f"{files.blobs} is empty or missing, but {findings.counts['sources']} sources have their bytes there;"
                " nothing was repaired. Is a volume not mounted? Mount it, or restore a backup."
            )
        repaired = asyncio.run(repair_in(files, findings.problems))
        hand_over(files)
        return Verdict(str(root), check_files(files, read_data=read_data) if repaired else findings, repaired)


class _Unchanging:
    """A database that no process changes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, work: Callable[[Connection], T]) -> T:
        return work(self._connection)


def check_files(files: DataFiles, *, read_data: bool, has_indexes: bool = True) -> InstallationFindings:
    """Check a data directory that no process changes. Without `has_indexes`, the search indexes are not checked."""
    with open_copy(files.state) as state, ThreadPoolExecutor(1) as executor:
        blobs = Blobs(files, executor, lambda: "")
        inspection = Inspection(
            state=_Unchanging(state),
            log_bytes=log_bytes(files.state),
            bytes=FolderInspector(DataFolders(blobs, Parts(files.parts, blobs), SetAsideFiles(files.aside))),
            index=IndexInspector(files.index) if has_indexes else None,
        )
        return verify(inspection, read_data=read_data)


async def repair_in(files: DataFiles, problems: list[Problem], engines: "Engines | None" = None) -> list[Problem]:
    """Repair the problems that have a safe repair, and return them. By default, the engines are SQLite and files."""
    if not any(problem.repair for problem in problems):
        return []
    # Only a repair needs these modules. A backup, which only checks, starts twice as fast without them.
    from svc_daemon.operations.repairing import repair_problems  # noqa: PLC0415
    from svc_daemon.server.engines import EMBEDDED  # noqa: PLC0415
    from svc_daemon.server.server import open_context  # noqa: PLC0415

    os.umask(0o077)
    make_folders(files)
    async with AsyncExitStack() as stack:
        # The context needs a fetcher, but a repair never uses it.
        fetcher = Fetcher(AddressPolicy())
        context = open_context(stack, Limits(), files, fetcher, lambda _: None, engines=engines or EMBEDDED)
        return await repair_problems(context, problems)


def _as_json(problem: Problem) -> dict[str, Any]:
    return {
        "invariant": problem.invariant,
        "message": problem.message,
        "repair": problem.repair,
        **problem.about,
    }
