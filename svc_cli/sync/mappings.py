"""Mappings: each syncs a folder into a bucket, with filters and a name."""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from svc_cli.errors import UsageError
from svc_cli.given_files import find_repository
from svc_cli.private_files import replace
from svc_cli.settings import ANYWHERE, NOT_TRUSTED, SettingsFile, is_there
from svc_cli.transfer.rooted_files import PATH_BYTES, Root, find_way_out, refuse_way_out
from svc_daemon.wire.light.names import find_fault_of_name

Prune = Literal["none", "detach", "delete"]
PRUNES: tuple[Prune, ...] = ("none", "detach", "delete")
#: A stranger's file could otherwise keep `--all` busy for minutes.
MOST_MAPPINGS = 1000
#: The fields of a `[[map]]` table in `svc.toml`.
FIELDS: dict[str, type] = {
    "name": str,
    "dir": str,
    "bucket": str,
    "include": list,
    "exclude": list,
    "tags": list,
    "prune": str,
    "images": bool,
}


class Ownership(Enum):
    """Which of the bucket's sources with a mapping's name a sync may update, move and remove."""

    #: All: the user gave the name.
    NAMED = auto()
    #: Those whose files a sync has seen in this folder. Several folders can have the same default name.
    SEEN = auto()
    #: Those whose files were sent from this folder. A project's file that is not trusted chose the name or the bucket.
    SENT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """A folder that is synced into a bucket."""

    #: Stored with every source, so that a sync from another machine finds the mapping's sources.
    name: str
    #: The absolute path of the folder.
    folder: Path
    #: The slug or id of the bucket.
    bucket: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    #: Whether pictures are sent, so that their text is recognised.
    images: bool = False
    #: What to do with the sources of deleted files; None if settings decide.
    prune: Prune | None = None
    ownership: Ownership = Ownership.NAMED
    #: The real folders in one of which the folder has to be, wherever links lead. If there are none, no link may lead
    #: out of the repository that the link is in.
    bounds: tuple[Path, ...] = ()
    #: False for a mapping of a project's file that is not trusted.
    is_trusted: bool = True

    def fields(self) -> dict[str, Any]:
        """Return what commands show of the mapping and `watch.toml` has, but for the name."""
        return {
            "dir": str(self.folder),
            "bucket": self.bucket,
            "include": list(self.include),
            "exclude": list(self.exclude),
            "tags": list(self.tags),
            "prune": self.prune,
        }

    def check(self, max_characters: int, max_tags: int, max_tag_characters: int) -> None:
        """Raise UsageError if the service would refuse the name or the tags."""
        if find_fault_of_name(self.name) or len(self.name) > max_characters:
            raise UsageError(
                f"{self.name[:80]!r} can't be the name of a mapping.",
                hint=f"give it one with --name: up to {max_characters} printable characters.",
            )
        odd = next((tag for tag in self.tags if find_fault_of_name(tag) or len(tag) > max_tag_characters), None)
        if odd is not None or len(set(self.tags)) > max_tags:
            raise UsageError(
                f"{odd[:80]!r} can't be a tag." if odd is not None else f"{len(set(self.tags))} tags are too many.",
                hint=f"a mapping takes {max_tags} tags of 1 to {max_tag_characters} printable characters.",
            )

    def index_path(self, state_dir: Path, origin: str) -> Path:
        """Return the path of the mapping's index for the service at `origin`."""
        identity = json.dumps([origin, self.bucket, str(self.folder), self.name])
        digest = hashlib.sha256(os.fsencode(identity)).hexdigest()[:24]
        return state_dir / "sync" / f"{digest}.db"


def name_of(folder: Path) -> str:
    """Return a mapping's default name: the folder's path in its Git repository, otherwise the folder's own name."""
    root = find_repository(folder)
    if root is None or root == folder:
        return folder.name or "root"
    return folder.relative_to(root).as_posix()


def read_mappings(tables: Sequence[Table[str, Any]], project_file: Path, bucket: str | None) -> list[Mapping]:
    """Read the `[[map]]` tables of a project file; `bucket` is the default bucket.

    Raises UsageError if a table is invalid or mappings overlap.
    """
    if len(tables) > MOST_MAPPINGS:
        raise UsageError(f"{project_file} has {len(tables)} mappings; {MOST_MAPPINGS} are the most.")
    mappings = [
        _read(table, f"{project_file}: [[map]] {number}", project_file.parent, bucket)
        for number, table in enumerate(tables, 1)
    ]
    refuse_overlaps(mappings, str(project_file))
    return mappings


def _read(table: Table[str, Any], source: str, base: Path, bucket: str | None) -> Mapping:
    for key, value in table.items():
        if key not in FIELDS:
            raise UsageError(f"{source}: unknown setting `{key}`.", hint=f"known settings: {', '.join(FIELDS)}.")
        is_texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if not isinstance(value, FIELDS[key]) or (FIELDS[key] is list and not is_texts):
            kind = {list: "a list of strings", bool: "true or false"}.get(FIELDS[key], "a string")
            raise UsageError(f"{source}: `{key}` takes {kind}, not {value!r}.")
        if key == "prune" and value not in PRUNES:
            raise UsageError(f"{source}: `prune` is one of {', '.join(PRUNES)}, not {value!r}.")
    if "dir" not in table:
        raise UsageError(f"{source}: `dir` is missing.", hint='name the folder, relative to the file: dir = "docs".')
    destination = table.get("bucket", bucket)
    if not destination:
        raise UsageError(f"{source}: `bucket` is missing.")
    if "\0" in table["dir"] or len(table["dir"]) >= PATH_BYTES:
        raise UsageError(f"{source}: `dir` is a path, not {table['dir'][:80]!r}.")
    folder = Path(os.path.normpath(base / table["dir"]))
    return Mapping(
        name=table.get("name") or name_of(folder),
        folder=folder,
        bucket=destination,
        include=tuple(table.get("include", ())),
        exclude=tuple(table.get("exclude", ())),
        tags=tuple(table.get("tags", ())),
        prune=table.get("prune"),
        images=table.get("images", False),
        ownership=Ownership.NAMED if table.get("name") else Ownership.SEEN,
    )


def is_same(mapping: Mapping, folder: Path, bucket: str) -> bool:
    """Whether the mapping syncs this folder into this bucket."""
    return mapping.bucket == bucket and os.path.realpath(mapping.folder) == os.path.realpath(folder)


def find_mapping(known: Sequence[Mapping], folder: Path | None, name: str | None, bucket: str | None) -> Mapping | None:
    """Return the mapping with this folder, name and bucket, or None. Raises UsageError if several match.

    An argument that is None matches every mapping.
    """
    found = [
        each
        for each in known
        if (folder is None or os.path.realpath(each.folder) == os.path.realpath(folder))
        and name in (None, each.name)
        and bucket in (None, each.bucket)
    ]
    if len(found) > 1:
        names = ", ".join(f"{each.name} into {each.bucket}" for each in found)
        raise UsageError(f"Several mappings match: {names}.", hint="name one of them with --name or -b, or both.")
    return found[0] if found else None


def refuse_unreachable(mapping: Mapping, root: Root | None = None) -> None:
    """Raise UsageError if a link leads the mapping out of its bounds. `root` is its folder, if that is open."""
    if not mapping.bounds:
        refuse_way_out(mapping.folder, root.way_out if root else find_way_out(mapping.folder))
        return
    real = root.real if root else Path(os.path.realpath(mapping.folder))
    if ANYWHERE not in mapping.bounds and not any(real.is_relative_to(bound) for bound in mapping.bounds):
        raise UsageError(
            f"The mapping {mapping.name!r} leads out of the folder of its svc.toml, which is not trusted, to {real}.",
            code=NOT_TRUSTED,
            hint="`svc config trust` shows what the file asks for, and trusts it; or name the folder by its real path.",
        )


def refuse_overlaps(mappings: Sequence[Mapping], source: str) -> None:
    """Raise UsageError if two mappings into one bucket have the same name or overlapping folders."""
    named: dict[tuple[str, str], Mapping] = {}
    for each in mappings:
        other = named.setdefault((each.bucket, each.name), each)
        if other is not each:
            raise UsageError(
                f"{source}: two mappings into {each.bucket} are named {each.name!r}: that of {other.folder}, and that "
                f"of {each.folder}.",
                hint="give one of them another name, or another bucket: --name or -b for a folder on the command line, "
                "`name` or `bucket` in a [[map]].",
            )
    # Sorted by path, with a slash at the end, whatever is in a folder comes directly behind it.
    placed = sorted(
        ((each.bucket, f"{os.path.realpath(each.folder).rstrip(os.sep)}{os.sep}"), number, each)
        for number, each in enumerate(mappings)
    )
    for ((bucket, outer), _, one), ((other_bucket, inner), _, other) in pairwise(placed):
        if bucket == other_bucket and inner.startswith(outer):
            raise UsageError(
                f"{source}: the mappings {one.name!r} and {other.name!r} into {bucket} overlap: {one.folder} and "
                f"{other.folder}.",
                hint="give one of them a bucket of its own, or leave it to the other.",
            )


@dataclass(frozen=True, slots=True)
class Added:
    """The file `watch.toml` in the user's configuration folder: the mappings added with `svc watch add`."""

    path: Path

    @classmethod
    def of(cls, config_dir: Path) -> "Added":
        return cls(config_dir / "watch.toml")

    def read(self) -> list[Mapping]:
        """Return the mappings; none if there is no file. Raises UsageError if the file is invalid."""
        if not is_there(self.path):
            return []
        return read_mappings(SettingsFile.read(self.path).tables, self.path, None)

    def stamp(self) -> tuple[int, int] | None:
        """Return a value that changes when the file is written; None if it can't be accessed."""
        try:
            facts = self.path.stat()
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_ino

    def write(self, mappings: Iterable[Mapping]) -> None:
        """Replace the file. Raises UsageError if a folder's name is not UTF-8."""
        text = ""
        for mapping in mappings:
            # Don't write a default name: it would then count as chosen by the user, which lets sync remove more.
            name = mapping.name if mapping.ownership is Ownership.NAMED else None
            values = {"name": name, **mapping.fields()}
            # JSON strings and lists are valid TOML, apart from the character DEL.
            lines = [f"{field} = {json.dumps(each, ensure_ascii=False)}\n" for field, each in values.items() if each]
            text += "\n" * bool(text) + "".join(("[[map]]\n", *lines)).replace("\x7f", "\\u007f")
        try:
            replace(self.path, text)
        except UnicodeEncodeError as error:
            raise UsageError(f"{text[error.start : error.end]!a} is not UTF-8 text; rename the folder.") from error
