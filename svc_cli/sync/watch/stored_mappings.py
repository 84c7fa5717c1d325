"""The mappings that were added for good: a file beside the user's settings, in the shape of `svc.toml`'s [[map]]."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svc_cli.errors import UsageError
from svc_cli.settings import read_mapping_tables
from svc_cli.sync.mappings import Mapping, read_mappings

FILE = "watch.toml"


@dataclass(frozen=True, slots=True)
class Added:
    """The file."""

    path: Path

    @classmethod
    def of(cls, config_dir: Path) -> "Added":
        return cls(config_dir / FILE)

    def read(self) -> list[Mapping]:
        """The mappings; none where there is no file. Raises UsageError."""
        if not self.path.exists():
            return []
        return read_mappings(read_mapping_tables(self.path), self.path, None)

    def stamp(self) -> tuple[int, int] | None:
        """Another one than before: the file was written."""
        try:
            facts = self.path.stat()
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_ino

    def write(self, mappings: Iterable[Mapping]) -> None:
        """Replace the file as a whole. Raises UsageError for a folder whose name is not UTF-8."""
        text = "\n".join(f"[[map]]\n{_lines(mapping)}" for mapping in mappings)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.path.with_suffix(f".{os.getpid()}.new")
        try:
            draft.write_text(text, "utf-8")
        except UnicodeEncodeError as error:
            draft.unlink(missing_ok=True)
            raise UsageError(f"{text[error.start : error.end]!a} is not UTF-8 text; rename the folder.") from error
        draft.replace(self.path)


def _lines(mapping: Mapping) -> str:
    values: dict[str, Any] = {
        # A name that was not chosen proves nothing about what the bucket has under it.
        "name": mapping.name if mapping.is_named else None,
        "dir": str(mapping.folder),
        "bucket": mapping.bucket,
        "include": list(mapping.include),
        "exclude": list(mapping.exclude),
        "tags": list(mapping.tags),
        "prune": mapping.prune,
    }
    # JSON spells texts and lists of texts as TOML does, but for one control character.
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items() if value]
    return "".join(lines).replace("\x7f", "\\u007f")
