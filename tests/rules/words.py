"""What may not stand in code: broad excepts and SQL outside their places, unfinished work, a missing first line."""

import ast
import re
from collections.abc import Iterator

from tests.rules.modules import Module, is_within

#: Everything may be caught where the process has to outlive it, and nowhere else.
BROAD_EXCEPTS = (
    "svc_daemon.database",
    "svc_daemon.workers",
    "svc_daemon.api",
    "svc_cli.app",
    # What it runs raises plain exceptions.
    "svc_daemon.embed.runtimes",
)
#: The parts that speak SQL.
SQL_OWNERS = ("svc_daemon.database", "svc_daemon.store", "svc_daemon.provider", "svc_cli.sync")

_SQL = re.compile(
    r"\s*(SELECT\s|INSERT (OR \w+ )?INTO\s|UPDATE \w+\s+SET\s|DELETE FROM\s|CREATE TABLE\s|PRAGMA\s|BEGIN IMMEDIATE)"
)
_UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def broad_excepts(module: Module) -> Iterator[str]:
    """A sentence for each handler that swallows everything where that is not the module's task.

    One that cleans up and raises on swallows nothing.
    """
    if any(is_within(module.name, owner) for owner in BROAD_EXCEPTS):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node) and not _raises_on(node):
            yield f"{module.name}:{node.lineno} catches everything"


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"} for name in caught)


def _raises_on(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def stray_sql(module: Module) -> Iterator[str]:
    """A sentence for each SQL statement outside the parts that own SQL."""
    if any(is_within(module.name, owner) for owner in SQL_OWNERS):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SQL.match(node.value):
            yield f"{module.name}:{node.lineno} speaks SQL"


def unfinished(module: Module) -> Iterator[str]:
    """A sentence for each mark of work that was put off."""
    for number, line in enumerate(module.source.splitlines(), start=1):
        if _UNFINISHED.search(line):
            yield f"{module.name}:{number} is marked as unfinished"


def has_docstring(module: Module) -> bool:
    """Whether the module opens with a sentence."""
    return bool((ast.get_docstring(module.tree) or "").strip())
