"""`svc-daemon model`: installs, shows and removes the embedding model for semantic search."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from svc_daemon import exits
from svc_daemon.command.groups import new_group
from svc_daemon.core.times import to_text
from svc_daemon.paths import DataFiles, data_dir

if TYPE_CHECKING:
    from svc_daemon.embed.installed_models import InstalledModel

models = new_group("model", "Install, show and remove the embedding model for search by meaning.")

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as one JSON value.")]

#: Exit codes for problems with a model. All other problems exit with EXIT_REFUSED.
_EXITS = {
    "svc_model_not_found": exits.EXIT_MISSING,
    "svc_extra_missing": exits.EXIT_USAGE,
    "svc_model_download_failed": exits.EXIT_TEMPORARY,
    "svc_no_room": exits.EXIT_TEMPORARY,
    "svc_data_dir_locked": exits.EXIT_LOCKED,
}


@models.command("install")
def install_model(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER|FILE", help="The model's folder or file.  [default: download the standard small model]"
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Install an embedding model, which is needed to search by meaning.

    The model is verified and optimized for this machine. A running service uses it immediately.
    """
    files = DataFiles(data_dir(os.environ))
    with _refusing(as_json):
        from svc_daemon.embed.contract import MAKE_LIBRARIES, require
        from svc_daemon.embed.installed_models import ModelFolder

        require(MAKE_LIBRARIES)  # what installs a model imports them
        from svc_daemon.embed.installing import install

        done = install(ModelFolder(files.models), target, lambda: to_text(datetime.now(UTC)), exits.print_note)
    facts = {**_facts(files, done.model), "installed": done.is_new}
    exits.print_result(facts, f"{'installed' if done.is_new else 'already there:'} {done.model.name}", as_json)
    _notify_service(files)


@models.command("show")
def show_model(as_json: JsonFlag = False) -> None:
    """Check the installed embedding model, and show its name, size and origin."""
    files = DataFiles(data_dir(os.environ))
    with _refusing(as_json):
        from svc_daemon.embed.contract import RUN_LIBRARIES, require
        from svc_daemon.embed.installed_models import ModelFolder

        folder = ModelFolder(files.models)
        model = folder.get()
        folder.check(model)
        require(RUN_LIBRARIES)
    facts = _facts(files, model)
    exits.print_result(
        facts, "\n".join(f"{name}  {value}" for name, value in facts.items() if name != "object"), as_json
    )


@models.command("remove")
def remove_model(as_json: JsonFlag = False) -> None:
    """Remove the installed embedding model; searches then match keywords only."""
    files = DataFiles(data_dir(os.environ))
    with _refusing(as_json):
        from svc_daemon.embed.installed_models import ModelFolder

        folder = ModelFolder(files.models)
        model = folder.get()
        facts = _facts(files, model)
        folder.remove()
    exits.print_result({**facts, "removed": True}, f"removed {model.name}", as_json)
    _notify_service(files)


@contextmanager
def _refusing(as_json: bool) -> Iterator[None]:
    """Report problems with a model in `svc`'s format, and exit."""
    from svc_daemon.embed.contract import ModelProblem

    # Only this user may read files created here.
    os.umask(0o077)
    try:
        yield
    except ModelProblem as problem:
        exit_code = _EXITS.get(problem.code, exits.EXIT_REFUSED)
        exits.refuse(problem.code, problem.message, exit_code, as_json, hint=problem.hint, retryable=problem.retryable)
    except OSError as error:
        exits.refuse("svc_model_refused", f"{error.filename}: {error.strerror}.", exits.EXIT_REFUSED, as_json)


def _facts(files: DataFiles, model: "InstalledModel") -> dict[str, Any]:
    folder = files.models / model.model
    return {
        "object": "model",
        "name": model.name,
        "model": model.model,
        "dimension": model.dimension,
        "max_tokens": model.max_tokens,
        "origin": model.origin,
        "weights_sha256": model.weights_sha256,
        "size_bytes": sum(path.stat().st_size for path in folder.iterdir()) if folder.is_dir() else 0,
        "folder": str(folder),
        "installed_at": model.installed_at,
    }


def _notify_service(files: DataFiles) -> None:
    """Tell a running service to use the new model at once. By itself, it would notice the model within a minute."""
    from svc_daemon.offline.admin_requests import Refused, Unreachable, notify_daemon

    try:
        is_notified = notify_daemon(files, "/admin/model")
    except (Refused, Unreachable):
        is_notified = False
    if is_notified:
        exits.print_note("the running service uses it from now on; `svc daemon status` shows it")
    if os.environ.get("SVC_EMBED_BASE_URL"):
        exits.print_note("warning: SVC_EMBED_BASE_URL names a server, which is used instead of this model")
