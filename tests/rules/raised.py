"""Which error codes the product raises."""

import ast
from collections.abc import Iterable

from svc_daemon.wire.error_codes import ErrorCode
from tests.rules.modules import Module, is_within

#: Parts that name codes to describe or translate them, and raise none of them by it.
DESCRIBING = ("svc_daemon.errors", "svc_daemon.wire", "svc_daemon.api.endpoints", "svc_daemon.api.openapi")
#: The translation of starlette's own errors.
TRANSLATING = ("svc_daemon.api.middleware.error_responses",)

_NAMES = {"ErrorCode", "E"}


def codes_raised(modules: Iterable[Module]) -> set[ErrorCode]:
    """Every code that is in the code of a part that may raise it."""
    return {code for module in modules if not _describes(module.name) for code in _codes_in(module)}


def _describes(name: str) -> bool:
    return any(is_within(name, part) for part in (*DESCRIBING, *TRANSLATING))


def _codes_in(module: Module) -> set[ErrorCode]:
    # The constants of `api` are rows of the URL map, which describe what their handlers refuse.
    is_map = is_within(module.name, "svc_daemon.api")
    raising = [node for node in module.tree.body if not (is_map and isinstance(node, ast.Assign))]
    return {
        ErrorCode[node.attr]
        for statement in raising
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in _NAMES
        and node.attr in ErrorCode.__members__
    }
