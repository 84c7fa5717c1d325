"""Makes the completion scripts: for each shell, a function and a table of commands, flags and values.

They are made by hand because Typer's own start `svc` at each TAB to build its commands: 109 ms of a processor for the
commands of `svc source`, 157 for those of `svc`, 233 for the flags of `svc upload`, where a TAB may take 120 ms in all.
These scripts take 1 ms, and start `svc` only for the names of buckets.
"""

from collections.abc import Callable, Iterator, Sequence
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


#: The command with which the scripts list buckets. It never starts the daemon.
BUCKETS = "svc bucket ls --names --no-autostart 2>/dev/null"

_BASH_HEAD = """\
# Completion of svc for bash, made by `svc completion bash`.
_svc() {
    local where="svc" commands="" flags="" index
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "$where ${COMP_WORDS[index]}" in"""
_BASH_MIDDLE = """\
        esac
    done
    case "$where $previous" in"""
_BASH_TAIL = """\
    esac
    [[ $current == -* ]] && commands="$flags"
    [[ -n $commands ]] && COMPREPLY=($(compgen -W "$commands" -- "$current"))
}
complete -o bashdefault -o default -F _svc svc
"""


def bash(places: Sequence[CommandPlace]) -> str:
    """Build the script for bash 3.2 and newer."""
    lines = [_BASH_HEAD, f"            {_alternatives(place.path for place in places[1:])})"]
    lines += ['                where="$where ${COMP_WORDS[index]}" ;;', _BASH_MIDDLE]
    for keys, flag in _flags_with_values(places):
        words = f"$({BUCKETS})" if flag.kind == "bucket" else " ".join(flag.choices)
        complete = f'COMPREPLY=($(compgen -W "{words}" -- "$current")); return ;;'
        lines += [f"        {keys})", f"            {'return ;;' if flag.kind == 'free' else complete}"]
    lines += ["    esac", '    case "$where" in']
    for place in places:
        names = [name for name, _ in place.commands]
        words = f"$({BUCKETS})" if place.argument == "bucket" else " ".join([*names, *place.choices])
        flags = " ".join(name for flag in place.flags for name in flag.names if name.startswith("--"))
        lines.append(f'        "{place.path}") commands="{words}" flags="{flags}" ;;')
    return "\n".join([*lines, _BASH_TAIL])


_ZSH_HEAD = """\
#compdef svc
# Completion of svc for zsh, made by `svc completion zsh`.
_svc() {
    local where="svc" index
    local -a commands flags
    for ((index = 2; index < CURRENT; index++)); do
        case "$where ${words[index]}" in"""
_ZSH_MIDDLE = """\
        esac
    done
    case "$where ${words[CURRENT - 1]}" in"""
_ZSH_TAIL = """\
    esac
    if [[ ${words[CURRENT]} == -* ]]; then
        _describe -o flag flags
    elif (( ${#commands} )); then
        _describe word commands
    else
        _files
    fi
}
if [[ $funcstack[1] == _svc ]]; then
    _svc "$@"
else
    compdef _svc svc
fi
"""


def zsh(places: Sequence[CommandPlace]) -> str:
    """Build the script for zsh. It can be saved as `_svc` on the fpath, or sourced after compinit."""
    lines = [_ZSH_HEAD, f"            ({_alternatives(place.path for place in places[1:])})"]
    lines += ['                where="$where ${words[index]}" ;;', _ZSH_MIDDLE]
    for keys, flag in _flags_with_values(places):
        lines += [f"        ({keys})", f"            {_ZSH_VALUES[flag.kind](flag)}; return ;;"]
    lines += ["    esac", '    case "$where" in']
    for place in places:
        flags = [f"{name}:{flag.help}" for flag in place.flags for name in flag.names if name.startswith("--")]
        words = [*(f"{name}:{text}" for name, text in place.commands), *place.choices]
        commands = f'${{(f)"$({BUCKETS})"}}' if place.argument == "bucket" else " ".join(map(_quoted, words))
        lines += [f'        ("{place.path}")', f"            commands=({commands})"]
        lines.append(f"            flags=({' '.join(map(_quoted, flags))}) ;;")
    return "\n".join([*lines, _ZSH_TAIL])


_ZSH_VALUES: dict[str, Callable[[Flag], str]] = {
    "free": lambda _: "_files",
    "bucket": lambda _: f'compadd -- ${{(f)"$({BUCKETS})"}}',
    "choice": lambda flag: f"compadd -- {' '.join(flag.choices)}",
}


_FISH_HEAD = """\
# Completion of svc for fish, made by `svc completion fish`.
function __svc_at --description 'Whether the command typed so far is this one'
    set -l where svc
    for word in (commandline -opc)[2..-1]
        switch "$where $word\""""
_FISH_MIDDLE = """\
                set where "$where $word"
        end
    end
    test "$where" = "$argv"
end
complete -c svc -e"""


def fish(places: Sequence[CommandPlace]) -> str:
    """Build the script for fish, to be saved as ~/.config/fish/completions/svc.fish."""
    paths = " ".join(_quoted(place.path) for place in places[1:])
    lines = [_FISH_HEAD, f"            case {paths}", _FISH_MIDDLE]
    for place in places:
        start = f"complete -c svc -n '__svc_at {place.path}'"
        lines += [f"{start} -f -a {name} -d {_quoted(text)}" for name, text in place.commands]
        if place.argument == "bucket":
            lines.append(f"{start} -f -a '({BUCKETS})'")
        elif place.choices:
            lines.append(f"{start} -f -a '{' '.join(place.choices)}'")
        for flag in place.flags:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
            lines.append(f"{start} {names}{_FISH_VALUES[flag.kind](flag)} -d {_quoted(flag.help)}")
    return "\n".join([*lines, ""])


_FISH_VALUES: dict[str, Callable[[Flag], str]] = {
    "none": lambda _: "",
    "free": lambda _: " -r",
    "bucket": lambda _: f" -x -a '({BUCKETS})'",
    "choice": lambda flag: f" -x -a '{' '.join(flag.choices)}'",
}


_POWERSHELL_TAIL = """\
}
Register-ArgumentCompleter -Native -CommandName svc -ScriptBlock {
    param($current, $line, $cursor)
    $typed = @($line.CommandElements | ForEach-Object { "$_" })
    if ($current -ne '') { $typed = @($typed | Select-Object -SkipLast 1) }
    $where = 'svc'
    foreach ($word in ($typed | Select-Object -Skip 1)) {
        if ($svcPlaces.ContainsKey("$where $word")) { $where = "$where $word" }
    }
    $previous = $typed[-1]
    $flags = $svcPlaces[$where].Flags
    if ($flags.ContainsKey($previous) -and $flags[$previous].Count -gt 1) {
        $words = @($flags[$previous] | Select-Object -Skip 1 | ForEach-Object { , @($_, $_) })
        if ($words[0][0] -eq 'BUCKET') {
            $words = @(svc bucket ls --names --no-autostart 2>$null | ForEach-Object { , @($_, $_) })
        }
    } elseif ($current.StartsWith('-')) {
        $words = @($flags.Keys | Sort-Object | ForEach-Object { , @($_, $flags[$_][0]) })
    } else {
        $words = $svcPlaces[$where].Words
    }
    foreach ($pair in $words) {
        if ($pair[0].StartsWith($current)) {
            [System.Management.Automation.CompletionResult]::new($pair[0], $pair[0], 'ParameterValue', $pair[1])
        }
    }
}
"""


def powershell(places: Sequence[CommandPlace]) -> str:
    """Build the script for PowerShell 5.1 and newer, to be invoked from the profile."""
    head = "# Completion of svc for PowerShell, made by `svc completion powershell`.\n$svcPlaces = @{"
    lines = [head]
    for place in places:
        words = [*place.commands, *((choice, choice) for choice in place.choices)]
        pairs = ", ".join(f"@({_doubled(name)}, {_doubled(text)})" for name, text in words)
        flags = []
        for flag in place.flags:
            values = ("BUCKET",) if flag.kind == "bucket" else flag.choices
            texts = ", ".join(map(_doubled, (flag.help, *values)))
            flags += [f"{_doubled(name)} = @({texts})" for name in flag.names]
        # Otherwise PowerShell would flatten a list with one pair.
        start = ", " if len(words) == 1 else ""
        lines.append(
            f"    {_doubled(place.path)} = @{{ Words = @({start}{pairs}); Flags = @{{ {'; '.join(flags)} }} }}"
        )
    return "\n".join([*lines, _POWERSHELL_TAIL])


SCRIPTS: dict[str, Callable[[Sequence[CommandPlace]], str]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
    "powershell": powershell,
}

#: The file names of the scripts in `completions/`, as the shells require them.
FILES = {"bash": "svc.bash", "zsh": "_svc", "fish": "svc.fish", "powershell": "svc.ps1"}


def _flags_with_values(places: Sequence[CommandPlace]) -> Iterator[tuple[str, Flag]]:
    """For each flag that takes a value, yield a shell pattern of the words before the value, and the flag."""
    for place in places:
        for flag in place.flags:
            if flag.kind != "none":
                yield _alternatives(f"{place.path} {name}" for name in flag.names), flag


def _alternatives(texts: Iterator[str]) -> str:
    return " | ".join(f'"{text}"' for text in texts)


def _quoted(text: str) -> str:
    """Quote the text for zsh and fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\u2019") + "'"


def _doubled(text: str) -> str:
    """Quote the text for PowerShell."""
    return "'" + text.replace("'", "''") + "'"
