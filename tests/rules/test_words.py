"""Each module says what it owns, and does only that."""

import pytest

from tests.rules.modules import Module, modules
from tests.rules.words import broad_excepts, has_docstring, stray_sql, unfinished

PRODUCT = modules()
ALL = modules("svc_daemon", "svc_cli", "tests")


def test_every_module_opens_with_what_it_owns() -> None:
    assert [module.name for module in ALL if not has_docstring(module)] == []


def test_everything_is_caught_only_where_the_process_must_outlive_it() -> None:
    assert [told for module in PRODUCT for told in broad_excepts(module)] == []


def test_sql_is_spoken_only_by_its_owners() -> None:
    assert [told for module in PRODUCT for told in stray_sql(module)] == []


def test_nothing_is_marked_as_unfinished() -> None:
    assert [told for module in ALL for told in unfinished(module)] == []


@pytest.mark.parametrize("handler", ["except:", "except Exception:", "except (ValueError, BaseException) as error:"])
def test_a_broad_except_is_told(handler: str) -> None:
    source = f"try:\n    work()\n{handler}\n    pass\n"
    assert list(broad_excepts(Module("svc_daemon.store.sources", source))) == [
        "svc_daemon.store.sources:3 catches everything"
    ]
    assert list(broad_excepts(Module("svc_cli.app", source))) == []


def test_a_handler_that_cleans_up_and_raises_on_is_fine() -> None:
    source = "try:\n    work()\nexcept BaseException:\n    clean_up()\n    raise\n"
    assert list(broad_excepts(Module("sample", source))) == []


def test_a_narrow_except_is_fine() -> None:
    assert list(broad_excepts(Module("sample", "try:\n    work()\nexcept (OSError, ValueError):\n    pass\n"))) == []


@pytest.mark.parametrize(
    "statement",
    ["SELECT id FROM sources", "UPDATE sources SET status = 1", "\\n  DELETE FROM tasks", "INSERT OR IGNORE INTO t"],
)
def test_sql_outside_the_store_is_told(statement: str) -> None:
    source = f"rows = run('{statement} ')"
    assert list(stray_sql(Module("svc_daemon.operations.ingest", source))) == [
        "svc_daemon.operations.ingest:1 speaks SQL"
    ]
    assert list(stray_sql(Module("svc_daemon.store.sources", source))) == []


def test_prose_is_not_sql() -> None:
    assert list(stray_sql(Module("sample", "'Update what is there. Select one.'"))) == []


def test_unfinished_work_is_told() -> None:
    assert list(unfinished(Module("sample", "work()  # TO" + "DO: later"))) == ["sample:1 is marked as unfinished"]


def test_a_module_without_docstring_is_told() -> None:
    assert not has_docstring(Module("sample", "import os\n"))
    assert not has_docstring(Module("sample", '""" """\n'))
