"""What can be typed where, read from the commands themselves, so that completion can't be wrong about them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

#: What stands after a flag or as an argument: nothing, one of some words, a bucket, or something with no list.
Kind = Literal["none", "choice", "bucket", "free"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, with all its spellings."""

    names: tuple[str, ...]
    help: str
    kind: Kind
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """A command or group, by its path such as `svc bucket ls`."""

    path: str
    #: Names and help of the commands inside.
    commands: tuple[tuple[str, str], ...]
    flags: tuple[Flag, ...]
    #: What its first argument is.
    argument: Kind
    choices: tuple[str, ...] = ()


def grammar_of(root: Any) -> list[CommandPlace]:
    """Every place of the command line, from the top down. `root` is `svc` as built; Typer has no public type for it."""
    return list(_places(root, "svc"))


def _places(command: Any, path: str) -> Iterator[CommandPlace]:
    names = command.list_commands(None) if hasattr(command, "list_commands") else []
    inner = [(name, command.get_command(None, name)) for name in names]
    inner = [(name, each) for name, each in inner if not each.hidden]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    flags = [_flag(each) for each in command.params if each.param_type_name == "option" and not each.hidden]
    yield CommandPlace(
        path,
        tuple((name, _first_sentence(each.help)) for name, each in inner),
        (*flags, Flag(("--help",), "Show the help.", "none")),
        _argument_kind(arguments),
        _choices(arguments[0]) if arguments else (),
    )
    for name, each in inner:
        yield from _places(each, f"{path} {name}")


def _flag(option: Any) -> Flag:
    choices = _choices(option)
    names = (*option.opts, *option.secondary_opts)
    kind: Kind = "free"
    if option.is_flag:
        kind = "none"
    elif choices:
        kind = "choice"
    elif option.metavar == "BUCKET":
        kind = "bucket"
    return Flag(names, _first_sentence(option.help), kind, choices)


def _argument_kind(arguments: list[Any]) -> Kind:
    if not arguments:
        return "none"
    if _choices(arguments[0]):
        return "choice"
    return "bucket" if arguments[0].metavar == "BUCKET" else "free"


def _choices(parameter: Any) -> tuple[str, ...]:
    annotation = parameter.type_descriptor.annotation
    return tuple(str(each) for each in get_args(annotation)) if _is_literal(annotation) else ()


def _is_literal(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) is Literal


def _first_sentence(text: str | None) -> str:
    """Help as it fits beside a word: its first sentence, without what stands in brackets."""
    line = " ".join((text or "").split("\n\n")[0].split()).split("  [")[0].split(" [")[0]
    return line.split(". ")[0].rstrip(".")
