"""One name, one thing: no class of either program has the name of another."""

import ast
from collections import defaultdict
from collections.abc import Iterable

from tests.rules.modules import Module, modules


def homonyms(modules: Iterable[Module]) -> dict[str, list[str]]:
    """The modules of each class name that is defined more than once, nested classes included."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module.name)
    return {name: where for name, where in found.items() if len(where) > 1}


def test_a_class_name_is_unique() -> None:
    assert homonyms(modules()) == {}
    pair = [Module("svc_daemon.core.a", "class Answer: ..."), Module("svc_cli.b", "def f():\n    class Answer: ...")]
    assert homonyms(pair) == {"Answer": ["svc_daemon.core.a", "svc_cli.b"]}
