"""Run other folders' tests on the engines: `pytest --engines tests/api`, and with `--nodes 3` on several daemons.

The main process runs PostgreSQL and the store for all processes of the run. Each installation of a test has
its own database, its own prefix in the store, and its own teams in the index. The small Milvus reads the
rows of all teams for each request, so each process that runs tests has its own Milvus, which is emptied after each
file.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from svc_daemon.cluster.milvus.schema import differs, equals, every
from svc_daemon.cluster.milvus.server import MilvusServer
from svc_daemon.cluster.s3.blobs import blob_name
from svc_daemon.cluster.s3.clients import open_client
from svc_daemon.cluster.s3.parts import session_of
from tests.acceptance.forks import MORE_MODULES
from tests.acceptance.installations import Installation
from tests.cluster.engines import scratch_folder
from tests.cluster.milvus import PATIENT, Emptying, keep_indexes_there, running_milvus
from tests.cluster.object_store import environ_of, keep_bytes_there, object_store, url_for
from tests.cluster.postgres import Databases, running_postgres
from tests.cluster.states import PostgresStates

#: Libraries that the daemons of these runs need in addition, which take a second to import.
LIBRARIES = ("obstore", "psycopg", "pymilvus")
#: The address of each engine of the run, by the option that selects it.
Places = Mapping[str, str]
PLACES: pytest.StashKey[Places] = pytest.StashKey()
#: The databases of a run with PostgreSQL.
STATES: pytest.StashKey[PostgresStates] = pytest.StashKey()


def use_engines(config: pytest.Config, wanted: Collection[str], nodes: int) -> None:
    """Make the installations of the run's tests use these engines, each with this number of nodes."""
    from tests.api.daemons import Daemon  # noqa: PLC0415

    worker_input = getattr(config, "workerinput", None)
    runs_tests = worker_input is not None or not getattr(config.option, "numprocesses", None)
    own = [name for name in wanted if (runs_tests if name == "milvus" else worker_input is None)]
    config.stash[PLACES] = places = {**(worker_input or {}).get("engines", {}), **_start(config, own)}
    if "postgresql" in places:
        config.stash[STATES] = states = PostgresStates(Databases(int(places["postgresql"])))
        Daemon.open_state, Daemon.join = staticmethod(states.open_state), staticmethod(states.join)
        Daemon.prepare_secret = staticmethod(states.prepare_secret)
    if "s3" in places:
        keep_bytes_there(places["s3"])
    if "milvus" in places:
        keep_indexes_there(places["milvus"])
        config.pluginmanager.register(Emptying(places["milvus"]))
    if len(places) == len(_STARTERS):
        MORE_MODULES.extend(LIBRARIES)
        Installation.list_stored = staticmethod(_list_objects)
        Installation.count_vectors = staticmethod(_count_vectors)
        Installation.environ_for = staticmethod(lambda root: _environ(config.stash[STATES], places, root))
    Daemon.node_count = Installation.node_count = nodes


def _start(config: pytest.Config, wanted: Collection[str]) -> Places:
    stack = ExitStack()
    config.add_cleanup(stack.close)
    return {name: _STARTERS[name](stack) for name in wanted}


def _start_postgres(stack: ExitStack) -> str:
    return str(stack.enter_context(running_postgres()).port)


def _start_store(stack: ExitStack) -> str:
    return stack.enter_context(object_store(stack.enter_context(scratch_folder()))).endpoint


def _start_milvus(stack: ExitStack) -> str:
    return stack.enter_context(running_milvus(stack.enter_context(scratch_folder()))).url


_STARTERS = {"postgresql": _start_postgres, "s3": _start_store, "milvus": _start_milvus}


def _environ(states: PostgresStates, places: Places, root: Path) -> dict[str, str]:
    """Return the variables for the daemons of the installation in this folder."""
    return {
        "SVC_STATE_URL": states.url_for(root),
        "SVC_BLOBS_URL": url_for(root),
        "SVC_INDEX_URL": places["milvus"],
        **PATIENT,
        **environ_of(places["s3"]),
    }


def _count_vectors(installation: Installation) -> tuple[int, int]:
    with psycopg.connect(installation.environ["SVC_STATE_URL"]) as state:
        (team_id,) = state.execute("SELECT min(id) FROM teams").fetchone() or ("",)
    of_team = equals("team_id", team_id)
    with closing(MilvusServer(installation.environ["SVC_INDEX_URL"], partitions=2)) as server:
        chunks = server.collections.chunks
        return server.count(chunks, of_team), server.count(chunks, every(of_team, differs("model", "")))


def _list_objects(installation: Installation, folder: str) -> dict[str, int]:
    client = open_client(installation.environ["SVC_BLOBS_URL"], installation.environ)
    listed: Counter[str] = Counter()
    for found in client.list_all(folder):
        if name := blob_name(found) or session_of(found):
            listed[name] += found.size_bytes
    return dict(listed)
