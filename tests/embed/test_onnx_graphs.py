"""The graph computes what BERT is, and in whole numbers nearly the same."""

import json
import os
from math import erf
from pathlib import Path

# The library would write below the home of the tests' user.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from svc_daemon.embed.contract import ModelRefused
from svc_daemon.embed.installed_models import CLS, MEAN
from svc_daemon.embed.onnx_graphs import Shape, build_graph, read_shape
from svc_daemon.embed.origins import Tensor, find_origin, read_weights
from tests.embed.models import CONFIG, HEADS, LAYERS, REAL_MODEL, VOCABULARY, WIDTH, make_weights, needs_real_model

SENTENCES = [
    *("That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"),
    "The tariff for steel was lowered in the second quarter, after long talks between both ministries.",
    "Boundary layers on slender wings separate early when the leading edge is sharp, as experiments have shown.",
]


def run(graph: bytes, *rows: list[int]) -> list[Tensor]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    feeds = ({"input_ids": np.array([ids]), "position_ids": np.arange(len(ids))[None]} for ids in rows)
    vectors: list[Tensor] = [session.run(["embedding"], row)[0][0] for row in feeds]
    return vectors


def bert(weights: dict[str, Tensor], ids: list[int], pooling: str) -> Tensor:
    """BERT, written down once more and as plainly as can be."""

    def linear(name: str, rows: Tensor) -> Tensor:
        product: Tensor = rows @ weights[f"{name}.weight"].T
        return product + weights[f"{name}.bias"]

    def norm(name: str, rows: Tensor) -> Tensor:
        centred = rows - rows.mean(axis=1, keepdims=True)
        scaled: Tensor = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    words, places, kinds = (
        weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
    )
    rows = norm("embeddings.LayerNorm", words[ids] + places[: len(ids)] + kinds[0])
    for layer in (f"encoder.layer.{number}." for number in range(LAYERS)):
        query, key, value = (
            linear(f"{layer}attention.self.{part}", rows).reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        alike = np.exp(query @ key.transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS))
        mixed = (alike / alike.sum(axis=2, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), WIDTH)
        rows = norm(f"{layer}attention.output.LayerNorm", rows + linear(f"{layer}attention.output.dense", mixed))
        raised = linear(f"{layer}intermediate.dense", rows)
        raised = raised * (1 + np.vectorize(erf)(raised / np.sqrt(2))) / 2
        rows = norm(f"{layer}output.LayerNorm", rows + linear(f"{layer}output.dense", raised))
    pooled: Tensor = rows[0] if pooling == CLS else rows.mean(axis=0)
    pooled /= np.linalg.norm(pooled)
    return pooled


def tokens(count: int, seed: int = 3) -> list[int]:
    return [int(number) for number in np.random.default_rng(seed).integers(0, len(VOCABULARY), count)]


SHAPE = Shape(heads=HEADS, epsilon=1e-12)
OTHERS: list[dict[str, object]] = [
    {"model_type": "mpnet"},
    {"hidden_act": "relu"},
    {"position_embedding_type": "relative_key"},
    {"num_attention_heads": None},
]


@pytest.mark.parametrize("pooling", [MEAN, CLS])
def test_the_exact_graph_computes_bert(pooling: str) -> None:
    weights = make_weights()
    graph = build_graph(weights, Shape(heads=HEADS, epsilon=1e-12, pooling=pooling), is_exact=True)
    rows = [tokens(count) for count in (1, 2, 17, 64)]
    for ids, vector in zip(rows, run(graph, *rows), strict=True):
        assert vector == pytest.approx(bert(weights, ids, pooling), abs=1e-5), len(ids)


def test_whole_numbers_change_a_vector_little_and_a_column_of_zeros_stays_one() -> None:
    weights = make_weights()
    rows = [tokens(40, seed) for seed in range(8)]
    for _ in range(2):
        vectors = run(build_graph(weights, SHAPE), *rows)
        assert min(float(vector @ bert(weights, ids, MEAN)) for vector, ids in zip(vectors, rows, strict=True)) > 0.99
        weights["encoder.layer.0.output.dense.weight"][0] = 0


def test_names_may_have_the_prefix_of_a_larger_model() -> None:
    weights = make_weights()
    prefixed = {f"bert.{name}": tensor for name, tensor in weights.items()}
    assert build_graph(prefixed, SHAPE) == build_graph(weights, SHAPE)


def test_a_configuration_is_read_and_that_of_another_kind_of_model_is_refused() -> None:
    assert read_shape(json.dumps(CONFIG).encode(), CLS) == Shape(heads=HEADS, epsilon=1e-12, pooling=CLS)
    for config in (b"", b"[]", b"{}", *(json.dumps(CONFIG | other).encode() for other in OTHERS)):
        with pytest.raises(ModelRefused):
            read_shape(config, MEAN)


def test_missing_weights_and_heads_that_do_not_fit_are_named() -> None:
    for missing in ("embeddings.LayerNorm.bias", "encoder.layer.1.output.dense.weight"):
        weights = make_weights()
        del weights[missing]
        with pytest.raises(ModelRefused, match=missing):
            build_graph(weights, SHAPE)
    with pytest.raises(ModelRefused, match="5 heads"):
        build_graph(make_weights(), Shape(heads=5, epsilon=1e-12))


@needs_real_model
def test_the_real_model_keeps_to_its_full_graph_and_to_what_is_known_of_it(tmp_path: Path) -> None:
    origin = find_origin(str(REAL_MODEL), tmp_path, lambda _: None)
    weights, shape = read_weights(origin.get("model.safetensors")), read_shape(origin.get("config.json"), MEAN)
    tokenizer = Tokenizer.from_str(origin.get("tokenizer.json").decode())
    tokenizer.no_padding()
    ids = [tokenizer.encode(sentence).ids for sentence in SENTENCES]
    exact, fast = (np.array(run(build_graph(weights, shape, is_exact=is_exact), *ids)) for is_exact in (True, False))
    assert (exact * fast).sum(axis=1).min() > 0.98
    # What its makers' page shows for the first sentence beside the next three.
    assert (exact[0] @ exact[1:4].T).tolist() == pytest.approx([0.695, 0.943, 0.257], abs=0.002)
