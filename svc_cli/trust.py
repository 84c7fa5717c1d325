"""Remembers which project files (`svc.toml`) the user trusts.

A project's file may come from a stranger. It is trusted at one place and with one content; another content is a
stranger's again.
"""

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from svc_cli.private_files import read_rows, replace
from svc_daemon import paths

#: The code of the error if a file asks for something that only a trusted file may.
NOT_TRUSTED = "svc_not_trusted"


class Trust(NamedTuple):
    """What the user has seen and trusted of one file."""

    sha256: str
    #: The folders outside of the file's own to which links in its mappings led.
    linked: Collection[str] = ()


class TrustedFiles:
    """The list of trusted files, in the user's configuration folder."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.path = paths.config_dir(environ) / "trusted.json"

    def find(self, file: Path, content: bytes) -> Trust | None:
        """Return what the user trusts of the file; None if it is not trusted with this content.

        Raises UsageError if the list can't be read.
        """
        row = read_rows(self.path).get(place_of(file))
        if row is None or row.get("sha256") != sha256_of(content):
            return None
        return Trust(row["sha256"], row.get("linked", ()))

    def add(self, file: Path, trust: Trust) -> None:
        """Trust the file with one content, and no longer with another."""
        row = {"sha256": trust.sha256, "linked": list(trust.linked)}
        replace(self.path, json.dumps({**read_rows(self.path), place_of(file): row}, indent=2))

    def remove(self, file: Path) -> bool:
        """Trust the file no longer; returns False if it was not trusted."""
        known = read_rows(self.path)
        if known.pop(place_of(file), None) is None:
            return False
        replace(self.path, json.dumps(known, indent=2))
        return True


def place_of(file: Path) -> str:
    """Return the path that identifies the file.

    Links in the folder's path are resolved, but not the file itself: as a link to a trusted file in another folder, it
    would apply the trusted settings to the wrong folder.
    """
    return str(Path(os.path.realpath(file.parent)) / file.name)


def sha256_of(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()
