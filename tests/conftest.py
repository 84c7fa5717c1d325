"""Options of the test run, and fixtures for all tests: installations with a real daemon."""

import gc
import importlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.installations import Installation

if TYPE_CHECKING:
    import trustme

# Programs that tests start write compiled modules, as in an installation: without them a daemon compiles for a
# fifth of a second before it responds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A run that `nohup` has started ignores SIGHUP, and so would every command of the tests.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

#: Variables that turn off rate limits, for tests that are not about them.
UNLIMITED = {"SVC_LIMIT_CREATES_PER_SECOND": "0", "SVC_LIMIT_BYTES_PER_MINUTE": "0"}

MakeInstallation = Callable[..., Installation]
#: The option that selects each engine, and the mark of the tests that it deselects.
ENGINES = {"postgresql": "sqlite", "s3": "folders", "milvus": "index_files"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--large", action="store_true", help="run the acceptance tests at full size (minutes more)")
    parser.addoption("--cluster", action="store_true", help="collect tests/cluster (needs the extra `cluster-test`)")
    parser.addoption("--engines", action="store_true", help="keep installations on PostgreSQL, S3 and Milvus")
    parser.addoption("--nodes", type=int, default=1, help="with --engines, serve each installation by so many daemons")
    parser.addoption("--postgresql", action="store_true", help="keep the rows of daemons and stores on PostgreSQL")
    parser.addoption("--twice", action="store_true", help="run each transaction of daemons in the test's process twice")
    parser.addoption("--milvus", action="store_true", help="keep indexes of daemons in the test's process on Milvus")
    parser.addoption("--s3", action="store_true", help="keep the bytes of daemons in the test's process on S3")


def pytest_configure(config: pytest.Config) -> None:
    # The daemon and the engines' libraries are imported late, because most runs of single files don't need them.
    if wanted := _engines(config):
        from tests.cluster.runs import use_engines  # noqa: PLC0415

        use_engines(config, wanted, config.getoption("--nodes"))
    if config.getoption("--twice"):
        from tests.api.daemons import Daemon  # noqa: PLC0415
        from tests.api.rehearsals import rehearsing  # noqa: PLC0415

        Daemon.open_state = staticmethod(rehearsing(Daemon.open_state))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Make a worker of pytest-xdist use the engines of this process."""
    if _engines(node.config):
        from tests.cluster.runs import PLACES  # noqa: PLC0415

        node.workerinput["engines"] = node.config.stash[PLACES]


def _engines(config: pytest.Config) -> list[str]:
    """Return the engines that the options select."""
    return [name for name in ENGINES if config.getoption("--engines") or config.getoption(f"--{name}")]


def pytest_collection(session: pytest.Session) -> None:
    """Compile a share of the tests in each worker before all read all of them: else each compiles all, for seconds."""
    # Nearly all that is made now stays until the tests have ended.
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != ["tests"]:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in sorted(Path("tests").rglob("test_*.py"))[number::count]:
        # A test that can't be imported is reported by its collection; those of a cluster need more libraries.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marks = [ENGINES[name] for name in _engines(config)]
    for mark in marks if config.getoption("--nodes") == 1 else [*marks, "one_daemon"]:
        left_out = [item for item in items if item.get_closest_marker(mark)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker(mark)]


def pytest_collection_finish() -> None:
    # What was collected stays until the end: the garbage collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def large(request: pytest.FixtureRequest) -> bool:
    """Whether the tests run at full size."""
    return bool(request.config.getoption("--large"))


@pytest.fixture
def make_installation(tmp_path: Path) -> Iterator[MakeInstallation]:
    """A function that makes installations by name, not started; their daemons are stopped after the test."""
    made: list[Installation] = []

    def make(name: str = "one", **variables: str) -> Installation:
        made.append(Installation(tmp_path / name, **variables))
        return made[-1]

    yield make
    for installation in made:
        installation.clear()


@pytest.fixture
def installation(make_installation: MakeInstallation) -> Installation:
    """A new installation with a running daemon, without rate limits."""
    fresh = make_installation(**UNLIMITED)
    fresh.start()
    return fresh


@pytest.fixture(scope="module")
def shared_installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A running installation that tests of a file share if they don't affect each other."""
    shared = Installation(tmp_path_factory.mktemp("shared"), **UNLIMITED)
    shared.start()
    yield shared
    shared.clear()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of the tests that are coroutines."""
    return "asyncio"


@pytest.fixture(scope="session")
def authority() -> "trustme.CA":
    """An authority that issues certificates."""
    import trustme  # noqa: PLC0415 - few tests need it

    return trustme.CA()


@pytest.fixture(params=[True, False], ids=["opens folders", "by path"])
def opens_folders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the system opens folders. Windows doesn't."""
    if not request.param:
        monkeypatch.setattr(os, "supports_dir_fd", set[Callable[..., Any]]())
    return bool(request.param)
