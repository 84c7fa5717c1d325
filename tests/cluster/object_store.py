"""Start OpenStack Swift with its S3 API: four processes on loopback, with one disk and one replica."""

import getpass
import hashlib
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from svc_daemon.cluster.s3.stores import ObjectStores, open_objects
from svc_daemon.paths import DataFiles
from tests.cluster.engines import Engine, free_port, listens, running

ACCESS_KEY, SECRET_KEY, BUCKET = "test:tester", "testing", "svc"
_PARTS = ("account", "container", "object")
_PIPELINE = (
    "catch_errors proxy-logging cache listing_formats bulk tempurl s3api tempauth copy slo dlo symlink"
    " versioned_writes proxy-server"
)
_COMMON = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {folder}
log_level = WARNING
"""
_BACKEND = """devices = {folder}/disks
mount_check = false
[pipeline:main]
pipeline = {part}-server
[app:{part}-server]
use = egg:swift#{part}
"""
_PROXY = """[pipeline:main]
pipeline = {pipeline}
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
# There is no memcached: nothing is cached, and nobody is slowed down for that.
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
memcache_max_connections = 1
{plain}"""


@dataclass
class ObjectStore:
    """A running S3 store with an empty bucket `svc`."""

    endpoint: str
    #: The process that serves S3 requests, which can be stopped and started again.
    proxy: Engine
    port: int

    @property
    def environ(self) -> dict[str, str]:
        return environ_of(self.endpoint)

    def start(self) -> None:
        self.proxy.start(lambda: listens(self.port))

    def open_bytes(self, files: DataFiles, executor: Executor, _: object) -> ObjectStores:
        """Open the byte stores of the daemon with these files, under a prefix of its own."""
        return open_objects(url_for(files.root), self.environ, files.staging, executor)


def keep_bytes_there(endpoint: str) -> None:
    """Make all daemons in the test's process keep their bytes in this store, each installation under its own prefix."""
    from tests.api.daemons import Daemon  # noqa: PLC0415
    from tests.api.nodes import installation_of  # noqa: PLC0415

    def open_bytes(files: DataFiles, executor: Executor, _: object) -> ObjectStores:
        return open_objects(url_for(installation_of(files)), environ_of(endpoint), files.staging, executor)

    Daemon.open_bytes = staticmethod(open_bytes)


def environ_of(endpoint: str) -> dict[str, str]:
    """Return the usual AWS variables for the store at this endpoint."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
    }


def url_for(folder: Path) -> str:
    """Return the SVC_BLOBS_URL of the installation with this folder."""
    return f"s3://{BUCKET}/{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Run the store during the block, with its files in this folder."""
    ports = {part: free_port() for part in (*_PARTS, "proxy")}
    _write_files(folder, ports)
    with ExitStack() as stack:
        engines = {}
        for part, port in ports.items():
            module = f"swift.{'obj' if part == 'object' else part}.server"
            program = f"import sys; from {module} import main; sys.exit(main())"
            engine = Engine(folder / part, [sys.executable, "-c", program, str(folder / f"{part}.conf")])
            engines[part] = stack.enter_context(running(engine, lambda port=port: listens(port)))  # type: ignore[misc]
        store = ObjectStore(f"http://127.0.0.1:{ports['proxy']}", engines["proxy"], ports["proxy"])
        _make_bucket(store)
        yield store


def _write_files(folder: Path, ports: dict[str, int]) -> None:
    (folder / "disks" / "d1").mkdir(parents=True)
    (folder / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = tests\n[storage-policy:0]\nname = one\ndefault = yes\n"
    )
    filters = (name for name in _PIPELINE.split()[:-1] if f"[filter:{name}]" not in _PROXY)
    plain = "".join(f"[filter:{name}]\nuse = egg:swift#{name.replace('-', '_')}\n" for name in filters)
    for part, port in ports.items():
        own = _PROXY if part == "proxy" else _BACKEND
        values: dict[str, Any] = {"port": port, "user": getpass.getuser(), "folder": folder, "part": part}
        (folder / f"{part}.conf").write_text((_COMMON + own).format(**values, pipeline=_PIPELINE, plain=plain))
    # Imported late because it patches the standard library.
    from swift.common.ring import RingBuilder  # noqa: PLC0415

    for part in _PARTS:
        ring = RingBuilder(part_power=2, replicas=1, min_part_hours=0)
        ring.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": ports[part], "device": "d1", "weight": 1.0})
        ring.rebalance()
        ring.get_ring().save(str(folder / f"{part}.ring.gz"))


def _make_bucket(store: ObjectStore) -> None:
    import obstore  # noqa: PLC0415
    from obstore.store import S3Store  # noqa: PLC0415

    signing = S3Store(
        BUCKET,
        endpoint=store.endpoint,
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        region="us-east-1",
        client_options={"allow_http": True},
    )
    httpx.put(obstore.sign(signing, "PUT", "", timedelta(minutes=1)), timeout=30).raise_for_status()
