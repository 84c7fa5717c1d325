"""Decides whether the sources of deleted files can be removed from the bucket.

If a disk is not mounted, or a folder was moved away, all files seem to be deleted. A removal can't be undone, so in
case of doubt the sources stay:
- all of them, if a folder could not be read, a file did not reach the service, or new content was not indexed
- a single source, if the file that may replace this source can't be read or is not searchable yet
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from svc_cli.errors import SafetyStop, UsageError
from svc_cli.transfer.reports import ReportItem
from svc_cli.transfer.rooted_files import Way
from svc_cli.transfer.skips import Skip
from svc_cli.transfer.snapshots import why_nothing

#: This many removals are always allowed if the limit is a percentage.
FEW = 10
#: Maximum number of file names in a message.
MOST_NAMED = 3
#: Error codes that depend only on the file. The next run would get the same error again.
OWN_REFUSALS = frozenset(
    {"empty_file", "file_too_large", "invalid_request", "metadata_too_large", "svc_too_many_epochs", "too_many_tags"}
)


class Cause(StrEnum):
    """The reason why the source of a deleted file is still in the bucket."""

    #: Removal was not requested.
    PRUNE_NOT_ASKED = "prune_not_asked"
    #: The project's file that asks for it is not trusted.
    NOT_TRUSTED = "not_trusted"
    #: The sources may belong to another folder with the same mapping name.
    OTHER_FOLDER = "other_folder"
    #: A part of the folder could not be listed.
    FOLDER_UNREADABLE = "folder_unreadable"
    #: The folder's device or inode differs from the last run.
    FOLDER_REPLACED = "folder_replaced"
    #: The files were on another disk, which was mounted inside the folder in the last run, and is not now.
    DISK_MISSING = "disk_missing"
    #: A watcher saw a deletion a moment ago; the file may reappear.
    JUST_DELETED = "just_deleted"
    #: A file did not reach the service.
    NOT_SENT = "not_sent"
    #: The source of a file that was moved could not be renamed.
    MOVE_NOT_SENT = "move_not_sent"
    #: New content could not be indexed.
    NEWLY_FAILED = "newly_failed"
    #: New content was not indexed in time.
    NOT_INDEXED = "not_indexed"
    #: A file with the same title or bytes as the deleted file is not searchable yet.
    REPLACEMENT_NOT_READY = "replacement_not_ready"
    #: A file of the same size can't be read; it may be the deleted file at a new path.
    MAY_HAVE_MOVED = "may_have_moved"
    #: More files are missing than one run may remove.
    TOO_MANY = "too_many"
    #: The run ended before or during the removal.
    ENDED_EARLY = "ended_early"


_SENTENCES = {
    Cause.PRUNE_NOT_ASKED: "--prune detach",
    Cause.NOT_TRUSTED: "svc.toml asks for more than it may until `svc config trust` trusts it",
    Cause.OTHER_FOLDER: "nothing shows that this folder sent what is left under its name; --name claims that",
    Cause.FOLDER_UNREADABLE: "some folders could not be read, so it is unknown which files are gone",
    Cause.FOLDER_REPLACED: "this is not the folder of the last sync (device or inode changed); sync again to prune",
    Cause.DISK_MISSING: "the disk that was mounted there is missing; if it is gone for good, --accept-root",
    Cause.JUST_DELETED: "files that were deleted a moment ago may come back",
    Cause.NOT_SENT: "not every file reached the service",
    Cause.MOVE_NOT_SENT: "not every file that moved could be renamed in the bucket",
    Cause.NEWLY_FAILED: "new content could not be indexed; the next run prunes",
    Cause.NOT_INDEXED: "new content is still being indexed; the next run prunes",
    Cause.REPLACEMENT_NOT_READY: "the same document is in the folder, but not searchable yet",
    Cause.MAY_HAVE_MOVED: "a file of the same size can't be read and may be the same document",
    Cause.TOO_MANY: "more than --max-delete allows",
    Cause.ENDED_EARLY: "the sync ended early",
}


@dataclass(frozen=True, slots=True)
class Withheld:
    """Deleted files whose sources stay in the bucket, all for the same reason."""

    cause: Cause
    #: Number of the deleted files; None if the run ended before they were counted.
    files: int | None = None
    #: Paths of the files that are the reason, if any; for NOT_TRUSTED, the settings.
    because: tuple[str, ...] = ()

    @classmethod
    def untrusted(cls, asked: Mapping[str, str], files: int = 0) -> "Withheld":
        """Return what is withheld from a project's file: the values that it asks for, by name."""
        return cls(Cause.NOT_TRUSTED, files, tuple(f"{name} = {value}" for name, value in asked.items()))

    def __str__(self) -> str:
        if self.files is None:
            return "nothing was pruned: the sync ended early."
        if self.cause is Cause.NOT_TRUSTED and not self.files:
            return f"{_SENTENCES[self.cause]} ({', '.join(self.because)})."
        named = ", ".join(self.because[:MOST_NAMED])
        more = f" and {len(self.because) - MOST_NAMED} more" if len(self.because) > MOST_NAMED else ""
        why = f"{_SENTENCES[self.cause]} ({named}{more})" if named else _SENTENCES[self.cause]
        gone = "1 file is gone" if self.files == 1 else f"{self.files} files are gone"
        return f"{gone} from the folder, but still in the bucket: {why}."

    def as_json(self) -> dict[str, Any]:
        return {
            "code": str(self.cause),
            "message": str(self),
            "files": self.files,
            "because": list(self.because),
        }


class Removal(NamedTuple):
    """A source to be removed: its file was deleted, or it is a duplicate."""

    path: str
    source_id: str
    sha256: str
    #: The size of the file; 0 if it is unknown.
    size_bytes: int = 0
    #: Whether no search finds the source: it has failed, and there is no older version.
    is_silent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The facts that decide which sources a run can remove."""

    #: The results of all files, except those that are unchanged and ready.
    items: Sequence[ReportItem]
    #: The paths of the mapping's sources when the run began.
    paths: Collection[str]
    #: The hashes of the mapping's sources when the run began.
    hashes: Collection[str]
    #: Whether every folder could be listed.
    is_complete: bool = True
    #: Whether the folder's device or inode differs from the last run.
    is_moved: bool = False
    #: Whether files were deleted a moment ago and may reappear.
    is_restless: bool = False
    #: Whether the run did not wait until everything was indexed.
    is_late: bool = False
    #: Whether the time of `--timeout` is over.
    is_over: bool = False
    #: The folders where another disk was mounted in the last run, and is not now.
    lost_mounts: Collection[str] = ()

    def find_lost_mount(self, removal: Removal) -> tuple[Cause, str] | None:
        """Return why this source must stay, and the folder of the missing disk; None if no disk is missing there."""
        mount = next((each for each in self.lost_mounts if removal.path.startswith(each)), None)
        return None if mount is None else (Cause.DISK_MISSING, mount)


def causes_of_all(found: Findings) -> dict[Cause, tuple[str, ...]]:
    """Return the causes for which nothing may be removed, each with the paths of the affected files."""
    because: dict[Cause, list[str]] = {}
    if not found.is_complete:
        unseen = [item.path for item in found.items if _is_unread(item) and item.size_bytes is None]
        because[Cause.FOLDER_UNREADABLE] = unseen
    if found.is_moved:
        because[Cause.FOLDER_REPLACED] = []
    if found.is_restless:
        because[Cause.JUST_DELETED] = []
    for item in found.items:
        cause = _doubt(item, found)
        if cause is not None:
            because.setdefault(cause, []).append(item.path)
    if found.is_over and Cause.NOT_INDEXED not in because:
        because[Cause.ENDED_EARLY] = []
    return {cause: tuple(paths) for cause, paths in because.items()}


def _doubt(item: ReportItem, found: Findings) -> Cause | None:
    """Return why this file prevents every removal; None if it doesn't."""
    is_known = item.sha256 in found.hashes
    if item.error is None:
        return Cause.NOT_INDEXED if item.is_pending and found.is_late and not is_known else None
    if _is_unread(item) or item.error["code"] in OWN_REFUSALS:
        return None
    if item.status == "failed":
        return None if is_known else Cause.NEWLY_FAILED
    is_move = item.source_id is not None and item.path not in found.paths
    return Cause.MOVE_NOT_SENT if is_move else Cause.NOT_SENT


class Replacements:
    """The files that are not searchable yet; any of them may replace a source whose file was deleted."""

    def __init__(self, items: Iterable[ReportItem]) -> None:
        troubled = [item for item in items if item.error or item.is_pending]
        self._by_title = {item.path: item.path for item in troubled}
        self._by_hash = {item.sha256: item.path for item in troubled if item.sha256}
        #: Maps the size of each unreadable file to its path. An unknown size is 0.
        self._by_size = {item.size_bytes or 0: item.path for item in troubled if _is_unread(item)}

    def find(self, removal: Removal) -> tuple[Cause, str] | None:
        """Return why this source must stay, and the file that may replace it; None if it can be removed."""
        same = self._by_title.get(removal.path)
        if same is None and not removal.is_silent:
            same = self._by_hash.get(removal.sha256)
        if same is not None:
            return Cause.REPLACEMENT_NOT_READY, same
        for size_bytes, path in self._by_size.items():
            if 0 in (size_bytes, removal.size_bytes) or size_bytes == removal.size_bytes:
                return Cause.MAY_HAVE_MOVED, path
        return None


def _is_unread(item: ReportItem) -> bool:
    """Whether the bytes of the file are unknown, because reading it failed."""
    return item.error is not None and (item.sha256 is None or item.error["code"] == "svc_file_unstable")


@dataclass(frozen=True, slots=True)
class MaxDelete:
    """The maximum number of removals in one run: a number of files, or a percentage of the mapping's files."""

    files: int | None = None
    percent: int | None = None
    #: What a project's file that is not trusted says. It counts only if it allows less.
    asked: "MaxDelete | None" = None

    @classmethod
    def parse(cls, text: str, asked: str | None = None) -> "MaxDelete":
        """Parse `N` or `P%`. Raises UsageError if the text is neither."""
        number, other = text.strip().removesuffix("%"), None if asked is None else cls.parse(asked)
        if not (number.isascii() and number.isdigit()) or (text.strip().endswith("%") and int(number) > 100):
            raise UsageError(f"--max-delete takes a number of files or a share such as 25%, not {text!r}.")
        if text.strip().endswith("%"):
            return cls(percent=int(number), asked=other)
        return cls(files=int(number), asked=other)

    def most(self, owned: int) -> int:
        """Return how many files may be removed from a mapping that has `owned` files in the bucket."""
        return self.files if self.files is not None else max(FEW, owned * (self.percent or 0) // 100)

    def allows(self, gone: int, owned: int) -> bool:
        """Whether `gone` files may be removed from a mapping that has `owned` files in the bucket."""
        return gone <= self.most(owned)

    def for_mapping(self, owned: int) -> "MaxDelete":
        """Return the limit that counts for a mapping that has `owned` files in the bucket."""
        is_less = self.asked is not None and self.asked.most(owned) < self.most(owned)
        return self.asked if is_less and self.asked is not None else self

    def withheld(self, owned: int) -> dict[str, str]:
        """Return the limit in a project's file that is not trusted, by name, if it allows more than this limit."""
        asked = self.asked
        if asked is None:
            return {}
        if asked.percent is not None and self.percent is not None:
            return {"max_delete": f"{asked.percent}%"} if asked.percent > self.percent else {}
        text = f"{asked.percent}%" if asked.files is None else str(asked.files)
        return {"max_delete": text} if asked.most(owned) > self.most(owned) else {}

    def __str__(self) -> str:
        return f"{self.percent} %" if self.files is None else f"{self.files} files"


DEFAULT_MAX_DELETE = MaxDelete(percent=25)


def too_many(gone: int, owned: int, limit: MaxDelete) -> SafetyStop:
    """Return the error for a run that would remove too many files."""
    return SafetyStop(
        f"{gone} of {owned} files are gone, more than {limit}; nothing was removed.",
        hint=f"if that is right, run `svc sync` with --max-delete {gone}.",
        details={"gone": gone, "owned": owned},
    )


def refuse_new_way(name: str, folder: str, before: Way | None, now: Way) -> None:
    """Raise SafetyStop if a link leads to the folder that was none in the last run, or if an owner has changed.

    Otherwise somebody else could exchange the folder for another one whose files they can't read. A link that has
    always been there may lead to another folder, as after a deployment. `name` is the mapping's. `before` is None if
    there was no last run.
    """
    if before is None:
        return
    link = next((each for each in now.links if each not in before.links), None)
    if link is not None:
        what = f"{link} has become a symbolic link since the last sync"
    elif now.owner != before.owner:
        what = f"{folder} belongs to the user {now.owner} now, and not to {before.owner} as in the last sync"
    elif set(now.link_owners) - {before.owner, *before.link_owners}:
        what = f"a symbolic link that leads to {folder} belongs to another user than in the last sync"
    else:
        return
    raise SafetyStop(
        f"{what}; nothing was sent.",
        hint=f"if that is right, run `svc sync` with --accept-root, or `svc watch flush {name}` if it is watched.",
        details={"folder": folder, "link": link},
    )


def refuse_lost_root(folder: Path, owned: int, met: int = 0, skips: Iterable[Skip] | None = None) -> None:
    """Raise SafetyStop if a folder that had files is missing or empty: its disk may not be mounted.

    `met` files are in it that are not left out; `skips` are those that are, or None if the folder is missing.
    """
    if not owned or met:
        return
    what = "it is missing" if skips is None else why_nothing(folder, skips)
    files = "1 file of it is" if owned == 1 else f"{owned} files of it are"
    raise SafetyStop(
        f"{folder}: {what}, but {files} in the bucket; nothing was changed.",
        hint="mount or restore the folder; to remove its files from the bucket, use `svc source rm`.",
        details={"folder": str(folder), "owned": owned},
    )
