"""The folders whose files a tool may read, judged by the real path after all links."""

import os
from collections.abc import Sequence
from pathlib import Path

from svc_cli.errors import PathMissing, SvcError, UsageError
from svc_cli.exits import Exit
from svc_cli.uploads.contents import read


class PathRefused(SvcError):
    """The path leads out of the folders that were allowed."""

    code = "svc_path_not_allowed"
    exit = Exit.DENIED


class Folders:
    """Folders that were allowed at the start; none allows nothing."""

    def __init__(self, allowed: Sequence[Path]) -> None:
        """Raises PathMissing and UsageError for what is no folder."""
        for folder in allowed:
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
        """Name and bytes of a file; a relative path is looked for in each folder. Raises PathRefused, PathMissing and
        FileRefused."""
        real = self._find(path)
        data = read(real, max_bytes).whole()
        # A link that was put there meanwhile would have been followed.
        if self._find(path) != real:
            raise self._refused(path)
        return Path(path).name, data

    def _find(self, path: str) -> Path:
        """The real path. A path outside is refused before it is accessed, so that nothing is revealed about it."""
        paths = [_resolved(root / path) for root in self._roots]
        inside = [real for real in paths if any(map(real.is_relative_to, self._roots))]
        # Unlike `exists`, this raises nothing for a name too long or a folder on the way that may not be read.
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
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name too long, NUL
        raise PathRefused(f"{str(path)!r} is not a path.") from error
