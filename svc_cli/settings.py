"""The settings of the command line, by precedence: flags, environment, `svc.toml`, the user's file, defaults."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from svc_cli.errors import UsageError
from svc_daemon import paths

PROJECT_FILE = "svc.toml"
USER_FILE = "config.toml"

#: The name of the TOML tables, written `[[map]]`, that define the folders to sync.
MAPPINGS = "map"

#: The environment variables that set a setting, by the name of the setting.
VARIABLES = {"base_url": "SVC_BASE_URL", "bucket": "SVC_BUCKET", "progress": "SVC_PROGRESS"}


class Rule(NamedTuple):
    """The type, allowed values and default of a setting."""

    kind: type[str] | type[int] | type[bool] | type[list[str]]
    default: Any
    choices: tuple[str, ...] = ()


#: All settings; in `upload.jobs`, `upload` is the TOML table.
RULES: dict[str, Rule] = {
    "base_url": Rule(str, None),
    "bucket": Rule(str, None),
    "wait": Rule(str, "ready", ("ready", "accepted")),
    "progress": Rule(str, "auto", ("auto", "bar", "plain", "none")),
    "upload.jobs": Rule(int, 4),
    "upload.mode": Rule(str, "auto", ("auto", "one", "session", "batch")),
    "upload.timeout": Rule(str, None),
    "upload.tags": Rule(list, ()),
    "upload.strict": Rule(bool, False),
    "upload.no_create": Rule(bool, False),
    "sync.prune": Rule(str, "none", ("none", "detach", "delete")),
    "sync.max_delete": Rule(str, "25%"),
    "sync.jobs": Rule(int, 4),
    "sync.timeout": Rule(str, None),
    "sync.include": Rule(list, ()),
    "sync.exclude": Rule(list, ()),
    "sync.follow_links": Rule(bool, False),
    "sync.strict": Rule(bool, False),
    "sync.no_create": Rule(bool, False),
    "search.k": Rule(int, 10),
    "search.mode": Rule(str, "hybrid", ("hybrid", "keyword", "semantic")),
}


class SettingValue(NamedTuple):
    """A setting's value and where it came from."""

    name: str
    value: Any
    #: `flag`, `environment SVC_…`, a file's path, or `default`.
    source: str
    #: Whether the value came from the project's file, which may be untrusted.
    from_project: bool = False


class SettingsLayer(NamedTuple):
    """The settings of one source: the environment or a file."""

    source: str
    values: Mapping[str, Any]
    is_project: bool = False


class CliSettings:
    """The settings of one run. If several layers contain a setting, the first of these layers decides its value."""

    def __init__(self, environ: Mapping[str, str], layers: list[SettingsLayer], project: Path | None = None) -> None:
        self.environ = environ
        #: The project's file, if there is one.
        self.project_file = project
        self._layers = layers

    @classmethod
    def load(cls, environ: Mapping[str, str], cwd: Path) -> "CliSettings":
        """Read the environment, the nearest `svc.toml` in `cwd` or its parents, and the user's file.

        Raises UsageError if a file or a setting is invalid.
        """
        values = {name: environ[variable] for name, variable in VARIABLES.items() if environ.get(variable)}
        for name, value in values.items():
            check(name, value, f"environment {VARIABLES[name]}")
        layers = [SettingsLayer("environment", values)]
        project = find_project_file(cwd)
        if project:
            layers.append(SettingsLayer(str(project), read_file(project), is_project=True))
        user = user_file(environ)
        if user.is_file():
            layers.append(SettingsLayer(str(user), read_file(user)))
        return cls(environ, layers, project)

    def find(self, name: str, flag: Any = None) -> SettingValue:
        """Return the value and origin of a setting. `flag` takes precedence if given."""
        if flag is not None and flag != []:
            return SettingValue(name, flag, "flag")
        for layer in self._layers:
            if name in layer.values:
                source = layer.source if layer.source != "environment" else f"environment {VARIABLES[name]}"
                return SettingValue(name, layer.values[name], source, layer.is_project)
        return SettingValue(name, RULES[name].default, "default")

    def get(self, name: str, flag: Any = None) -> Any:
        """Return the value of a setting. `flag` takes precedence if given."""
        return self.find(name, flag).value

    def all(self) -> Iterator[SettingValue]:
        """Yield all settings, in the order of `RULES`."""
        return (self.find(name) for name in RULES)

    def is_on(self, variable: str) -> bool:
        """Whether a boolean environment variable such as SVC_NO_INPUT is on."""
        return self.environ.get(variable, "").lower() not in {"", "0", "false", "no", "off"}


def user_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's configuration file."""
    return paths.config_dir(environ) / USER_FILE


def find_project_file(cwd: Path) -> Path | None:
    """Find the nearest readable `svc.toml` in `cwd` or its parents."""
    for folder in (cwd, *cwd.parents):
        candidate = folder / PROJECT_FILE
        if os.access(candidate, os.R_OK) and candidate.is_file():
            return candidate
    return None


def read_file(path: Path) -> dict[str, Any]:
    """Read the settings of a TOML file, by dotted name. Raises UsageError if a setting is invalid."""
    document = _read_document(path)
    document.pop(MAPPINGS, None)
    values = dict(_flatten(document))
    for name, value in values.items():
        check(name, value, str(path))
    return values


def read_mapping_tables(path: Path) -> list[dict[str, Any]]:
    """Read the `[[map]]` tables of a file, without checking their content. Raises UsageError if they aren't tables."""
    tables = _read_document(path).get(MAPPINGS, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: mappings are tables.", hint="begin each with a line `[[map]]`.")
    return tables


def _read_document(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}") from error


def check(name: str, value: Any, source: str) -> None:
    """Raise UsageError if the setting's value is invalid. `source`, for the message, says where it came from."""
    rule = RULES.get(name)
    if rule is None:
        hint = f"known settings: {', '.join(RULES)}."
        if "key" in name or "token" in name:
            hint = "files of settings hold no keys: use `svc auth login`, SVC_API_KEY or SVC_API_KEY_FILE."
        raise UsageError(f"{source}: unknown setting `{name}`.", hint=hint)
    if not isinstance(value, rule.kind) or (rule.kind is int and isinstance(value, bool)):
        raise UsageError(f"{source}: `{name}` takes {_KINDS[rule.kind]}, not {value!r}.")
    if rule.choices and value not in rule.choices:
        raise UsageError(f"{source}: `{name}` is one of {', '.join(rule.choices)}, not {value!r}.")
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise UsageError(f"{source}: `{name}` takes a list of strings, not {value!r}.")


_KINDS = {str: "a string", int: "a whole number", bool: "true or false", list: "a list of strings"}


def _flatten(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
