"""Fixtures with real PostgreSQL, S3 and Milvus; these tests run only with `--cluster` and the extra `cluster-test`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.forks import MORE_MODULES
from tests.acceptance.installations import Installation
from tests.cluster.milvus import PATIENT, Emptying, RunningMilvus, running_milvus
from tests.cluster.nodes import MakeNode, RunningEngines
from tests.cluster.object_store import ObjectStore, object_store
from tests.conftest import UNLIMITED, MakeInstallation

if TYPE_CHECKING:
    from tests.cluster.postgres import PostgresEngine


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Ignored instead of deselected, because they import libraries that are only installed with the extra.
    is_wanted = config.getoption("--cluster") or not collection_path.name.startswith("test_")
    return None if is_wanted else True


@pytest.fixture(scope="session")
def milvus(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[RunningMilvus]:
    """A Milvus that all tests of this process share and that is emptied after each test file."""
    with running_milvus(tmp_path_factory.mktemp("milvus")) as running:
        pytestconfig.pluginmanager.register(Emptying(running.url))
        yield running


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """An S3 store that all tests of this process share, each with its own prefix."""
    with object_store(tmp_path_factory.mktemp("swift")) as store:
        yield store


@pytest.fixture(scope="session")
def engines(milvus: RunningMilvus, store: ObjectStore) -> Iterator[RunningEngines]:
    """All three engines, for tests of whole daemons; a test that stops one has to start it again."""
    from tests.cluster.postgres import running_postgres  # noqa: PLC0415 - of the extra
    from tests.cluster.runs import LIBRARIES  # noqa: PLC0415 - of the extra

    MORE_MODULES.extend(LIBRARIES)
    with running_postgres() as postgres:
        yield RunningEngines(postgres, store, milvus)


@pytest.fixture(scope="module")
def engine() -> "Iterator[PostgresEngine]":
    """A PostgreSQL of the tests of one file, which may stop it."""
    from tests.cluster.postgres import running_postgres  # noqa: PLC0415 - of the extra

    with running_postgres() as engine:
        yield engine


@pytest.fixture
def make_node(engines: RunningEngines, make_installation: MakeInstallation) -> MakeNode:
    """A function that makes nodes of one installation by name, not started, each with its own data directory."""
    environ = engines.environ()

    def make(name: str = "one", **variables: str) -> Installation:
        made = make_installation(name, **{**UNLIMITED, **PATIENT, **environ, **variables})
        made.root.mkdir(parents=True)
        # It waits for three engines, each of which may be busy with the other nodes.
        made.start_timeout_s = made.stop_timeout_s = 90.0
        return made

    return make


@pytest.fixture
def node(make_node: MakeNode) -> Installation:
    """One running node."""
    return make_node().start()
