"""Each module opens with what it owns and does only that; what is committed names no machine and no registry."""

import ast
import re
import subprocess
from collections.abc import Iterable, Sequence

import pytest

from tests.rules.modules import ROOT, Module, is_within, modules

#: Everything may be caught where the process has to outlive it, and nowhere else.
BROAD_EXCEPTS = (
    *("svc_daemon.databases", "svc_daemon.cluster.postgres", "svc_daemon.workers", "svc_daemon.api", "svc_cli.app"),
    # What it runs raises plain exceptions.
    "svc_daemon.embed.onnx_inference",
    # A panic of the library under it is no Exception.
    "svc_daemon.provider.embedded.postings",
)
#: The parts that have SQL in them.
SQL_OWNERS = ("svc_daemon.databases", "svc_daemon.store", "svc_daemon.provider", "svc_daemon.cluster", "svc_cli.sync")
SQL = re.compile(
    r"\s*(SELECT\s|INSERT (OR \w+ )?INTO\s|UPDATE \w+\s+SET\s|DELETE FROM\s|CREATE TABLE\s|PRAGMA\s|BEGIN IMMEDIATE)"
)
#: The parsers of JSON and TOML; everybody else calls `parse_json` and `parse_toml`.
PARSERS = ("svc_daemon.wire.light.parsing", "svc_daemon.core.json_bodies")
#: Wrong on Python 3.11.2, which Debian 12 has: a repeated group that is possessive takes too much, and after an error
#: a TaskGroup leaves a cancellation behind that breaks the next `asyncio.timeout`.
BROKEN = re.compile(r"""\)[*+?]\+["(|<{}\\]|\bTaskGroup\(""")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
#: Words of no plain English that are easily said in others, such as again, rebuilt, anyone.
DIALECT = re.compile(r"\b(anew|whoever)\b", re.IGNORECASE)

#: A line of a package's docstring that says what some of its modules do.
_MAPPED = re.compile(r"^((?:[a-z_]+/?, )*[a-z_]+/?)  +\S", re.MULTILINE)

ALL = modules("svc_daemon", "svc_cli", "tests")


def is_broad(node: ast.AST) -> bool:
    """Whether this is a handler that swallows everything; one that cleans up and raises on swallows nothing."""
    if not isinstance(node, ast.ExceptHandler):
        return False
    last, caught = node.body[-1], node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    names = {name.id for name in caught if isinstance(name, ast.Name)}
    raises_on = isinstance(last, ast.Raise) and last.exc is None
    return not raises_on and (node.type is None or bool(names & {"Exception", "BaseException"}))


def is_sql(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(SQL.match(node.value))


def is_parser(node: ast.AST) -> bool:
    """Whether this uses a parser of JSON or TOML that fails on deeply nested documents."""
    names = ("loads", "load", "JSONDecoder")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id in ("json", "tomllib") and node.attr in names
    return isinstance(node, ast.ImportFrom) and node.module in ("json", "tomllib")


def faults(modules: Iterable[Module]) -> list[str]:
    """A sentence for each broad except, SQL statement and parser outside of their places."""
    return [
        f"{module.name}:{getattr(node, 'lineno', 0)} {fault}"
        for module in modules
        for fault, owners, is_fault in (
            ("catches all", BROAD_EXCEPTS, is_broad),
            ("has SQL", SQL_OWNERS, is_sql),
            ("parses by itself", PARSERS, is_parser),
        )
        if not any(is_within(module.name, owner) for owner in owners)
        for node in module.nodes
        if is_fault(node)
    ]


def silent(modules: Iterable[Module]) -> list[str]:
    """The modules that don't open with a sentence."""
    return [module.name for module in modules if not (ast.get_docstring(module.tree) or "").strip()]


def wrong_maps(modules: Sequence[Module]) -> list[str]:
    """A sentence for each package of the command line whose docstring lists other modules than it has."""
    names = [module.name for module in modules]
    return [
        f"{module.name} lists other modules than it has: {sorted(listed ^ held)}"
        for module in modules
        if module.is_package and is_within(module.name, "svc_cli")
        if (listed := set(re.findall("[a-z_]+", " ".join(_MAPPED.findall(ast.get_docstring(module.tree) or "")))))
        if listed != (held := {name.rpartition(".")[2] for name in names if name.rpartition(".")[0] == module.name})
    ]


def found(pattern: re.Pattern[str], modules: Iterable[Module]) -> list[str]:
    """Each line that the pattern finds."""
    lines = ((module, *line) for module in modules for line in enumerate(module.source.splitlines(), start=1))
    return [f"{module.name}:{number}" for module, number, line in lines if pattern.search(line)]


def test_broad_excepts_and_sql_are_only_where_they_belong() -> None:
    assert faults(modules()) == []


def test_every_module_opens_with_what_it_owns_and_nothing_is_marked_as_unfinished() -> None:
    assert (silent(ALL), found(UNFINISHED, ALL)) == ([], [])


def test_a_map_of_a_package_lists_the_modules_that_it_has() -> None:
    assert wrong_maps(modules()) == []
    package, names = (
        Module("svc_cli.room", '"""A room.\n\none  is here\ngone/  was here\n"""', is_package=True),
        ("one", "two"),
    )
    inside = [Module(f"svc_cli.room.{name}", "") for name in names]
    assert wrong_maps([package, *inside]) == ["svc_cli.room lists other modules than it has: ['gone', 'two']"]


def test_the_words_of_the_source_are_plain() -> None:
    assert found(DIALECT, modules()) == []
    assert found(DIALECT, [Module("sample", "# Made anew\n# Made again\n")]) == ["sample:1"]


def test_nothing_is_used_that_an_early_python_gets_wrong() -> None:
    assert found(BROKEN, modules()) == []


def test_a_bad_sample_of_each_is_found() -> None:
    for handler in ("except:", "except Exception:", "except (ValueError, BaseException) as error:"):
        source = f"try:\n    work()\n{handler}\n    pass\n"
        assert faults([Module("svc_daemon.store.rows.tasks", source)]) == ["svc_daemon.store.rows.tasks:3 catches all"]
        assert faults([Module("svc_cli.app", source)]) == []
    for handler in ("except BaseException:\n    clean_up()\n    raise\n", "except (OSError, ValueError):\n    pass\n"):
        assert faults([Module("sample", f"try:\n    work()\n{handler}")]) == []
    for statement in (
        *("SELECT id FROM sources", "UPDATE sources SET status = 1", "\\n  DELETE FROM tasks"),
        "INSERT OR IGNORE INTO t",
    ):
        source = f"rows = run('{statement} ')"
        assert faults([Module("svc_daemon.operations.ingest.files", source)]) == [
            "svc_daemon.operations.ingest.files:1 has SQL"
        ]
        assert faults([Module("svc_daemon.store.rows.tasks", source)]) == []
    for parser in ("document = json.loads(text)", "map(json.loads, lines)", "from tomllib import loads"):
        assert faults([Module("svc_daemon.store.rows.tasks", parser)]) == [
            "svc_daemon.store.rows.tasks:1 parses by itself"
        ]
    assert faults([Module("sample", "'Update what is there. Select one.'")]) == []
    assert found(UNFINISHED, [Module("sample", "work()  # TO" + "DO: later")]) == ["sample:1"]
    for line in ('re.compile(r"(?:a+|b)*+")', "re.compile(r'(?:a)++(b)')", "async with asyncio.TaskGroup() as group:"):
        assert found(BROKEN, [Module("sample", line)]) == ["sample:1"], line
    assert found(BROKEN, [Module("sample", 're.compile(r"[^\\n]*+(?>(?:a)*)")')]) == []
    assert silent([Module("one", "import os\n"), Module("two", '""" """\n')]) == ["one", "two"]


def test_what_a_key_may_reach_is_asked_of_the_key() -> None:
    """`KeyRow.reaches` and its like decide; only filters (SQL, index), policies and the key's own fields take it."""
    taking = {line.partition(":")[0] for line in found(re.compile(r"\bkey\.buckets\b"), modules("svc_daemon"))}
    operations = ("keys", "agents", "retrieve.searches", "shared.events", "webhook_deliveries")
    assert taking == {f"svc_daemon.operations.{name}" for name in operations}


#: Each pattern is written so that it does not match itself.
FORBIDDEN = {
    "a package registry": r"\b(pypi|pythonhosted|npmjs|yarnpkg|crates|conda)\.(org|com|io)\b|--(extra-)?index-url",
    "an install of another project": r"pip3? install( -\S+| [\w-]+\.txt)* ['\"]?svc(?![\w./-])",
    "a place on one machine": r"(?<![\w.])/(work|root|home/\w+|Users/\w+|tmp/\w+|opt/\w+)/",
}
SLASH = "/"
BAD = (
    *("https:" + "//py" + "pi.org/simple", "files.python" + "hosted.org", "--index" + "-url=file:x"),
    *(SLASH + "work/main", SLASH + "home/jo/svc", SLASH + "tmp/svc/venv"),
    *("`pip " + "install 'svc[mcp]'`", "pip " + "install -U svc\n"),
)


def forbidden(text: str) -> list[str]:
    """A phrase for each registry or machine path that a text names."""
    matches = ((meaning, re.finditer(pattern, text)) for meaning, pattern in FORBIDDEN.items())
    return [f"{match.group()} is {meaning}" for meaning, found in matches for match in found]


def test_no_committed_file_names_a_registry_or_a_machine() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [ROOT / name for name in listed.split("\0") if (ROOT / name).is_file()]
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in paths}
    assert {path: found for path, text in texts.items() if (found := forbidden(text))} == {}


@pytest.mark.parametrize("text", BAD)
def test_a_registry_or_a_machine_path_is_found(text: str) -> None:
    assert len(forbidden(f"see {text} there")) == 1
