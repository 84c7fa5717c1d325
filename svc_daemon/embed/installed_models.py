"""The installed model: a folder with two files, and a record that names the folder.

    models/current.json                 the record of the installed model
    models/<name>@<digest>/model.onnx   the graph
    models/<name>@<digest>/tokenizer.json
    models/server.json                  the probe vector that identifies an embedding server's model

An install writes the model to a staging folder, then renames that folder, then replaces the record. The next install
removes what an interrupted install left. A running service keeps the model it has loaded.
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from svc_daemon.core import ids
from svc_daemon.embed.contract import ModelMissing, ModelProblem, ModelRefused
from svc_daemon.errors import StorageError
from svc_daemon.paths import make_folder, sync_folder

GRAPH, TOKENIZER = "model.onnx", "tokenizer.json"
#: How the tokens' vectors are combined: their mean, or the first vector.
MEAN, CLS = "mean", "cls"
#: Version of `onnx_graphs`, increased by each change that affects vectors.
RECIPE = 1
#: The folder for the model's files within the staging folder.
FILES = "files"
_RECORD, _SERVER, _LOCK, _STAGING = "current.json", "server.json", ".lock", ".new-"
#: The names of models' folders, of their files, and of staging folders.
_MODEL = re.compile(r"[a-z0-9._-]{1,64}@[0-9a-f]{1,64}")
_FILE = re.compile(f"{re.escape(GRAPH)}|{re.escape(TOKENIZER)}")
_STAGED = re.compile(rf"{re.escape(_STAGING)}[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledModel:
    """The record of the installed model."""

    #: The model's name, as shown to users.
    name: str
    #: The model's name, followed by a digest of everything that determines its vectors.
    model: str
    #: Number of a vector's components.
    dimension: int
    #: Maximum number of tokens of a text; the rest is ignored.
    max_tokens: int
    #: How to combine the tokens' vectors, unless the graph does: `mean` or `cls`.
    pooling: str
    #: Where the model was installed from.
    origin: str
    #: SHA-256 of the weights.
    weights_sha256: str
    #: SHA-256 of each file, by name.
    files: dict[str, str]
    installed_at: str


class InstallRunning(ModelProblem):
    """Another process is installing a model."""

    code = "svc_data_dir_locked"
    retryable = True


def name_vectors(name: str, weights_sha256: str, tokenizer_sha256: str, *decisions: str | int | None) -> str:
    """Return the identifier of a model's vectors. Models with different vectors have different identifiers."""
    parts = json.dumps([weights_sha256, tokenizer_sha256, *decisions])
    return f"{name}@{hashlib.sha256(parts.encode()).hexdigest()[:12]}"


class ModelFolder:
    """The folder for the installed model."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def server(self) -> Path:
        """The file that identifies the model of an embedding server, by its vector of a fixed sentence."""
        return self.root / _SERVER

    def find(self) -> InstalledModel | None:
        """Return the installed model or None. Raises ModelRefused if the record can't be read."""
        try:
            # A restored backup may have any record.
            model = TypeAdapter(InstalledModel).validate_json((self.root / _RECORD).read_text("utf-8"), strict=True)
            ids.file_name(model.model, _MODEL, row="The model")
            for name in model.files:
                ids.file_name(name, _FILE, row="A file of the model")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, StorageError) as error:
            reason = "it is damaged" if isinstance(error, ValidationError) else error
            raise ModelRefused(
                f"{self.root / _RECORD} can't be read ({reason}).", "`svc-daemon model install` creates it again."
            ) from error
        return model

    def stamp(self) -> int | None:
        """Return a value that changes with each install; None without a model."""
        try:
            return (self.root / _RECORD).stat().st_mtime_ns
        except OSError:
            return None

    def folder_of(self, model: InstalledModel) -> Path:
        return self.root / model.model

    def check(self, model: InstalledModel) -> None:
        """Raise ModelRefused if a file is missing or was changed."""
        for name, sha256 in model.files.items():
            path = self.folder_of(model) / name
            try:
                with path.open("rb") as file:
                    actual = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise _damaged(path, error.strerror or "unreadable") from error
            if actual != sha256:
                raise _damaged(path, "not the bytes that were written")

    @contextmanager
    def installing(self) -> Iterator[Path]:
        """Lock the folder within the block, and yield a staging folder that contains `FILES`.

        The staging folder is removed on exit. Raises InstallRunning and OSError.
        """
        make_folder(self.root)
        with self._locked():
            self._remove_leftovers()
            staging = self.root / f"{_STAGING}{secrets.token_hex(4)}"
            (staging / FILES).mkdir(mode=0o700, parents=True)
            try:
                yield staging
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    def put(self, staging: Path, model: InstalledModel) -> None:
        """Install the model in `staging`, durably and atomically. Raises OSError."""
        made, folder = staging / FILES, self.folder_of(model)
        if folder.exists():
            # Move a damaged copy of this model away. A running service doesn't need it, because its model is in memory.
            folder.rename(staging / "replaced")
        made.rename(folder)
        # Make the renaming durable first: otherwise, after a power failure, the record could name a missing folder.
        sync_folder(self.root)
        replace_file(self.root / _RECORD, json.dumps(asdict(model), indent=1).encode() + b"\n")
        self._remove_leftovers(keep=staging)

    def get(self) -> InstalledModel:
        """Return the installed model. Raises ModelMissing."""
        model = self.find()
        if model is None:
            raise ModelMissing(f"No model is installed in {self.root}.", "`svc-daemon model install` installs one.")
        return model

    def remove(self) -> None:
        """Remove the installed model and leftovers of installs. Raises InstallRunning and OSError."""
        with self._locked():
            (self.root / _RECORD).unlink(missing_ok=True)
            sync_folder(self.root)
            self._remove_leftovers()

    def _remove_leftovers(self, keep: Path | None = None) -> None:
        """Remove all folders of former models and interrupted installs, except `keep`."""
        with suppress(ModelRefused):
            model = self.find()
            kept = {keep, self.folder_of(model) if model else None}
            for path in self.root.iterdir():
                is_own = _MODEL.fullmatch(path.name) or _STAGED.fullmatch(path.name)
                if is_own and path not in kept and not self.root.is_symlink():
                    # Does nothing if this is a link.
                    shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self.root / _LOCK, flags, 0o600), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InstallRunning(f"Another install is writing to {self.root}.", "Wait until it ends.") from error
            yield


def write_file(path: Path, data: bytes) -> None:
    """Write a file durably, readable only for this user. It replaces a file that an interrupted install has left."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    staged = path.with_name(f".{path.name}")
    write_file(staged, data)
    staged.replace(path)
    sync_folder(path.parent)


def _damaged(path: Path, reason: str) -> ModelRefused:
    return ModelRefused(f"{path} is damaged: {reason}.", "`svc-daemon model install` creates it again.")
