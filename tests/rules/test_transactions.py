"""Work on the state changes nothing outside of its transaction, since an engine may roll it back and run it again."""

import ast
from collections.abc import Iterator

from tests.rules.modules import Module, modules

#: Methods that change a list, a set, a dictionary or an event.
MUTATORS = {
    *("append", "extend", "insert", "remove", "pop", "clear", "add", "discard", "update", "setdefault", "popitem"),
    *("set", "note_damaged", "note_unembedded"),
}


def leaks(module: Module) -> Iterator[str]:
    """A line for each place where a function with a connection changes a variable from outside, or the context."""
    imported = {name.asname or name.name for node in _imports(module) for name in node.names}
    for function in module.nodes:
        if isinstance(function, ast.FunctionDef) and "connection" in {each.arg for each in function.args.args}:
            own = _own_names(function)
            for node in ast.walk(function):
                name = _changed(node)
                is_outer = name is not None and (name == "context" or name not in own | imported)
                if is_outer or isinstance(node, ast.Nonlocal | ast.Global):
                    yield f"{module.name}:{getattr(node, 'lineno', 0)} {ast.unparse(node)}"


def _imports(module: Module) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in module.nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def _own_names(function: ast.FunctionDef) -> set[str]:
    """The parameters of the function and the variables that it assigns."""
    names = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    stored = (each for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return names | {each.id for each in stored}


def _changed(node: ast.AST) -> str | None:
    """The name of the variable that this statement or call changes from within."""
    if isinstance(node, ast.Call):
        is_change = isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS
        return _root(node.func) if is_change else None
    if isinstance(node, ast.Assign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return next((_root(target) for target in targets if isinstance(target, ast.Attribute | ast.Subscript)), None)
    return None


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


REFUSED = (
    "def f(context):\n    seen = []\n    def work(connection):\n        seen.append(1)",
    "def f(sent):\n    def work(connection):\n        sent['a'] = 1",
    "def f(context):\n    n = 0\n    def work(connection):\n        nonlocal n\n        n += 1",
    "def work(connection, context):\n    context.wakes.indexing.set()",
    "def work(connection, context):\n    context.progress['a'] = 1",
)
ALLOWED = (
    "def work(connection):\n    seen = []\n    seen.append(1)\n    return seen",
    "from svc_daemon.store import uploads\ndef work(connection):\n    uploads.update(connection)",
    "def read(other):\n    seen = []\n    seen.append(1)",
)


def test_work_changes_nothing_outside_of_its_transaction() -> None:
    assert [leak for module in modules("svc_daemon") for leak in leaks(module)] == []


def test_work_that_changes_something_outside_is_found() -> None:
    for source in REFUSED:
        assert list(leaks(Module("svc_daemon.operations.sample", source))), source
    assert [list(leaks(Module("svc_daemon.operations.sample", source))) for source in ALLOWED] == [[], [], []]
