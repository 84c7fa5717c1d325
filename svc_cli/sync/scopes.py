"""A part of a folder: some paths below its root, each with all that lies below it."""

from collections.abc import Iterable, Iterator

from svc_cli.uploads.skips import composed


class Scope:
    """Paths as titles have them, and what lies below them."""

    def __init__(self, paths: Iterable[str]) -> None:
        """`paths` are below the root, as the file system spells them."""
        self.paths = frozenset(map(composed, paths))
        self._above = frozenset(folder for path in self.paths for folder in folders_above(path))

    def leads_to(self, path: str) -> bool:
        """Whether the path belongs to this part, or stands on the way to it."""
        return path in self._above or path in self.paths or any(each in self.paths for each in folders_above(path))


def folders_above(path: str) -> Iterator[str]:
    """The folders that hold a path, without the root."""
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)
