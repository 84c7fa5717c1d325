"""Collects the commands, flags and values that a shell can complete."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

#: What a flag or argument takes: no value, one of several words, a bucket, or any text.
Kind = Literal["none", "choice", "bucket", "free"]


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag with all its names."""

    names: tuple[str, ...]
    help: str
    kind: Kind
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """A command or group, by its path, such as `svc bucket ls`."""

    path: str
    #: Name and help of each subcommand.
    commands: tuple[tuple[str, str], ...]
    flags: tuple[Flag, ...]
    #: The kind of value of the first argument.
    argument: Kind
    choices: tuple[str, ...] = ()


def grammar_of(root: Any) -> list[CommandPlace]:
    """List every command and group, parents first. `root` is the `svc` command."""
    return list(_places(root, "svc"))


def _places(command: Any, path: str) -> Iterator[CommandPlace]:
    names = command.list_commands(None) if hasattr(command, "list_commands") else []
    inner = [(name, command.get_command(None, name)) for name in names]
    inner = [(name, each) for name, each in inner if not each.hidden]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    flags = [
        Flag(
            (*each.opts, *each.secondary_opts),
            _first_sentence(each.help),
            "none" if each.is_flag else _kind(each),
            _choices(each),
        )
        for each in options
    ]
    yield CommandPlace(
        path,
        tuple((name, _first_sentence(each.help)) for name, each in inner),
        (*flags, Flag(("--help",), "Show the help.", "none")),
        _kind(arguments[0]) if arguments else "none",
        _choices(arguments[0]) if arguments else (),
    )
    for name, each in inner:
        yield from _places(each, f"{path} {name}")


def _kind(parameter: Any) -> Kind:
    if _choices(parameter):
        return "choice"
    return "bucket" if parameter.metavar == "BUCKET" else "free"


def _choices(parameter: Any) -> tuple[str, ...]:
    annotation = parameter.type_descriptor.annotation
    is_literal = getattr(annotation, "__origin__", None) is Literal
    return tuple(str(each) for each in get_args(annotation)) if is_literal else ()


def _first_sentence(text: str | None) -> str:
    """Return the first sentence of a help text, without its full stop. Text from ` [` on is left out."""
    line = " ".join((text or "").split("\n\n")[0].split()).split("  [")[0].split(" [")[0]
    return line.split(". ")[0].rstrip(".")
