"""What a user can type or meet is in docs/; links lead somewhere; the page on proof has each promise of README."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from typer.main import get_command

from svc_cli.app import build
from svc_cli.errors import SvcError
from svc_cli.exits import Exit
from svc_daemon.command.main import app as daemon_app
from svc_daemon.settings.limits import Limits, variable
from svc_daemon.wire.light.error_codes import ErrorCode, SourceErrorCode
from tests.rules.modules import PACKAGES, ROOT, Module, modules

VARIABLE = re.compile(r"SVC_[A-Z][A-Z_]*[A-Z]")
CODE = re.compile(r"svc_[a-z_]+")
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def strings(pattern: re.Pattern[str], modules: Iterable[Module]) -> set[str]:
    """The whole strings in the code that are environment variables, or error codes, of ours."""
    nodes = (node for module in modules for node in module.nodes if isinstance(node, ast.Constant))
    found = {node.value for node in nodes if isinstance(node.value, str) and pattern.fullmatch(node.value)}
    return found - set(PACKAGES)


def missing(names: Iterable[str], page: str) -> list[str]:
    """The names that a page does not have as code, between backquotes."""
    return sorted(name for name in names if not re.search(rf"`{re.escape(name)}[ `]", page))


def dead_links(page: Path) -> list[str]:
    """The links of a page that lead to no file of the repository, or to no heading of one."""
    links = list(LINK.finditer(page.read_text(encoding="utf-8")))
    return [link[0] for link in links if not _leads_somewhere(page.parent / link[1] if link[1] else page, link[2])]


def _leads_somewhere(target: Path, anchor: str | None) -> bool:
    if not target.exists() or not anchor:
        return target.exists()
    # Headings as GitHub names them in links.
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _page(name: str) -> str:
    return (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")


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


def test_every_command_is_in_the_docs() -> None:
    commands = [*_commands(build(), "svc"), *_commands(get_command(daemon_app), "svc-daemon")]
    assert len(commands) > 10
    assert missing(commands, _page("commands.md")) == []


def test_every_setting_is_in_the_docs_and_no_other() -> None:
    settings = {variable(limit.name) for limit in fields(Limits)} | strings(VARIABLE, modules())
    page = _page("settings.md")
    assert missing(settings, page) == []
    assert sorted(set(VARIABLE.findall(page)) - settings - {"SVC_LIMIT"}) == []


def test_every_error_code_and_exit_code_is_in_the_docs_and_explained_once() -> None:
    # The names of metrics begin as the codes of the command line do.
    others = [module for module in modules() if not module.name.endswith(".handlers.machine.metrics")]
    page, codes = _page("errors.md"), strings(CODE, others)
    assert {"svc_usage", "svc_bug"} <= codes
    # The root of the tree is never raised itself.
    assert missing([*ErrorCode, *SourceErrorCode, *codes - {SvcError.code}], page) == []
    explained = re.findall(r"^\| (?:\d+ \| )?`(\w+)` \|", page, re.MULTILINE)
    assert set(ErrorCode) <= set(explained)
    assert [code for code, times in Counter(explained).items() if times > 1] == []
    assert [code for code in Exit if f"| {int(code)} |" not in page] == []


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert {str(page): dead for page in pages if (dead := dead_links(page))} == {}


def test_every_page_that_the_code_names_is_there() -> None:
    named = {page for module in modules() for page in re.findall(r"\bdocs/[\w/-]+\.md\b", module.source)}
    examples = {"docs/leave.md", "docs/draft.md", "docs/old.md"}
    assert sorted(page for page in named - examples if not (ROOT / page).exists()) == []


def test_names_links_and_their_lack_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# The Page, `x`\n[a](#the-page-x) [b](page.md#gone) [c](gone.md) [d](https://e.example/f)\n")
    assert dead_links(page) == ["](page.md#gone)", "](gone.md)"]
    assert missing(["a_code", "another"], "`a_code`: text. another: not as code.") == ["another"]
    # A longer name is no shorter one.
    assert missing(["svc bucket"], "`svc buckets`") == ["svc bucket"]
    assert missing(["svc bucket ls"], "`svc bucket ls [--json]`") == []
    settings = Module("sample", "environ['SVC_COLOUR'], 'use SVC_OTHER instead', 'SVC_'")
    assert strings(VARIABLE, [settings]) == {"SVC_COLOUR"}
    codes = Module("sample", "Error('failed', code='svc_taste'); import_module('svc_cli.x'); run('-m', 'svc_daemon')")
    assert strings(CODE, [codes]) == {"svc_taste"}


PAGE = (ROOT / "docs" / "explanation" / "proof.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"`(pytest|python -m) ([^`]+)`")
PROMISE = re.compile(r"^\* \*\*(.+?)\*\*", re.MULTILINE)


def plain(text: str) -> str:
    """The words without their marks."""
    return re.sub(r"[`*]", "", text)


def test_page_has_each_promise_of_the_readme() -> None:
    promises = PROMISE.findall((ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0])
    assert len(promises) >= 4
    assert [promise for promise in promises if f"| {plain(promise)} |" not in plain(PAGE)] == []


def test_each_command_exists_and_its_short_form_is_part_of_all_tests() -> None:
    commands = COMMAND.findall(PAGE)
    assert len(commands) >= 10
    for program, words in commands:
        first, *rest = words.split()
        if program == "python -m":
            # Its own tests run it.
            assert find_spec(first) is not None, first
            assert rest == [] or all(word.isdigit() for word in rest), words
            continue
        paths = [ROOT / word for word in words.split() if word != "--large"]
        # Without options, `pytest` runs what is below `tests`, and nothing there is left out by default.
        missing = [path for path in paths if not path.is_relative_to(ROOT / "tests") or not path.exists()]
        assert not missing, f"{words}: there is no {missing}"
