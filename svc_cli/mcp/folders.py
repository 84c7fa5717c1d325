"""Lets tools read files in allowed folders only. Links are resolved first."""

import os
from collections.abc import Sequence
from pathlib import Path

from svc_cli.errors import PathMissing, SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.transfer.contents import read
from svc_cli.transfer.rooted_files import Root, find_way_out, refuse_way_out


class PathRefused(SvcError):
    """The path is not inside an allowed folder."""

    code = "svc_path_not_allowed"
    exit = Exit.DENIED


class Folders:
    """The folders that the user allowed. Without any, no file may be read."""

    def __init__(self, allowed: Sequence[Path]) -> None:
        """Raises PathMissing if a folder doesn't exist.

        Raises UsageError if a path is not a folder, or a link in it leads out of the link's repository.
        """
        for folder in allowed:
            refuse_way_out(folder, find_way_out(folder))
            if not folder.exists():
                raise PathMissing(f"{folder} does not exist.")
            if not folder.is_dir():
                raise UsageError(
                    f"{folder} is not a folder.", hint="--allow takes folders; files are named by the tools."
                )
        self._roots = [folder.resolve() for folder in allowed]

    def __bool__(self) -> bool:
        return bool(self._roots)

    def read(self, path: str, max_bytes: int) -> tuple[str, bytes]:
        """Return the name and bytes of a file. A relative path is looked up in each folder.

        Raises PathRefused if the file is outside the folders, and PathMissing or FileRefused if it can't be read.
        """
        # The resolved path has no links. If one has been put into it meanwhile, the system doesn't open it.
        found = self._find(path)
        drive = Path(found.anchor)
        return Path(path).name, read(found.relative_to(drive), max_bytes, root=Root(drive)).whole()

    def _find(self, path: str) -> Path:
        """Return the path with links resolved. The error does not reveal whether a path outside the folders exists."""
        paths = [_resolved(root / path) for root in self._roots]
        inside = [real for real in paths if any(map(real.is_relative_to, self._roots))]
        # Path.exists raises if a name is too long.
        found = next((real for real in inside if os.access(real, os.F_OK)), None)
        if found is not None:
            return found
        if inside:
            raise PathMissing(f"There is no file {path!r} in the allowed folders.")
        raise self._refused(path)

    def _refused(self, path: str) -> PathRefused:
        listed = ", ".join(map(str, self._roots))
        allowed = f"Files are read only under {listed}." if listed else "No folder is allowed."
        return PathRefused(
            f"{path!r} may not be read. {allowed}", hint="`svc mcp --allow DIR` allows a folder; or send contentBase64."
        )


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        # For example a cycle of links, a NUL character, or a name that is too long.
        raise PathRefused(f"{str(path)!r} is not a path.") from error
