"""Replaces files in the user's configuration folder that only the user may read."""

import os
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Replace the file, or create it. When this returns, the new content is on the disk."""
    import tempfile

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The draft has mode 0600 from the start: before a later chmod, other users could read it.
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
