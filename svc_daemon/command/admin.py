"""`svc-daemon team`, `svc-daemon key` and `svc-daemon search`, with and without a running daemon."""

import os
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote

import typer

from svc_daemon import exits
from svc_daemon.command.groups import new_group
from svc_daemon.command.model import JsonFlag
from svc_daemon.core.times import from_text, parse_span_s, to_text
from svc_daemon.errors import ServiceError
from svc_daemon.paths import DataFiles, data_dir
from svc_daemon.settings.limits import SettingError
from svc_daemon.wire import JsonMapping

if TYPE_CHECKING:
    from pydantic import BaseModel

    from svc_daemon.offline.admin_requests import Errand

Model = TypeVar("Model", bound="BaseModel")

teams = new_group("team", "Create, list and remove teams, and rebuild their search indexes.")
keys = new_group("key", "Create API keys for any team.")
search = new_group("search", "Turn searches off for maintenance, and on again.")

TeamArgument = Annotated[str, typer.Argument(metavar="TEAM", help="The team, by id or name.")]


@teams.command("create")
def create_team(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the team, which must be unique.")],
    as_json: JsonFlag = False,
) -> None:
    """Create a team, and print its first admin key, which can't be shown again."""
    from svc_daemon.offline.admin_requests import Errand
    from svc_daemon.operations import keys as verbs
    from svc_daemon.wire.keys import TeamCreate

    body = _model(TeamCreate, {"name": name}, as_json)
    verb = partial(verbs.create_team, fields=body)
    errand = Errand(
        method="POST",
        path="/admin/teams",
        body=body,
        verb=verb,
        on_install=lambda files: exits.print_note(
            f"there was no installation in {files.root}; a new one is created, with the team `default`"
        ),
    )
    made = _perform(errand, as_json)
    _show_key(made, as_json)


@teams.command("ls")
def list_teams(as_json: JsonFlag = False) -> None:
    """List the teams, with the number of their sources and the size of their data."""
    from svc_daemon.offline.admin_requests import Errand
    from svc_daemon.operations import keys as verbs

    errand = Errand(
        method="GET", path="/admin/teams", body=None, verb=lambda connection, _: verbs.list_teams(connection)
    )
    listed = _perform(errand, as_json)
    index = DataFiles(data_dir(os.environ)).index
    for team in listed["teams"]:
        # A cluster has no index files.
        files = [path for path in index.glob("*.db*") if path.name.partition(".")[0] == team["id"]]
        team["index_bytes"] = sum(path.stat().st_size for path in files)
    lines = []
    for team in listed["teams"]:
        sizes = f"{team['sources']} sources, {team['size_bytes']} bytes, index {team['index_bytes']} bytes"
        removing = ", being removed" if team["status"] == "removing" else ""
        lines.append(f"{team['id']}  {team['name']}  ({sizes}{removing})")
    exits.print_result(listed, "\n".join(lines), as_json)


@teams.command("rm")
def remove_team(
    team: TeamArgument,
    yes: Annotated[
        bool, typer.Option("--yes", help="Confirm the removal of everything that the team has; required.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove a team with all its data and keys.

    Its keys stop working at once. If the daemon is not running, the other data is removed when the daemon
    starts.
    """
    from svc_daemon.offline.admin_requests import Errand
    from svc_daemon.operations.remove.team_removals import queue_removal

    if not yes:
        message = f"This removes the team {team!r} and everything that it has, and can't be undone."
        exits.refuse("svc_usage", message, exits.EXIT_USAGE, as_json, hint="Add --yes.")
    path = f"/admin/teams/{quote(team, safe='')}"
    removed = _perform(Errand(method="DELETE", path=path, body=None, verb=partial(queue_removal, team=team)), as_json)
    said = f"{removed['name']} ({removed['id']}) is being removed, with {removed['sources']} sources"
    exits.print_result(removed, said, as_json)
    if not as_json:
        exits.print_note("its keys don't work any more; `svc-daemon team ls` shows it until nothing of it is left")


@teams.command("rebuild")
def rebuild_team(team: TeamArgument, as_json: JsonFlag = False) -> None:
    """Rebuild the search index of a team from its stored files.

    If the daemon is not running, the index is rebuilt when the daemon starts.
    """
    from svc_daemon.offline.admin_requests import Errand
    from svc_daemon.operations.index.rebuilding import queue_rebuild
    from svc_daemon.operations.shared.response_objects import view_task

    path = f"/admin/teams/{quote(team, safe='')}/rebuild"
    errand = Errand(
        method="POST",
        path=path,
        body=None,
        verb=lambda connection, ids: view_task(queue_rebuild(connection, ids, team)),
    )
    task = _perform(errand, as_json)
    exits.print_result(task, task["id"], as_json)
    if not as_json:
        exits.print_note(f"the search index of {team} is being rebuilt; its searches are refused until that is done")


@keys.command("create")
def create_key(
    team: Annotated[str, typer.Option(metavar="TEAM", help="The team, by id or name.")],
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET",
            help="Let the key do everything (admin), add and delete sources (ingest), or search and read (read).",
        ),
    ] = None,
    can: Annotated[
        list[str] | None,
        typer.Option(metavar="CAPABILITY", help="Give the key this capability, such as knowledge:search; repeatable."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Let the key expire after a time (30d) or on a date (2030-01-31T12:00:00Z)."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Say what the key is for.")] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Store the key as svc's admin key on this machine, instead of printing it.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create an API key for a team and print it; it can't be shown again."""
    from svc_daemon.offline.admin_requests import Errand
    from svc_daemon.operations import keys as verbs
    from svc_daemon.wire.keys import OperatorKeyCreate

    fields = {
        "team": team,
        "name": name,
        "preset": preset,
        "capabilities": can,
        "expires_at": _moment(expires, as_json),
    }
    body = _model(OperatorKeyCreate, fields, as_json)
    verb = partial(verbs.create_team_key, fields=body)
    made = _perform(Errand(method="POST", path="/admin/keys", body=body, verb=verb), as_json)
    _show_key(_saved(made, as_json) if save else made, as_json)


@search.command("off")
def search_off(
    retry_after: Annotated[
        int, typer.Option(metavar="SECONDS", help="Ask clients to try again after this many seconds.")
    ] = 60,
    as_json: JsonFlag = False,
) -> None:
    """Refuse searches and questions until `svc-daemon search on` is run."""
    _switch_search({"enabled": False, "retry_after_seconds": retry_after}, as_json)


@search.command("on")
def search_on(as_json: JsonFlag = False) -> None:
    """Accept searches and questions again."""
    _switch_search({"enabled": True}, as_json)


@search.command("status")
def search_status(as_json: JsonFlag = False) -> None:
    """Show whether searches are turned on."""
    from svc_daemon.offline.admin_requests import Errand
    from svc_daemon.operations.retrieve.availability import show_search

    def verb(connection: Any, _: Any) -> JsonMapping:
        return show_search(connection)

    _show_search(_perform(Errand(method="GET", path="/admin/search", body=None, verb=verb), as_json), as_json)


def _switch_search(fields: dict[str, Any], as_json: bool) -> None:
    from svc_daemon.offline.admin_requests import Errand
    from svc_daemon.operations.retrieve.availability import switch_search
    from svc_daemon.wire.searches import SearchSwitchChange

    body = _model(SearchSwitchChange, fields, as_json)
    errand = Errand(method="PUT", path="/admin/search", body=body, verb=partial(switch_search, change=body))
    _show_search(_perform(errand, as_json), as_json)


def _show_search(switch: JsonMapping, as_json: bool) -> None:
    off = f"search is off; clients are asked to wait {switch['retry_after_seconds']} s"
    exits.print_result(switch, "search is on" if switch["enabled"] else off, as_json)


def _model(model: type[Model], fields: dict[str, Any], as_json: bool) -> Model:
    from svc_daemon.api.bodies import parse_model

    try:
        return parse_model(fields, model)
    except ServiceError as error:
        exits.refuse_as({**error.as_error(), "details": error.details}, exits.EXIT_REFUSED, as_json)


def _moment(expires: str | None, as_json: bool) -> str | None:
    """Convert a duration such as `30d`, or a timestamp, to a time."""
    if expires is None:
        return None
    try:
        span_s = parse_span_s(expires)
        moment = from_text(expires) if span_s is None else datetime.now(UTC) + timedelta(seconds=span_s)
        return to_text(moment)
    except (ValueError, OverflowError):
        forms = "a duration such as 12h or 30d, or a time such as 2030-01-31T12:00:00Z"
        exits.refuse("svc_usage", f"--expires takes {forms}, not {expires!r}.", exits.EXIT_USAGE, as_json)


def _perform(errand: "Errand", as_json: bool) -> JsonMapping:
    from svc_daemon.data_directory import DirectoryRefused
    from svc_daemon.offline.admin_requests import Refused, run_errand

    # Only this user may read files created here.
    os.umask(0o077)
    try:
        return run_errand(DataFiles(data_dir(os.environ)), errand)
    except DirectoryRefused as error:
        exits.refuse_directory(error, as_json)
    except ServiceError as error:
        exits.refuse_as({**error.as_error(), "details": error.details}, _exit_of(error.rule.status), as_json)
    except Refused as error:
        exits.refuse_as(error.error, _exit_of(error.status), as_json)
    except SettingError as error:
        exits.refuse("svc_usage", str(error), exits.EXIT_USAGE, as_json)
    except OSError as error:
        exits.refuse("svc_file_refused", f"{error.filename}: {error.strerror}.", exits.EXIT_USAGE, as_json)


def _exit_of(status: int) -> int:
    if status >= 500:
        return exits.EXIT_FAILED
    return exits.EXIT_MISSING if status == 404 else exits.EXIT_REFUSED


def _saved(made: JsonMapping, as_json: bool) -> JsonMapping:
    """Store the key as the admin key of `svc` on this machine."""
    from svc_daemon.data_directory import hand_over
    from svc_daemon.operations.installations import write_secret

    files = DataFiles(data_dir(os.environ))
    path = files.admin_key
    try:
        write_secret(path, made["key"]["key"])
        hand_over(files)
    except OSError as error:
        message = f"{path} can't be written ({error.strerror}); nobody has seen {made['key']['id']}."
        exits.refuse("svc_file_refused", message, exits.EXIT_USAGE, as_json, hint="Repair that and ask again.")
    return {**made, "key": {**made["key"], "key": None}, "saved_in": str(path)}


def _show_key(made: JsonMapping, as_json: bool) -> None:
    team, key = made["team"], made["key"]
    named = f"key {key['id']} of team {team['name']} ({team['id']})"
    is_saved = "saved_in" in made
    exits.print_result(made, f"{named} is in {made['saved_in']}" if is_saved else key["key"], as_json)
    if not is_saved and not as_json:
        exits.print_note(f"{named}; it is not shown again")
