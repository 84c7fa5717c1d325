"""Whatever a user can type or meet is told in docs/."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from typer.main import get_command

from svc_cli.app import build
from svc_cli.errors import SvcError
from svc_cli.exits import Exit
from svc_daemon.command import app as daemon_app
from svc_daemon.settings import Limits, variable
from svc_daemon.wire.codes import ErrorCode, SourceErrorCode
from tests.rules.modules import ROOT, Module, modules
from tests.rules.names import codes_in, dead_links, missing, variables_in, variables_named


def _page(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")


def _settings() -> set[str]:
    limits = {variable(limit.name) for limit in fields(Limits)}
    return limits | variables_in(modules())


def test_every_command_is_in_the_docs() -> None:
    commands = [*_commands(build(), "svc"), *_commands(get_command(daemon_app), "svc-daemon")]
    assert len(commands) > 10
    assert missing(commands, _page("commands.md")) == []


def _commands(command: Any, path: str) -> Iterator[str]:
    """The path of each command that does something, such as `svc bucket ls`; typer's groups have no public type."""
    if not hasattr(command, "list_commands"):
        yield path
        return
    context = command.context_class(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if not inner.hidden:
            yield from _commands(inner, f"{path} {name}")


def test_every_setting_is_in_the_docs() -> None:
    assert missing(_settings(), _page("settings.md")) == []


def test_the_docs_name_no_setting_that_does_not_exist() -> None:
    named = variables_named(_page("settings.md"))
    assert sorted(named - _settings() - {"SVC_LIMIT"}) == []


def test_every_error_code_is_in_the_docs() -> None:
    assert missing([*ErrorCode, *SourceErrorCode], _page("errors.md")) == []


def test_every_code_of_the_command_line_is_in_the_docs() -> None:
    codes = codes_in(modules()) - {SvcError.code}  # the root of the tree, which is never raised itself
    assert {"svc_usage", "svc_bug"} <= codes
    assert missing(codes, _page("errors.md")) == []


def test_a_code_is_explained_once() -> None:
    told = re.findall(r"^\| (?:\d+ \| )?`(\w+)` \|", _page("errors.md"), re.MULTILINE)
    assert set(ErrorCode) <= set(told)
    assert [code for code, times in Counter(told).items() if times > 1] == []


def test_every_exit_code_is_in_the_docs() -> None:
    assert [code for code in Exit if f"| {int(code)} |" not in _page("errors.md")] == []


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    assert {str(page): dead for page in pages if (dead := dead_links(page))} == {}


def test_every_page_that_the_code_names_is_there() -> None:
    named = {page for module in modules() for page in re.findall(r"\bdocs/[\w/-]+\.md\b", module.source)}
    examples = {"docs/leave.md", "docs/draft.md", "docs/old.md"}
    assert sorted(page for page in named - examples if not (ROOT / page).exists()) == []


def test_a_link_that_leads_nowhere_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# The Page, `x`\n[a](#the-page-x) [b](page.md#gone) [c](gone.md) [d](https://e.example/f)\n")
    assert dead_links(page) == ["](page.md#gone)", "](gone.md)"]


def test_a_name_that_the_page_lacks_is_told() -> None:
    assert missing(["a_code", "another"], "`a_code`: told. another: not as code.") == ["another"]


def test_a_longer_name_does_not_stand_for_a_shorter_one() -> None:
    assert missing(["svc bucket"], "`svc buckets`") == ["svc bucket"]
    assert missing(["svc bucket ls"], "`svc bucket ls [--json]`") == []


def test_a_setting_in_the_code_is_found() -> None:
    assert variables_in([Module("sample", "environ['SVC_COLOUR'], 'use SVC_OTHER instead', 'SVC_'")]) == {"SVC_COLOUR"}


def test_a_setting_on_a_page_is_found() -> None:
    assert variables_named("Set `SVC_COLOUR`, or SVC_TASTE=1.") == {"SVC_COLOUR", "SVC_TASTE"}


def test_a_code_of_the_command_line_is_found() -> None:
    source = "Error('it failed', code='svc_taste'); import_module('svc_cli.x'); run('-m', 'svc_daemon')"
    assert codes_in([Module("sample", source)]) == {"svc_taste"}
