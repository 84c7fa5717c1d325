"""`svc completion`: makes a shell's completion script, a function and a table of commands, flags and values.

The scripts are made by hand because Typer's own start `svc` at each TAB to build its commands: 109 ms of a processor
for the commands of `svc source`, 157 for those of `svc`, 233 for the flags of `svc upload`, where a TAB may take 120 ms
in all. These scripts take 1 ms, and start `svc` only for names, such as those of buckets.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

import typer

from svc_cli.commands.invocations import Invocation, command, new_app
from svc_cli.settings import RULES

#: What a flag or argument takes: no value, one of several words, the name of something, or any text.
Kind = Literal["none", "choice", "bucket", "source", "agent", "key", "watcher", "free"]
#: The kinds by the metavar, or by the beginning of the command and the metavar.
_KINDS: dict[str, Kind] = {
    "BUCKET": "bucket",
    "SOURCE": "source",
    "SOURCE|BATCH": "source",
    "AGENT": "agent",
    "KEY": "key",
    "svc agent set ID": "agent",
    "svc watch NAME": "watcher",
}


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
    places = [each for each in _places(root, "svc") if each.path != "svc help"]
    helped = [
        CommandPlace(f"svc help{each.path[3:]}", each.commands, places[-1].flags[-1:], "none")
        for each in places
        if each.commands
    ]
    more = ("options", "Show the options that every command takes")
    return [*places, replace(helped[0], commands=(*helped[0].commands, more)), *helped[1:]]


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
            "none" if each.is_flag else _kind(each, path),
            _choices(each),
        )
        for each in options
    ]
    yield CommandPlace(
        path,
        tuple((name, _first_sentence(each.help)) for name, each in inner),
        (*flags, Flag(("--help",), "Show the help.", "none")),
        _kind(arguments[0], path) if arguments else "none",
        _choices(arguments[0], path) if arguments else (),
    )
    for name, each in inner:
        yield from _places(each, f"{path} {name}")


def _kind(parameter: Any, path: str) -> Kind:
    if _choices(parameter, path):
        return "choice"
    places = [parameter.metavar, f"{path} {parameter.metavar}", f"{path.rpartition(' ')[0]} {parameter.metavar}"]
    # The option `--name` of `svc watch add` names something new.
    places = places if parameter.param_type_name == "argument" else places[:1]
    return next((_KINDS[place] for place in places if place in _KINDS), "free")


def _choices(parameter: Any, path: str = "") -> tuple[str, ...]:
    if parameter.metavar == "NAME" and path.startswith("svc config "):
        return tuple(RULES)
    annotation = parameter.type_descriptor.annotation
    is_literal = getattr(annotation, "__origin__", None) is Literal
    return tuple(str(each) for each in get_args(annotation)) if is_literal else ()


def _first_sentence(text: str | None) -> str:
    """Return the first sentence of a help text, without its full stop. Text from ` [` on is left out."""
    line = " ".join((text or "").split("\n\n")[0].split()).split("  [")[0].split(" [")[0]
    return line.split(". ")[0].rstrip(".")


#: The command with which the scripts list buckets. It never starts the daemon.
BUCKETS = "svc bucket ls --names --no-autostart 2>/dev/null"


def _names(kind: Kind, words: str) -> str:
    """Return the command that lists the names of a kind. `words` is how the shell writes the words typed so far."""
    return BUCKETS if kind == "bucket" else f"svc completion names {kind} {words} 2>/dev/null"


def _has_names(kind: Kind) -> bool:
    return kind not in ("none", "choice", "free")


_BASH_WORDS, _ZSH_WORDS = '"${COMP_WORDS[@]:1}"', '"${words[@]:1}"'
_FISH_WORDS = "(commandline -opc)[2..-1]"
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
        words = f"$({_names(flag.kind, _BASH_WORDS)})" if _has_names(flag.kind) else " ".join(flag.choices)
        complete = f'COMPREPLY=($(compgen -W "{words}" -- "$current")); return ;;'
        lines += [f"        {keys})", f"            {'return ;;' if flag.kind == 'free' else complete}"]
    lines += ["    esac", '    case "$where" in']
    for place in places:
        names = [name for name, _ in place.commands]
        words = " ".join([*names, *place.choices])
        words = f"$({_names(place.argument, _BASH_WORDS)})" if _has_names(place.argument) else words
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
        values = "_files" if flag.kind == "free" else f"compadd -- {' '.join(flag.choices)}"
        if _has_names(flag.kind):
            values = f'compadd -- ${{(f)"$({_names(flag.kind, _ZSH_WORDS)})"}}'
        lines += [f"        ({keys})", f"            {values}; return ;;"]
    lines += ["    esac", '    case "$where" in']
    for place in places:
        flags = [f"{name}:{flag.help}" for flag in place.flags for name in flag.names if name.startswith("--")]
        words = [*(f"{name}:{text}" for name, text in place.commands), *place.choices]
        commands = " ".join(map(_quoted, words))
        if _has_names(place.argument):
            commands = f'${{(f)"$({_names(place.argument, _ZSH_WORDS)})"}}'
        lines += [f'        ("{place.path}")', f"            commands=({commands})"]
        lines.append(f"            flags=({' '.join(map(_quoted, flags))}) ;;")
    return "\n".join([*lines, _ZSH_TAIL])


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
        if _has_names(place.argument):
            lines.append(f"{start} -f -a '({_names(place.argument, _FISH_WORDS)})'")
        elif place.choices:
            lines.append(f"{start} -f -a '{' '.join(place.choices)}'")
        for flag in place.flags:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
            values = {"none": "", "choice": f" -x -a '{' '.join(flag.choices)}'"}.get(flag.kind, " -r")
            if _has_names(flag.kind):
                values = f" -x -a '({_names(flag.kind, _FISH_WORDS)})'"
            lines.append(f"{start} {names}{values} -d {_quoted(flag.help)}")
    return "\n".join([*lines, ""])


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
    } elseif ($current.StartsWith('-')) {
        $words = @($flags.Keys | Sort-Object | ForEach-Object { , @($_, $flags[$_][0]) })
    } else {
        $words = $svcPlaces[$where].Words
    }
    if ($words.Count -eq 1 -and $words[0][0] -cmatch '^[A-Z]+$') {
        $kind = $words[0][0].ToLower()
        $names = if ($kind -eq 'bucket') { svc bucket ls --names --no-autostart 2>$null }
                 else { svc completion names $kind @typed 2>$null }
        $words = @($names | ForEach-Object { , @($_, $_) })
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
        words = [(place.argument.upper(), "")] if _has_names(place.argument) else words
        pairs = ", ".join(f"@({_doubled(name)}, {_doubled(text)})" for name, text in words)
        flags = []
        for flag in place.flags:
            values = (flag.kind.upper(),) if _has_names(flag.kind) else flag.choices
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


app = new_app()


@command(
    app, "completion", 'eval "$(svc completion bash)"', "svc completion fish > ~/.config/fish/completions/svc.fish"
)
def completion(
    call: Invocation,
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"],
        typer.Argument(metavar="SHELL", help="The shell: bash, zsh, fish or powershell."),
    ],
) -> None:
    """Print the script that completes svc commands in a shell.

    bash: add this line to ~/.bashrc: eval "$(svc completion bash)"

    zsh: add this line to ~/.zshrc, after compinit: eval "$(svc completion zsh)"

    fish: run svc completion fish > ~/.config/fish/completions/svc.fish

    PowerShell: add this line to $PROFILE: svc completion powershell | Out-String | Invoke-Expression
    """
    script = SCRIPTS[shell](grammar_of(call.root))
    call.console.show({"shell": shell, "script": script}, lambda: script.rstrip("\n"))
