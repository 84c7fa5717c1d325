"""Finds and runs the command, and turns every exception of a command into a message and an exit code."""

import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from io import BytesIO, StringIO, TextIOWrapper
from itertools import takewhile
from typing import Any

import typer

from svc_cli.commands.help_pages import (
    HELP_FLAGS,
    HelpfulGroup,
    hint_of_words,
    meant_by,
    meant_options,
    write_examples,
)
from svc_cli.commands.invocations import common_callback, new_app
from svc_cli.console import Console, Format, OutputLost
from svc_cli.errors import NO_ROOM, BadAnswer, Interrupted, PathMissing, SvcError, UsageError, refused_by_system
from svc_cli.exits import Exit
from svc_cli.given_files import is_folder_gone
from svc_daemon.wire.light.field_errors import plain

#: For each command, its module in `commands` and its line in `svc --help`. The most used commands come first.
COMMANDS: dict[str, tuple[str, str]] = {
    "upload": ("daily.upload", "Upload files or folders into a bucket, and wait until they are searchable."),
    "import": ("daily.imports", "Import files and web pages from URLs, and wait until they are searchable."),
    "sync": ("daily.sync", "Bring a bucket up to date with a folder, sending only what has changed."),
    "diff": ("daily.diff", "Show what a sync would change."),
    "ignore": ("daily.ignores", "Show which files a sync skips, and which rule excludes them."),
    "watch": ("daily.watch", "Keep buckets up to date with their folders while files change."),
    "status": ("daily.status", "Show the state of all buckets, or of one bucket, source or batch."),
    "wait": ("daily.wait", "Wait until sources or batches are ready."),
    "search": ("daily.search", "Search buckets, and show the page or lines of each result."),
    "ask": ("daily.ask", "Ask a question, and get an answer that quotes its sources with page or lines."),
    "cite": ("daily.cite", "Check the quotes of an answer against the stored files."),
    "eval": ("daily.eval", "Measure how well searches find the expected passages, for example in CI."),
    "bucket": ("nouns.buckets", "List, create, show, change, archive, export, import and delete buckets."),
    "source": ("nouns.sources", "List, show, download, change, retry, refresh, attach, detach and delete sources."),
    "batch": ("nouns.batches", "Show the state of files that were uploaded together as a batch."),
    "agent": ("nouns.agents", "List, create, show, change and delete agents."),
    "console": ("daily.console", "Open the console in the browser: buckets, failures, search and answers."),
    "events": ("nouns.events", "Show what has happened to sources, buckets and batches, and follow what happens."),
    "webhook": ("nouns.webhooks", "List, resend, verify and forward webhook calls."),
    "key": ("nouns.keys", "Create, list and revoke API keys."),
    "mcp": ("machine.mcp", "Serve the tools of svc to programs over MCP (Model Context Protocol)."),
    "daemon": ("machine.daemon", "Start, stop and inspect the local daemon."),
    "auth": ("machine.auth", "Log in and out with an API key, and show which key is in use."),
    "config": ("machine.config", "Show and change settings."),
    "doctor": ("machine.doctor", "Check the whole installation and report what is wrong."),
    "completion": ("machine.completion", "Print the completion script for a shell."),
    "help": ("machine.help", "Show the help of a command."),
}


#: Words of other programs, each with the commands that may be meant.
MEANT = {
    **dict.fromkeys(("ls", "list", "dir"), ("svc source ls -b BUCKET", "svc bucket ls")),
    **dict.fromkeys(("rm", "delete", "remove", "del"), ("svc source rm SOURCE", "svc bucket rm BUCKET")),
    "open": ("svc console", "svc source get SOURCE -o FILE"),
    **dict.fromkeys(("get", "download", "cp"), ("svc source get SOURCE -o FILE",)),
    **dict.fromkeys(("cat", "text", "read"), ("svc source text SOURCE",)),
    **dict.fromkeys(("show", "info", "view"), ("svc source show SOURCE", "svc bucket show BUCKET")),
    **dict.fromkeys(("set", "edit", "rename", "mv", "tag"), ("svc source set SOURCE",)),
    **{name: (f"svc source {name} SOURCE",) for name in ("retry", "refresh", "attach", "detach")},
    **{name: (f"svc daemon {name}",) for name in ("start", "stop", "restart", "run", "logs")},
    **dict.fromkeys(("log", "journal"), ("svc daemon logs", "svc events")),
    **dict.fromkeys(("serve", "server"), ("svc daemon run",)),
    **dict.fromkeys(("add", "put", "push", "index", "ingest"), ("svc upload PATH -b BUCKET",)),
    **dict.fromkeys(("fetch", "crawl", "pull"), ("svc import URL -b BUCKET",)),
    **dict.fromkeys(("create", "new", "mkdir", "init"), ("svc bucket create SLUG",)),
    **dict.fromkeys(("find", "query", "grep"), ("svc search QUERY",)),
    **dict.fromkeys(("chat", "answer"), ("svc ask QUESTION",)),
    **{name: (f"svc auth {name}",) for name in ("login", "logout", "token")},
    **dict.fromkeys(("ps", "stat"), ("svc status",)),
    **dict.fromkeys(("settings", "env"), ("svc config list",)),
    "trust": ("svc config trust",),
    "export": ("svc bucket export",),
    **{name: (f"svc-daemon {name}",) for name in ("backup", "restore", "verify", "migrate", "team", "model")},
    "version": ("svc --version",),
}

EXAMPLES = ("svc upload docs -b handbook", "svc search parental leave -b handbook", "svc ask who approves leave")


class Commands(HelpfulGroup):
    """The `svc` command. Imports the module of a subcommand only when it is called."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the command names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """Load and return the command of this name; None if there is none."""
        if cmd_name not in self.commands and cmd_name in COMMANDS:
            self.commands[cmd_name] = load(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name. Fails if there is none, and suggests a similar name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = [f"svc {name}" for name in get_close_matches(args[0], COMMANDS, n=1)]
            hint = meant_by(MEANT.get(args[0], close)) or "`svc --help` shows how it is used."
            raise UsageError(f"There is no command {args[0]!r}.", hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write the table of commands without loading any of them."""
        write_examples(formatter, EXAMPLES)
        for folder, title in (("daily", "Every day"), ("nouns", "Manage"), ("machine", "More")):
            with formatter.section(title):
                rows = [(name, line) for name, (module, line) in COMMANDS.items() if module.startswith(folder)]
                # The names stand in one column over all sections.
                formatter.write_dl([(name.ljust(max(map(len, COMMANDS))), line) for name, line in rows])


def load(name: str) -> Any:
    """Import the module of a command and build the command."""
    module = import_module(f"svc_cli.commands.{COMMANDS[name][0]}")
    built = typer.main.get_command(module.app)
    built.name = name
    return built


def build() -> Any:
    """Build the `svc` command."""
    app = new_app("Put files into named buckets, see when they become searchable, and search them.")
    app.info.cls = Commands
    app.callback(cls=Commands, invoke_without_command=True)(common_callback)
    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    console = _console(arguments)
    try:
        code = _guarded(arguments, console)
        console.out.flush()
    except BrokenPipeError:  # the reader closed the pipe
        code = Exit.CLOSED_PIPE
    except OSError as error:
        console.answered = True  # standard output has failed, so write the error to stderr only
        code = _fail(console, refused_by_system(OSError(error.errno, error.strerror, "standard output")))
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            # Python flushes the stream again at exit, which would fail too without this.
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return code


def _guarded(arguments: Sequence[str], console: Console) -> int:
    try:
        # Typer's `main` would handle interrupts and closed pipes with other exit codes.
        root = build()
        with root.make_context("svc", list(arguments) or ["--help"], obj=console, **HELP_FLAGS) as context:
            return int(root.invoke(context) or 0)
    except (BrokenPipeError, OutputLost):
        raise
    except typer.Exit as ended:
        return ended.exit_code
    except SvcError as error:
        return _fail(console, error)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "svc"
        what, colon, why = error.format_message().partition(": ")
        message = " ".join((f"{what}{colon}{plain(why)}" if colon else plain(what)).split())
        meant = meant_by(meant_options(error, context))
        message = message.partition(" (Possible options")[0].rstrip(".") + "."
        hint = meant or hint_of_words(error, context) or f"`{path} --help` shows how it is used."
        return _fail(console, UsageError(message, hint=hint))
    except (KeyboardInterrupt, typer.Abort) as interrupt:
        return _fail(console, Interrupted.of(interrupt))
    except Exception as error:
        hint = "`--debug` shows where; please report it."
        bug = SvcError(f"{type(error).__name__}: {error}", code="svc_bug", hint=hint)
        return _fail(console, _local_trouble(error) or _odd_answer(console) or bug)


def _local_trouble(error: Exception) -> SvcError | None:
    """Return the error to report; None if the exception is a bug in svc."""
    if isinstance(error, UnicodeEncodeError):
        # Python decodes arguments that are not UTF-8 to characters that can't be encoded.
        odd = error.object[max(0, error.start - 40) : error.end + 40]
        return UsageError(f"{odd!r} is not UTF-8 text.", hint="use UTF-8 for names, titles and words.")
    if isinstance(error, FileNotFoundError) and error.filename is None and is_folder_gone():
        return PathMissing(
            "The current folder is gone: it was deleted or replaced, or its disk was unmounted.",
            hint="`cd` to a folder that is there, and run the same command again.",
        )
    if isinstance(error, OSError) and (error.filename is not None or error.errno in NO_ROOM):
        return refused_by_system(error)
    return None


def _odd_answer(console: Console) -> BadAnswer | None:
    """Return the error for an exception after a service has answered that may not be svc; None if there is none.

    Its answers have no fixed form, so each use of a value may fail.
    """
    if console.unproven_service is None:
        return None
    return BadAnswer(
        f"The service at {console.unproven_service} answered with a response that does not come from svc.",
        hint="`--debug` shows where; if the service is svc, please report it.",
    )


def _fail(console: Console, error: SvcError) -> int:
    if console.debug:
        traceback.print_exc(file=console.err)
    console.fail(error)
    return int(error.exit)


def _console(arguments: Sequence[str]) -> Console:
    """Create the console. Its format is read from the raw arguments, because it applies to usage errors too."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A file name may contain bytes that can't be encoded.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.stdin is None:
        # A shell can start svc with standard input closed (`<&-`).
        sys.stdin = TextIOWrapper(BytesIO())
    before_dashes = list(takewhile(lambda argument: argument != "--", arguments))
    form: Format = "ndjson" if "--ndjson" in before_dashes else "json" if "--json" in before_dashes else "text"
    # A stream is None if the shell closed it (`>&-`).
    return Console(
        sys.stdout or StringIO(), sys.stderr or StringIO(), os.environ, form, debug="--debug" in before_dashes
    )
