"""Imports go down only, and each library has its owners."""

from tests.rules.layers import level_of, violations
from tests.rules.modules import Module, modules

REFUSED = (
    ("svc_daemon.core.chunks", "import svc_daemon.store.sources"),
    ("svc_daemon.store.sources", "from svc_daemon import api"),
    ("svc_daemon.store.sources", "from svc_daemon.provider.embedded import Index"),
    ("svc_daemon.api.handlers.files", "from svc_daemon.workers import indexing"),
    ("svc_daemon.wire.sources", "from svc_daemon.errors import ServiceError"),
    ("svc_daemon.store.sources", "from ..operations import ingest"),
    ("svc_daemon.core.chunks", "def late():\n    from svc_daemon.database import Database"),
    ("svc_daemon.somewhere", "from svc_daemon.errors import ServiceError"),
    ("svc_daemon.api.handlers.files", "from svc_cli.console import say"),
    ("svc_cli.client.api", "from svc_daemon.errors import ServiceError"),
    ("svc_cli.render.tables", "from svc_cli.client import api"),
    ("svc_cli.console", "import svc_cli.commands.upload"),
    ("svc_daemon.operations.ingest", "from starlette.requests import Request"),
    ("svc_daemon.operations.ingest", "import sqlite3"),
    ("svc_daemon.api.handlers.files", "from sqlite3 import Connection"),
    ("svc_daemon.workers.indexing", "import httpx"),
    ("svc_cli.commands.upload", "from rich.table import Table"),
    ("svc_cli.sync.scan", "import watchdog.observers"),
)
ALLOWED = (
    ("svc_daemon.server", "from svc_daemon.api.app import make_app"),
    ("svc_daemon.api.handlers.files", "from svc_daemon.store import sources"),
    ("svc_daemon.api.handlers.files", "from svc_daemon.api.forms import read_form"),
    ("svc_daemon.api.handlers.files", "from starlette.requests import Request"),
    ("svc_daemon.store.sources", "import sqlite3"),
    ("svc_daemon.operations.ingest", "from sqlite3 import Connection"),
    ("svc_cli.client.api", "from svc_daemon.wire.errors import ErrorCode"),
    ("svc_cli.client.api", "from svc_daemon import paths"),
    ("svc_cli.sync.watch", "from watchdog.observers import Observer"),
)


def test_a_module_imports_only_what_the_table_allows() -> None:
    assert [violation for module in modules() for violation in violations(module)] == []


def test_every_module_has_a_level() -> None:
    inner = [module.name for module in modules() if "." in module.name]
    assert [name for name in inner if level_of(name) is None] == []


def test_an_import_against_the_table_is_found_and_one_that_goes_down_is_fine() -> None:
    for name, source in REFUSED:
        assert len(list(violations(Module(name, source)))) == 1, (name, source)
    for name, source in ALLOWED:
        assert list(violations(Module(name, source))) == [], (name, source)
