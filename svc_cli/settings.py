"""The settings of the command line, by precedence: flags, environment, `svc.toml`, the user's file, defaults.

A project's file may come from a stranger. It is trusted at one place and with one content; another content is a
stranger's again.
"""

import errno
import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from svc_cli.errors import UsageError
from svc_cli.given_files import PROJECT_FILE
from svc_cli.private_files import read_rows, replace
from svc_daemon import paths
from svc_daemon.wire.light.field_errors import is_blank
from svc_daemon.wire.light.parsing import parse_toml

USER_FILE = "config.toml"

#: The name of the TOML tables, written `[[map]]`, that define the folders to sync.
MAPPINGS = "map"

#: The bound of a mapping whose folder may be anywhere, also on another drive of Windows.
ANYWHERE = Path("/")

#: The largest file of settings that is read.
MOST_BYTES = 256 * 1024

#: The environment variables that set a setting, by the name of the setting.
VARIABLES = {"base_url": "SVC_BASE_URL", "bucket": "SVC_BUCKET", "progress": "SVC_PROGRESS"}

#: The settings whose variables must not be blank: what they say where to send would come from somewhere else.
_NEVER_BLANK = ("base_url", "bucket")

#: The code of the error if a file asks for something that only a trusted file may.
NOT_TRUSTED = "svc_not_trusted"


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


#: Settings that decide where a key goes, what is deleted, and what is read. A project's file that is not trusted names
#: no service, and can only narrow the others.
WIDENING = ("base_url", "sync.prune", "sync.max_delete", "sync.follow_links")


class SettingValue(NamedTuple):
    """A setting's value and where it came from."""

    name: str
    value: Any
    #: `flag`, `environment SVC_…`, a file's path, or `default`.
    source: str
    #: Whether the value came from the project's file.
    from_project: bool = False
    #: What the project's file asks for and does not get, because the file is not trusted.
    withheld: Any = None


class SettingsLayer(NamedTuple):
    """The settings of one source: the environment or a file."""

    source: str
    values: Mapping[str, Any]
    is_project: bool = False


class SettingsFile(NamedTuple):
    """A TOML file of settings, read once."""

    path: Path
    #: The bytes that were parsed. Their SHA-256 decides whether a project's file is trusted.
    content: bytes
    #: The settings by dotted name.
    values: Mapping[str, Any]
    #: The `[[map]]` tables, whose content is not checked yet.
    tables: list[dict[str, Any]]

    @classmethod
    def read(cls, path: Path) -> "SettingsFile":
        """Raises UsageError if the file can't be read or a setting is invalid."""
        try:
            with open_regular(os.open(path, os.O_RDONLY | paths.AS_IT_IS)) as file:
                content = file.read(MOST_BYTES + 1)
            document = parse_toml(content.decode("utf-8-sig")) if len(content) <= MOST_BYTES else None
        except UnicodeDecodeError as error:
            raise UsageError(f"{path} can't be read: it is not UTF-8 text.") from error
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} can't be read: {error}") from error
        if document is None:
            raise UsageError(f"{path} is larger than {MOST_BYTES // 1024} KB, the most that is read of such a file.")
        tables = document.pop(MAPPINGS, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise UsageError(f"{path}: mappings are tables.", hint="begin each with a line `[[map]]`.")
        values = dict(_flatten(document))
        for name, value in values.items():
            check(name, value, str(path))
        return cls(path, content, values, tables)


class Trust(NamedTuple):
    """What the user has seen and trusted of one file."""

    sha256: str
    #: The folders outside of the file's own to which links in its mappings led.
    linked: Collection[str] = ()


class TrustedFiles:
    """The list of trusted files, in the user's configuration folder."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.path = paths.config_dir(environ) / "trusted.json"

    def find(self, file: Path, content: bytes) -> Trust | None:
        """Return what the user trusts of the file; None if it is not trusted with this content.

        Raises UsageError if the list can't be read.
        """
        row = read_rows(self.path).get(place_of(file))
        if row is None or row.get("sha256") != sha256_of(content):
            return None
        return Trust(row["sha256"], row.get("linked", ()))

    def add(self, file: Path, trust: Trust) -> None:
        """Trust the file with one content, and no longer with another."""
        row = {"sha256": trust.sha256, "linked": list(trust.linked)}
        replace(self.path, json.dumps({**read_rows(self.path), place_of(file): row}, indent=2))

    def remove(self, file: Path) -> bool:
        """Trust the file no longer; returns False if it was not trusted."""
        known = read_rows(self.path)
        if known.pop(place_of(file), None) is None:
            return False
        replace(self.path, json.dumps(known, indent=2))
        return True


def place_of(file: Path) -> str:
    """Return the path that identifies the file.

    Links in the folder's path are resolved, but not the file itself: as a link to a trusted file in another folder, it
    would apply the trusted settings to the wrong folder.
    """
    return str(Path(os.path.realpath(file.parent)) / file.name)


def sha256_of(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


class CliSettings:
    """The settings of one run. If several layers contain a setting, the first of these layers decides its value.

    A project's file that is not trusted can only narrow what is removed and read, and names no service.
    """

    def __init__(
        self, environ: Mapping[str, str], layers: list[SettingsLayer], project: SettingsFile | None = None
    ) -> None:
        self.environ = environ
        #: The project's file, if there is one.
        self.project = project
        self._layers = layers

    @classmethod
    def load(cls, environ: Mapping[str, str], cwd: Path) -> "CliSettings":
        """Read the environment, the nearest `svc.toml` in `cwd` or its parents, and the user's file.

        Raises UsageError if a file or a setting is invalid.
        """
        values = {name: text for name, variable in VARIABLES.items() if (text := environ.get(variable, "")).strip()}
        for name, value in values.items():
            check(name, value, f"environment {VARIABLES[name]}")
        layers = [SettingsLayer("environment", values)]
        path = find_project_file(cwd)
        project = SettingsFile.read(path) if path else None
        if project:
            layers.append(SettingsLayer(str(path), project.values, is_project=True))
        user = user_file(environ)
        if is_there(user):
            layers.append(SettingsLayer(str(user), SettingsFile.read(user).values))
        return cls(environ, layers, project)

    @property
    def project_file(self) -> Path | None:
        """Return the path of the project's file, if there is one."""
        return self.project.path if self.project else None

    @cached_property
    def trust(self) -> Trust | None:
        """Return what the user trusts of the project's file; None if it is not trusted with its present content."""
        return TrustedFiles(self.environ).find(self.project.path, self.project.content) if self.project else None

    @property
    def is_project_trusted(self) -> bool:
        """Whether the user trusts the project's file."""
        return self.trust is not None

    @property
    def may_project_widen(self) -> bool:
        """Whether the project's file decides what is removed and read: it is trusted, or SVC_TRUST_PROJECT is on.

        That variable is for builds. It never covers `base_url`.
        """
        return self.is_project_trusted or self.is_on("SVC_TRUST_PROJECT")

    def find_bounds(self, folder: Path) -> tuple[Path, ...]:
        """Return the real folders in one of which a folder of the project's file has to be; `/` if it may be anywhere.

        They are the file's own folder, and those to which links led when the file was trusted, since its content
        doesn't say where a link leads.
        """
        if self.project is None or self.is_on("SVC_TRUST_PROJECT"):
            return (ANYWHERE,)
        own = self.project.path.parent
        if self.trust is not None and not folder.is_relative_to(own):
            return (ANYWHERE,)
        return (Path(os.path.realpath(own)), *map(Path, self.trust.linked if self.trust else ()))

    def find(self, name: str, flag: Any = None) -> SettingValue:
        """Return the value and origin of a setting. `flag` takes precedence if given.

        Raises UsageError if only a project's file that is not trusted names the service, or a variable is blank.
        """
        if flag is not None and flag != []:
            return SettingValue(name, flag, "flag")
        if name in _NEVER_BLANK and is_blank(self.environ.get(VARIABLES[name])):
            raise UsageError(f"{VARIABLES[name]} is blank.", hint="give it a value, or unset it.")
        found: list[SettingValue] = []
        for layer in self._layers:
            if name in layer.values:
                source = layer.source if layer.source != "environment" else f"environment {VARIABLES[name]}"
                found.append(SettingValue(name, layer.values[name], source, layer.is_project))
        first, *others = [*found, SettingValue(name, RULES[name].default, "default")]
        if first.from_project and name == "base_url" and not self.is_project_trusted:
            raise UsageError(
                f"{first.source} names the service {first.value}, but the file is not trusted; nothing was sent.",
                code=NOT_TRUSTED,
                hint="`svc config trust` shows what the file asks for, and trusts it; or give the address yourself, "
                "with SVC_BASE_URL or --base-url.",
            )
        if not first.from_project or name not in WIDENING or self.may_project_widen:
            return first
        own = others[0]
        if name == "sync.max_delete":
            return own._replace(withheld=first.value)
        order = RULES[name].choices or (False, True)
        return first if order.index(first.value) <= order.index(own.value) else own._replace(withheld=first.value)

    def is_strangers(self, name: str, flag: Any = None) -> bool:
        """Whether the value of a setting comes from a project's file that is not trusted."""
        return self.find(name, flag).from_project and not self.may_project_widen

    def get(self, name: str, flag: Any = None) -> Any:
        """Return the value of a setting, like `find`."""
        return self.find(name, flag).value

    def all(self) -> Iterator[SettingValue]:
        """Yield all settings, in the order of `RULES`. If there is an error instead of a value, it is the origin."""
        for name in RULES:
            try:
                yield self.find(name)
            except UsageError as error:
                yield SettingValue(name, None, error.message)

    def is_on(self, variable: str) -> bool:
        """Whether a boolean environment variable such as SVC_NO_INPUT is on."""
        return self.environ.get(variable, "").lower() not in {"", "0", "false", "no", "off"}


def open_regular(descriptor: int) -> BinaryIO:
    """Return the open file for reading. Raises OSError, and closes it, if it is a pipe, a folder or a device."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def user_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's configuration file."""
    return paths.config_dir(environ) / USER_FILE


def find_project_file(cwd: Path) -> Path | None:
    """Find the nearest `svc.toml` in `cwd` or its parents."""
    for folder in (cwd, *cwd.parents):
        candidate = folder / PROJECT_FILE
        # What can't be read, such as a pipe or a folder, is not passed over for a file further up: reading it fails.
        if is_there(candidate):
            return candidate
    return None


def is_there(path: Path) -> bool:
    """Whether there is such a file, or may be one that can't be read; reading it fails then."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


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
    if is_blank(value):
        raise UsageError(f"{source}: `{name}` is blank.", hint="give it a value, or leave it out.")


_KINDS = {str: "a string", int: "a whole number", bool: "true or false", list: "a list of strings"}


def _flatten(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
