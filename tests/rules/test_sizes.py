"""Functions and files stay short enough to be read at once."""

import tomllib

from tests.rules.modules import ROOT, Module, modules
from tests.rules.sizes import (
    LONGEST_FILE,
    LONGEST_FUNCTION,
    USUAL_FILE,
    USUAL_FUNCTION,
    Size,
    file_size,
    function_sizes,
    has_empty_name,
    share_within,
    too_long,
)

ALL = modules("svc_daemon", "svc_cli", "tests")
FUNCTIONS = [size for module in ALL for size in function_sizes(module)]
FILES = [file_size(module) for module in ALL]


def test_no_function_is_over_the_limit() -> None:
    assert too_long(FUNCTIONS, LONGEST_FUNCTION) == []


def test_nine_of_ten_functions_are_short() -> None:
    assert share_within(FUNCTIONS, USUAL_FUNCTION) >= 0.9


def test_no_file_is_over_the_limit() -> None:
    assert too_long(FILES, LONGEST_FILE) == []


def test_nine_of_ten_files_are_short() -> None:
    assert share_within(FILES, USUAL_FILE) >= 0.9


def test_ruff_holds_the_complexity_at_ten() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "C90" in lint["select"]
    assert lint["mccabe"]["max-complexity"] <= 10


def test_each_module_is_named_for_what_it_owns() -> None:
    assert [module.name for module in ALL if has_empty_name(module)] == []


def test_a_function_is_counted_from_def_to_its_last_line() -> None:
    source = "@decorated\ndef outer():\n    def inner():\n        return 1\n\n    return inner\n"
    assert list(function_sizes(Module("sample", source))) == [Size("sample:outer", 5), Size("sample:inner", 2)]


def test_a_function_over_the_limit_is_told() -> None:
    source = "async def long():\n" + "    work()\n" * LONGEST_FUNCTION
    assert too_long(list(function_sizes(Module("sample", source))), LONGEST_FUNCTION) == ["sample:long has 41 lines"]


def test_a_file_over_the_limit_is_told() -> None:
    assert too_long([file_size(Module("sample", "\n" * 401))], LONGEST_FILE) == ["sample has 401 lines"]


def test_the_share_of_short_ones_counts_the_limit_itself_as_short() -> None:
    assert share_within([Size("short", 25), Size("long", 26)], 25) == 0.5


def test_a_name_that_says_nothing_is_told() -> None:
    assert has_empty_name(Module("svc_daemon.core.utils", ""))
    assert not has_empty_name(Module("svc_daemon.core.chunks", ""))
