"""Imports go down only, and each library has its owners."""

import ast
import re
from pathlib import Path

import pytest

from tests.rules.layers import LEVELS, circle, level_of, violations
from tests.rules.modules import ROOT, Module, modules

REFUSED = (
    ("svc_daemon.store.rows.tasks", "from svc_daemon import api"),
    ("svc_daemon.api.handlers.files", "from svc_daemon.workers import indexing"),
    ("svc_daemon.store.rows.tasks", "from ...operations import ingest"),
    ("svc_daemon.core.chunks", "def late():\n    from svc_daemon.databases.sqlite import SqliteDatabase"),
    ("svc_daemon.somewhere", "from svc_daemon.errors import ServiceError"),
    ("svc_daemon.api.handlers.files", "from svc_cli.console import say"),
    ("svc_cli.client.api", "from svc_daemon.errors import ServiceError"),
    ("svc_cli.console", "import svc_cli.commands.daily.upload"),
    ("svc_daemon.operations.ingest.files", "from starlette.requests import Request"),
    ("svc_daemon.operations.ingest.files", "from sqlite3 import Connection"),
    ("svc_cli.sync.scan", "import watchdog.observers"),
    ("svc_daemon.store.rows.tasks", "def late():\n    import psycopg"),
    ("svc_daemon.server.server", "from svc_daemon.cluster.s3 import Objects"),
    ("svc_daemon.server.server", "try:\n    import svc_daemon.cluster.milvus.provider\nexcept ImportError:\n    pass"),
)

ALLOWED = (
    ("svc_daemon.server.server", "def late():\n    from svc_daemon.cluster.s3 import Objects"),
    ("svc_daemon.server.server", "if TYPE_CHECKING:\n    from svc_daemon.cluster.s3 import Objects"),
    ("svc_daemon.cluster.s3", "import obstore"),
    ("svc_daemon.cluster.milvus.rows", "from svc_daemon.cluster.milvus.fields import FIELDS"),
)


def test_a_module_imports_only_what_the_table_allows() -> None:
    assert [violation for module in modules() for violation in violations(module)] == []


def test_every_module_has_a_level() -> None:
    inner = [module.name for module in modules() if "." in module.name]
    assert [name for name in inner if level_of(name) is None] == []


@pytest.mark.parametrize(("name", "source"), REFUSED)
def test_an_import_against_the_table_is_found(name: str, source: str) -> None:
    assert len(list(violations(Module(name, source)))) == 1


def test_an_import_that_the_table_allows_is_not_reported() -> None:
    assert [violation for name, source in ALLOWED for violation in violations(Module(name, source))] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle(modules()) == []


@pytest.mark.parametrize(
    ("late", "found"), (("", {"a.one", "a.two", "a"}), ("if TYPE_CHECKING:\n    ", set()), ("def f():\n    ", set()))
)
def test_a_circle_of_imports_is_found_also_within_a_part(late: str, found: set[str]) -> None:
    sources = {"a": "from a.one import run", "a.one": "from a import two", "a.two": f"{late}from a import run"}
    assert set(circle([Module(name, source, name == "a") for name, source in sources.items()])) == found


@pytest.mark.parametrize("package", sorted(LEVELS))
def test_the_map_of_a_package_names_its_parts_and_no_others(package: str) -> None:
    text = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))) or ""
    shown = re.findall(r"^ {4,20}([a-z_/|, ]+?),?(?:  |$| (?=SQL|text ))", text, re.MULTILINE)
    named = {name for line in shown for name in re.findall(r"[a-z_]+", line)}
    assert named == parts_in(ROOT / package) - {"cluster"}


@pytest.mark.parametrize("package", ("exports", "sync", "sync/watch", "transfer"))
def test_the_map_of_a_folder_names_its_modules_and_no_others(package: str) -> None:
    text = ast.get_docstring(ast.parse((ROOT / "svc_cli" / package / "__init__.py").read_text(encoding="utf-8"))) or ""
    shown = " ".join(re.findall(r"^([a-z_, ]+?) {2,}", text, re.MULTILINE))
    assert set(re.findall(r"[a-z_]+", shown)) == parts_in(ROOT / "svc_cli" / package)


def parts_in(folder: Path) -> set[str]:
    """Return the names of the modules and packages in a package, without those that begin with two underscores."""
    paths = (path for path in folder.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py")
    return {path.stem for path in paths if not path.stem.startswith("__")}
