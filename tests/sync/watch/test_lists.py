"""The file of added mappings."""

from pathlib import Path

import pytest

from svc_cli.sync.mappings import Mapping
from svc_cli.sync.watch.lists import Added

ODD = 'a "quoted" \\ name\x7f, déjà\nvu'


@pytest.mark.parametrize("is_named", [True, False])
def test_what_is_written_is_read_back(tmp_path: Path, is_named: bool) -> None:
    mapping = Mapping(
        name="docs",
        folder=tmp_path / "sub" / "docs",
        bucket="one",
        include=("*.md", ODD),
        exclude=("drafts/",),
        tags=("x",),
        prune="detach",
        is_named=is_named,
    )
    added = Added(tmp_path / "config" / "watch.toml")
    assert added.read() == []
    added.write([mapping, Mapping(name=ODD, folder=tmp_path / "two", bucket="two")])
    assert added.read() == [mapping, Mapping(name=ODD, folder=tmp_path / "two", bucket="two")]
