"""Runs the tests of byte stores on a data directory."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from svc_daemon.paths import DataFiles
from svc_daemon.store.files.blobs import Blobs
from svc_daemon.store.files.parts import Parts
from tests.store.byte_suite import ByteStoreContract, Node, OpenNode


class TestFolders(ByteStoreContract):
    @pytest.fixture
    def open_node(self, tmp_path: Path) -> Iterator[OpenNode]:
        """Open the stores as the next process does. Only the node opened last may be used."""
        files = DataFiles(tmp_path / "data")
        for folder in (files.blobs, files.staging, files.parts):
            folder.mkdir(parents=True)
        with ThreadPoolExecutor(2) as executor:

            def make() -> Node:
                blobs = Blobs(files, executor, lambda: uuid4().hex)
                return Node(blobs, Parts(files.parts, blobs))

            yield make
