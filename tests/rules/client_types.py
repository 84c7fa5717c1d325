"""The types of the Python client's answers, made from the daemon's models.

`python -m tests.rules.client_types` writes them to `svc_cli/client/types`: for each module of `svc_daemon.wire` one
with a TypedDict for each model that a route answers with, and for the fields that methods of the client take.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from svc_daemon.api.app import ENDPOINTS
from svc_daemon.api.endpoints import PAGE
from svc_daemon.wire import agents, buckets, keys, qa, responses, searches, sources, vectors
from tests.rules.modules import ROOT

PACKAGE = "svc_cli.client.types"
FOLDER = ROOT / "svc_cli" / "client" / "types"
COMMAND = "python -m tests.rules.client_types"

Model = type[BaseModel]

#: The models of the fields that methods take as keywords.
INPUTS: tuple[Model, ...] = (
    agents.AgentCreate,
    agents.AgentUpdate,
    agents.PolicyFields,
    buckets.BucketFields,
    buckets.BucketUpdate,
    buckets.ChunkingUpdate,
    keys.KeyFields,
    qa.QaCreate,
    responses.ResponseCreate,
    searches.SearchRequest,
    sources.SourceUpdate,
    vectors.OfferedVector,
)
#: Other names for models of which methods take a part.
NAMES: dict[Model, str] = {responses.ResponseCreate: "AskOptions", searches.SearchRequest: "SearchOptions"}
#: The fields that are parameters of the methods, or that OpenAI's clients alone send.
PARAMETERS: dict[Model, set[str]] = {
    qa.QaCreate: {"question", "answer", "webhook"},
    responses.ResponseCreate: set(responses.ResponseCreate.model_fields) - {"buckets", "instructions", "metadata"},
    searches.SearchRequest: {"query"},
}
#: In a request, as in an update, some of the sizes are enough.
PARTIAL: dict[Model, Model] = {buckets.Chunking: buckets.ChunkingUpdate}

#: The route whose query parameters a type of filters has, by the module and name of the type.
FILTERS = {("sources", "SourceFilters"): ("GET", "/v1/buckets/{bucket}/sources")}

_LISTS = ("AgentList", "BucketList", "BucketSources", "DeliveryList", "KeyList")
#: Fields that an answer has only if the request asks for them. The others are always sent, even those with a default.
UNASKED = {
    ("Batch", "pack"),
    ("BatchStatus", "items"),
    ("BatchTarget", "offset"),
    ("BatchTarget", "size_bytes"),
    ("Bucket", "knowledgeIds"),
    ("SourceVerified", "provider"),
    *((model, name) for model in _LISTS for name in ("has_more", "last_id")),
}


@dataclass
class Written:
    """One module while it is written."""

    noun: str
    classes: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    typing_names: set[str] = field(default_factory=lambda: {"TypedDict"})
    #: The names that it takes from other modules, by module.
    imported: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, parents: list[str], doc: str | None, fields: Iterable[tuple[str, str, str]]) -> None:
        """Add a class, with the name, type and description of each of its fields."""
        lines = ["", "", f"class {name}({', '.join(parents) or 'TypedDict'}):", *_docstring(doc), *[""] * bool(doc)]
        for name_of_field, shown, described in fields:
            lines += [f"    {name_of_field}: {shown}", *_docstring(described)]
        self.names.append(name)
        self.classes += lines

    def text(self) -> str:
        about = f'"""Types of {self.noun}. Made from `svc_daemon.wire` by `{COMMAND}`."""'
        imports = [f"from typing import {', '.join(sorted(self.typing_names))}", *[""] * bool(self.imported)]
        for noun, names in sorted(self.imported.items()):
            imports.append(f"from {PACKAGE}.{noun} import {', '.join(sorted(names))}")
        return "\n".join([about, "", *imports, *self.classes]) + "\n"

    def show(self, annotation: Any, *, is_input: bool = False) -> str:
        """A type as it is written in Python, without the limits of values."""
        origin, inner = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self.show(inner[0], is_input=is_input)
        if origin is Literal:
            self.typing_names.add("Literal")
            return f"Literal[{', '.join(repr(each).replace(chr(39), chr(34)) for each in inner)}]"
        shown = [self.show(each, is_input=is_input) for each in inner]
        if origin in (list, dict):
            return f"{origin.__name__}[{', '.join(shown)}]"
        if inner:
            return " | ".join(shown)
        if annotation in (Any, NoneType):
            self.typing_names |= {"Any"} if annotation is Any else set()
            return "Any" if annotation is Any else "None"
        return self.name(PARTIAL.get(annotation, annotation) if is_input else annotation)

    def name(self, model: Any) -> str:
        name = _name(model) if issubclass(model, BaseModel) else str(model.__name__)
        if issubclass(model, BaseModel) and (noun := _noun(model)) != self.noun:
            self.imported.setdefault(noun, set()).add(name)
        return name

    def optional(self, shown: str) -> str:
        self.typing_names.add("NotRequired")
        return f"NotRequired[{shown}]"


def answers() -> set[Model]:
    """Every model that a route answers with, and all that those are made of."""
    found: set[Model] = set()
    todo = [model for endpoint in ENDPOINTS for answer in endpoint.answers.values() for model in models_in(answer)]
    while todo:
        model = todo.pop()
        if model not in found:
            found.add(model)
            todo += [inner for each in model.model_fields.values() for inner in models_in(each.annotation)]
            todo += _parents(model)
    return found


def models_in(annotation: Any) -> list[Model]:
    """The models in a type, however deep."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in get_args(annotation) for model in models_in(each)]


def generated() -> dict[str, str]:
    """The text of each file by its name."""
    models = answers()
    files: list[Written] = []
    for noun in sorted({_noun(model) for model in (*models, *INPUTS)}):
        module, written = import_module(f"svc_daemon.wire.{noun}"), Written(noun)
        own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
        for model, (doc, comments) in ((each, _described(each)) for each in own if each in (*models, *INPUTS)):
            is_input = model in INPUTS
            parents = [] if is_input else [written.name(each) for each in _parents(model)]
            fields = _input_fields(written, model) if is_input else _answer_fields(written, model)
            commented = [(name, shown, comments.get(name, "")) for name, shown in fields]
            # What the docstring says of a whole body is not true of a part of it.
            written.add(_name(model), parents, None if model in NAMES else doc, commented)
        for name, route in ((name, route) for (owner, name), route in FILTERS.items() if owner == noun):
            written.add(
                name, [], "The filters of a list; those that are given must all match.", _filters(written, route)
            )
        files.append(written)
    exported = [f"from {PACKAGE}.{each.noun} import {name} as {name}" for each in files for name in sorted(each.names)]
    about = f'"""Types of what the client returns, and of the fields that it takes. Made by `{COMMAND}`."""'
    return {f"{each.noun}.py": each.text() for each in files} | {"__init__.py": "\n".join([about, "", *exported, ""])}


def _answer_fields(written: Written, model: Model) -> Iterator[tuple[str, str]]:
    inherited = {name for parent in _parents(model) for name in parent.model_fields}
    for name, each in model.model_fields.items():
        shown = written.show(each.annotation)
        if (model.__name__, name) in UNASKED:
            # In the models they are null so that they can be left out; only the last id of an empty page is null.
            shown = written.optional(shown if name == "last_id" else shown.removesuffix(" | None"))
        if name not in inherited:
            yield name, shown


def _input_fields(written: Written, model: Model) -> Iterator[tuple[str, str]]:
    for name, each in model.model_fields.items():
        if name not in {"dry_run", *PARAMETERS.get(model, ())}:
            shown = written.show(each.annotation, is_input=True)
            yield name, shown if each.is_required() else written.optional(shown)


def _filters(written: Written, route: tuple[str, str]) -> Iterator[tuple[str, str, str]]:
    (query,) = [endpoint.query for endpoint in ENDPOINTS if (endpoint.method, endpoint.path) == route]
    for name, meaning in query.items():
        if name not in PAGE:
            yield name, written.optional("str"), meaning


def _parents(model: Model) -> list[Model]:
    """The model that it extends; the base classes of all bodies have no fields."""
    return [base for base in model.__bases__ if issubclass(base, BaseModel) and base.model_fields]


def _name(model: Model) -> str:
    """The name of the type: that of the model, and that it is a dict."""
    return NAMES.get(model, f"{model.__name__}Dict")


def _noun(model: Model) -> str:
    return model.__module__.rpartition(".")[2]


def _described(model: Model) -> tuple[str | None, dict[str, str]]:
    """The docstring of a model, and the comments of its fields, also those that it inherits."""
    lines, _ = inspect.getsourcelines(model)
    tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for parent in _parents(model):
        found |= _described(parent)[1]
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above, number = [], node.lineno - 2
            while lines[number].strip().startswith("#:"):
                above.append(lines[number].strip().removeprefix("#:").strip())
                number -= 1
            found[node.target.id] = " ".join(reversed(above))
    return ast.get_docstring(tree), found


def _docstring(text: str | None) -> list[str]:
    """A docstring of a class or a field, as ruff formats it."""
    if not text:
        return []
    paragraphs = [textwrap.wrap(each, 110) for each in text.split("\n\n")]
    lines = [line for lines in paragraphs for line in (*lines, "")][:-1]
    ends = f'{lines[-1]}"""' if len(lines) == 1 else lines[-1]
    shown = [f'"""{lines[0]}', *lines[1:-1], ends, '"""'] if len(lines) > 1 else [f'"""{ends}']
    return [f"    {line}".rstrip() for line in shown]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file_name, content in generated().items():
        (FOLDER / file_name).write_text(content, encoding="utf-8")
