"""The file that stores the mappings added to the watcher."""

from pathlib import Path
from typing import Any

from svc_cli.sync.mappings import Mapping, Ownership
from svc_cli.sync.watch.stored_mappings import Added

ODD = 'a "quoted" \\ name\x7f, déjà\nvu'


def test_written_mappings_are_read_back_unchanged(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"name": "docs", "folder": tmp_path / "sub" / "docs", "bucket": "one"}
    rules: dict[str, Any] = {"include": ("*.md", ODD), "exclude": ("drafts/",), "tags": ("x",), "prune": "detach"}
    added = Added(tmp_path / "config" / "watch.toml")
    assert added.read() == []
    for claim in (Ownership.NAMED, Ownership.SEEN):
        mappings = [Mapping(**fields, **rules, ownership=claim)]
        mappings.append(Mapping(name=ODD, folder=tmp_path / "two", bucket="two"))
        added.write(mappings)
        assert added.read() == mappings
