"""Engines are selected by settings, reached with verified certificates, and imported only if they are used."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from svc_daemon.cluster.engines import checked_tls
from svc_daemon.errors import StorageError
from svc_daemon.server.engines import EMBEDDED, choose_engines
from svc_daemon.settings.daemon import Role, Settings
from svc_daemon.settings.limits import SettingError
from tests.acceptance.forks import ROOT

CLUSTER = {
    "SVC_STATE_URL": "postgresql://svc:pa-ss@db.example/svc",
    "SVC_BLOBS_URL": "s3://bucket/prefix",
    "SVC_INDEX_URL": "https://milvus.example:19530/",
}
TOKEN = {"SVC_INDEX_TOKEN": "root:to-ken"}


def refusal(environ: dict[str, str], role: Role = Role.ALL) -> str:
    """Return the error about these variables, and assert that it contains no secret."""
    with pytest.raises(SettingError) as refused:
        Settings.from_environ(environ, role=role)
    assert not [secret for secret in ("pa-ss", "to-ken") if secret in str(refused.value)]
    return str(refused.value)


def test_three_engine_addresses_select_a_cluster_and_none_the_embedded_engines() -> None:
    cluster = Settings.from_environ(CLUSTER | TOKEN).cluster
    assert cluster is not None
    fields = (cluster.state_url, cluster.blobs_url, cluster.index_url, cluster.index_token)
    assert fields == (*(url.rstrip("/") for url in CLUSTER.values()), "root:to-ken")
    assert Settings.from_environ(dict.fromkeys(CLUSTER, "")).cluster is None
    assert choose_engines(None, {}) is EMBEDDED


def test_representation_of_settings_hides_passwords_and_tokens() -> None:
    shown = repr(Settings.from_environ(CLUSTER | TOKEN))
    assert ("s3://bucket/prefix" in shown, "pa-ss" in shown, "to-ken" in shown) == (True, False, False)


def test_incomplete_engine_addresses_are_refused_with_the_missing_names() -> None:
    for name, url in CLUSTER.items():
        message = refusal({key: value for key, value in CLUSTER.items() if key != name} | TOKEN)
        assert message.endswith(f"{name} is missing.")
        assert " and ".join(other for other in CLUSTER if other != name) in refusal({name: url})
    assert "SVC_INDEX_URL are missing" in refusal(TOKEN)


def test_invalid_engine_addresses_are_refused_with_an_example() -> None:
    for name, wrong in (
        ("SVC_STATE_URL", "mysql://svc:pa-ss@db.example/svc"),
        ("SVC_STATE_URL", "svc:pa-ss@db.example/svc"),
        ("SVC_STATE_URL", "postgresql://"),
        ("SVC_BLOBS_URL", "https://bucket.s3.example"),
        ("SVC_BLOBS_URL", "s3://key:pa-ss@bucket"),
        ("SVC_BLOBS_URL", "s3://B"),
        ("SVC_BLOBS_URL", "s3://bucket/a b"),
        ("SVC_INDEX_URL", "milvus.example:19530"),
        ("SVC_INDEX_URL", "https://root:to-ken@milvus.example"),
        ("SVC_INDEX_URL", "https://milvus.example/path"),
        ("SVC_INDEX_URL", "https://milvus.example/?token=to-ken"),
    ):
        assert refusal({**CLUSTER, name: wrong}).startswith(f"{name} must be an address such as "), wrong
    assert "SVC_INDEX_TOKEN" in refusal({**CLUSTER, "SVC_INDEX_TOKEN": "to-ken\n"})


@pytest.mark.parametrize("role", (Role.API, Role.WORKER))
def test_roles_api_and_worker_need_a_cluster(role: Role) -> None:
    assert "needs a cluster" in refusal({}, role)
    assert Settings.from_environ(CLUSTER, role=role).role is role


def test_certificate_of_a_remote_database_is_verified_by_default() -> None:
    far = "postgresql://svc@db.example/svc"
    checked = "sslmode=verify-full&sslrootcert="
    for url, environ, wanted in (
        (far, {"SSL_CERT_FILE": "/ca.pem"}, f"{far}?{checked}%2Fca.pem"),
        (f"{far}?application_name=a", {"SSL_CERT_FILE": "/ca.pem"}, f"{far}?application_name=a&{checked}%2Fca.pem"),
        (f"{far}?sslrootcert=/b.pem", {"SSL_CERT_FILE": "/ca.pem"}, f"{far}?sslrootcert=/b.pem&sslmode=verify-full"),
        (far, {"PGSSLROOTCERT": "/c.pem"}, f"{far}?sslmode=verify-full"),
        (f"{far}?sslmode=verify-ca", {"SSL_CERT_FILE": "/ca.pem"}, f"{far}?sslmode=verify-ca&sslrootcert=%2Fca.pem"),
        (far, {"PGSSLMODE": "verify-full", "SSL_CERT_FILE": "/ca.pem"}, f"{far}?sslrootcert=%2Fca.pem"),
        # Set by the user.
        (f"{far}?sslmode=require", {}, f"{far}?sslmode=require"),
        (far, {"PGSSLMODE": "disable"}, far),
        # A database on this machine.
        *((url, dict[str, str](), url) for url in ("postgresql://127.0.0.1:5/a", "postgresql:///a?host=/run")),
        ("postgresql://[::1]/a", {}, "postgresql://[::1]/a"),
    ):
        assert checked_tls(url, environ) == wanted


def test_unusable_ssl_cert_file_is_refused_with_its_reason(tmp_path: Path) -> None:
    cluster = Settings.from_environ(CLUSTER).cluster
    (tmp_path / "empty.pem").touch()
    for name, reason in (("missing.pem", "No such file"), ("empty.pem", "no certificates")):
        with pytest.raises(StorageError, match=f"SSL_CERT_FILE names .*{name}, which can't be used: .*{reason}"):
            choose_engines(cluster, {"SSL_CERT_FILE": str(tmp_path / name)})
    choose_engines(cluster, {})


def test_missing_engine_library_is_reported_with_the_extra_to_install() -> None:
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('psycopg', 'obstore', 'pymilvus')))\n"
        "from pathlib import Path\n"
        "from svc_daemon.server.engines import choose_engines\n"
        "from svc_daemon.errors import StorageError\n"
        "from svc_daemon.paths import DataFiles\n"
        "from svc_daemon.settings.servers import ClusterSettings\n"
        "cluster = ClusterSettings(state_url='postgresql:///a', blobs_url='s3://abc', index_url='http://m')\n"
        "engines, files = choose_engines(cluster, {}), DataFiles(Path('.'))\n"
        "for opening in (lambda: engines.open_state(files, print), lambda: engines.open_bytes(files, None, print),\n"
        "                lambda: engines.make_provider(Path('.'), clock=None)):\n"
        "    try:\n"
        "        opening()\n"
        "    except StorageError as error:\n"
        "        print(error.message)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = ended.stdout.splitlines()
    assert [line.count("[cluster]") for line in lines] == [1, 1, 1], ended.stdout + ended.stderr


def test_server_and_command_line_import_no_library_of_a_cluster_or_of_mcp() -> None:
    unwanted = {"psycopg", "obstore", "pymilvus", "grpc", "mcp", "mcp_types", "svc_daemon.tools.catalogue"}
    program = f"import sys, svc_daemon.server.server, svc_cli.app; print(sorted({unwanted} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


@pytest.mark.skipif(find_spec("pymilvus") is None, reason="needs the extra `cluster`")
def test_file_of_variables_in_the_current_folder_sets_no_variable_of_the_daemon(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("AWS_ENDPOINT_URL=http://stranger.example\n")
    program = "import os, svc_daemon.cluster.milvus.server; print(os.environ.get('AWS_ENDPOINT_URL'))"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "None\n"
