"""The project's modules as syntax trees, and what each of them imports."""

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("svc_daemon", "svc_cli")


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file of the project."""

    #: Dotted, such as `svc_daemon.wire.light.errors`; a package is named without `__init__`.
    name: str
    source: str
    is_package: bool = False

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.source)

    @property
    def nodes(self) -> Sequence[ast.AST]:
        """All nodes of the tree."""
        return _walked(self.source)

    def imports(self) -> Iterator[str]:
        """Dotted names of everything imported anywhere in the file; `from a import b` counts as `a.b`."""
        return self._imported(self.nodes)

    def eager_imports(self) -> Iterator[str]:
        """Dotted names of what is imported as soon as the file is; functions and `if TYPE_CHECKING:` import later."""
        return self._imported(_run_at_import(self.tree))

    def _imported(self, nodes: Iterable[ast.AST]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{self._origin(node)}.{alias.name}" for alias in node.names)

    def _origin(self, node: ast.ImportFrom) -> str:
        """The absolute module that `from … import` takes from."""
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        above = package[: len(package) - node.level + 1]
        return ".".join([*above, node.module] if node.module else above)


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below this one that runs when the module is imported."""
    for child in ast.iter_child_nodes(node):
        is_for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        if not is_for_types and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _run_at_import(child)


@functools.cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


@functools.cache
def _walked(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_parsed(source)))


def python_files(*folders: str) -> list[Path]:
    """Every Python file under these folders of the repository."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@functools.cache
def modules(*folders: str) -> Sequence[Module]:
    """Every module under these folders of the repository, by default both packages."""
    return [module_at(path) for path in python_files(*(folders or PACKAGES))]


def module_at(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    return Module(name, path.read_text(encoding="utf-8"), is_package)


def is_within(name: str, owner: str) -> bool:
    """Whether a dotted name is this module or package, or something in it."""
    return name == owner or name.startswith(f"{owner}.")
