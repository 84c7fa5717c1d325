"""Reads and writes `watch.toml`, which has the mappings added with `svc watch add`."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from svc_cli.errors import UsageError
from svc_cli.private_files import replace
from svc_cli.settings import SettingsFile, is_there
from svc_cli.sync.mappings import Mapping, Ownership, read_mappings

FILE = "watch.toml"


@dataclass(frozen=True, slots=True)
class Added:
    """The file `watch.toml` in the user's configuration folder."""

    path: Path

    @classmethod
    def of(cls, config_dir: Path) -> "Added":
        return cls(config_dir / FILE)

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
