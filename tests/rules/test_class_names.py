"""One name, one thing: no class of either program has the name of another.

The types of the client's answers are made from the daemon's models, and have their names.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable

from tests.rules import client_types
from tests.rules.modules import Module, is_within, modules


def homonyms(modules: Iterable[Module]) -> dict[str, list[str]]:
    """The modules of each class name that is defined more than once, nested classes included."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module.name)
    return {name: where for name, where in found.items() if len(where) > 1}


def test_a_class_name_is_unique() -> None:
    assert homonyms(module for module in modules() if not is_within(module.name, client_types.PACKAGE)) == {}
    pair = [Module("svc_daemon.core.a", "class Answer: ..."), Module("svc_cli.b", "def f():\n    class Answer: ...")]
    assert homonyms(pair) == {"Answer": ["svc_daemon.core.a", "svc_cli.b"]}
