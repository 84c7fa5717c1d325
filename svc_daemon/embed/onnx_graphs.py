"""Builds the ONNX graph of a BERT encoder from its weights.

The graph turns a row of token ids and their positions into a vector of length 1. It takes one text at a time, so a
vector doesn't depend on other texts. A change that affects vectors must increase `installed_models.RECIPE`.

Weights are multiplied as 8-bit integers. This halves the run time, and changes vectors little: their cosine similarity
to exact ones is at least 0.99.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from svc_daemon.embed.contract import ModelRefused
from svc_daemon.embed.installed_models import CLS, MEAN
from svc_daemon.embed.origins import Tensor
from svc_daemon.wire.light.parsing import parse_json

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

#: The oldest ONNX operator set with all operators used here.
_OPSET = 20
_IR_VERSION = 9
#: Largest quantized weight (7 bits). With 8 bits, sums would overflow on some processors, and vectors would differ.
_LARGEST_WEIGHT = 63

INPUT_IDS, POSITION_IDS, EMBEDDING = "input_ids", "position_ids", "embedding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The parameters from a model's configuration."""

    heads: int
    #: Added to the variance in layer normalization, against division by zero.
    epsilon: float
    #: How the tokens' vectors are combined: their mean, or the first vector.
    pooling: str = MEAN


def read_shape(config: bytes, pooling: str) -> Shape:
    """Parse a model's `config.json`. Raises ModelRefused for unsupported kinds."""
    try:
        fields: dict[str, Any] = parse_json(config)
        kind = (
            fields["model_type"],
            fields.get("hidden_act", "gelu"),
            fields.get("position_embedding_type", "absolute"),
        )
        shape = Shape(
            heads=int(fields["num_attention_heads"]),
            epsilon=float(fields.get("layer_norm_eps", 1e-12)),
            pooling=pooling,
        )
        if shape.heads < 1:
            raise ValueError("no heads")  # noqa: TRY301 - one sentence for all that may be wrong with it
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ModelRefused(f"config.json is not that of a model ({error!r}).") from error
    if kind != ("bert", "gelu", "absolute"):
        raise ModelRefused(
            f"A graph is built for BERT models with GELU and absolute positions, not for {' '.join(map(str, kind))}.",
            "Give a folder that has the model as model.onnx beside its tokenizer.json.",
        )
    return shape


def build_graph(weights: Mapping[str, Tensor], shape: Shape, *, is_exact: bool = False) -> bytes:
    """Return the content of the model file. `is_exact` turns off quantization. Raises ModelRefused."""
    prefix = "bert." if any(name.startswith("bert.") for name in weights) else ""
    own = {name.removeprefix(prefix): tensor for name, tensor in weights.items()}
    try:
        model = _Encoder(own, shape, is_exact=is_exact).build()
    except (LookupError, ValueError, checker.ValidationError) as error:
        raise ModelRefused(f"The weights are not those of the BERT model in config.json ({error}).") from error
    return bytes(model.SerializeToString())


class _Encoder:
    """Builds the graph node by node, in order of execution."""

    def __init__(self, weights: Mapping[str, Tensor], shape: Shape, *, is_exact: bool) -> None:
        self._weights = weights
        self._shape = shape
        self._is_exact = is_exact
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._width = int(weights["embeddings.word_embeddings.weight"].shape[1])
        if self._width % shape.heads:
            raise ValueError(f"{self._width} numbers can't be shared out to {shape.heads} heads")
        self._mean = self._constant(np.full((self._width, 1), 1 / self._width, np.float32))
        self._epsilon = self._constant(np.float32(shape.epsilon))

    def build(self) -> "ModelProto":
        # Every token belongs to the first segment, so add that segment's embedding to all words now.
        words = self._weight("embeddings.word_embeddings") + self._weight("embeddings.token_type_embeddings")[0]
        word = self._node("Gather", self._constant(words), INPUT_IDS)
        place = self._node("Gather", self._constant(self._weight("embeddings.position_embeddings")), POSITION_IDS)
        hidden = self._norm(self._node("Add", word, place), "embeddings.LayerNorm")
        layers = 1 + max(int(name.split(".")[2]) for name in self._weights if name.startswith("encoder.layer."))
        for number in range(layers):
            hidden = self._layer(hidden, f"encoder.layer.{number}.")
        if self._shape.pooling == CLS:
            pooled = self._node("Gather", hidden, self._constant(np.int64(0)), axis=1)
        else:
            pooled = self._node("ReduceMean", hidden, self._numbers(1), keepdims=0)
        length = self._node("ReduceL2", pooled, self._numbers(1), keepdims=1)
        self._nodes.append(helper.make_node("Div", [pooled, length], [EMBEDDING]))
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, [1, "tokens"]) for name in (INPUT_IDS, POSITION_IDS)
        ]
        outputs = [helper.make_tensor_value_info(EMBEDDING, TensorProto.FLOAT, [1, self._width])]
        graph = helper.make_graph(self._nodes, "encoder", inputs, outputs, self._constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION, producer_name="svc"
        )
        checker.check_model(model)
        return model

    def _layer(self, hidden: str, name: str) -> str:
        attended = self._linear(self._attention(hidden, f"{name}attention.self."), f"{name}attention.output.dense")
        hidden = self._norm(self._node("Add", attended, hidden), f"{name}attention.output.LayerNorm")
        raised = self._node("Gelu", self._linear(hidden, f"{name}intermediate.dense"))
        lowered = self._linear(raised, f"{name}output.dense")
        return self._norm(self._node("Add", lowered, hidden), f"{name}output.LayerNorm")

    def _attention(self, hidden: str, name: str) -> str:
        """Add an attention layer, with one product for queries, keys and values.

        The queries' weights include the scaling.
        """
        heads, width = self._shape.heads, self._width // self._shape.heads
        parts = ((f"{name}query", width**-0.5), (f"{name}key", 1.0), (f"{name}value", 1.0))
        weight = np.concatenate([self._weight(part) * np.float32(scale) for part, scale in parts])
        bias = np.concatenate([self._bias(part) * np.float32(scale) for part, scale in parts])
        split = self._node("Reshape", self._product(hidden, weight, bias), self._numbers(1, -1, 3 * heads, width))
        all_heads = self._node("Transpose", split, perm=[0, 2, 1, 3])
        query, key, value = self._nodes_of("Split", all_heads, outputs=3, axis=1, num_outputs=3)
        alike = self._node("MatMul", query, self._node("Transpose", key, perm=[0, 1, 3, 2]))
        mixed = self._node("MatMul", self._node("Softmax", alike, axis=-1), value)
        return self._node(
            "Reshape", self._node("Transpose", mixed, perm=[0, 2, 1, 3]), self._numbers(1, -1, self._width)
        )

    def _linear(self, hidden: str, name: str) -> str:
        return self._product(hidden, self._weight(name), self._bias(name))

    def _product(self, hidden: str, weight: Tensor, bias: Tensor) -> str:
        columns = np.ascontiguousarray(weight.T)
        if self._is_exact:
            return self._node("Add", self._node("MatMul", hidden, self._constant(columns)), self._constant(bias))
        # Multiply as integers, then scale back. The runtime fuses these nodes.
        scale = np.maximum(np.abs(columns).max(axis=0), np.finfo(np.float32).tiny) / np.float32(_LARGEST_WEIGHT)
        whole = np.clip(np.rint(columns / scale), -_LARGEST_WEIGHT, _LARGEST_WEIGHT).astype(np.int8)
        rounded, step, zero = self._nodes_of("DynamicQuantizeLinear", hidden, outputs=3)
        zeros = self._constant(np.zeros(len(scale), np.int8))
        product = self._node("MatMulInteger", rounded, self._constant(whole), zero, zeros)
        as_float = self._node("Cast", product, to=TensorProto.FLOAT)
        scaled = self._node("Mul", as_float, self._node("Mul", step, self._constant(scale)))
        return self._node("Add", scaled, self._constant(bias))

    def _norm(self, hidden: str, name: str) -> str:
        """Add layer normalization. Its means are matrix products, because the runtime's own operator is slower."""
        centred = self._node("Sub", hidden, self._node("MatMul", hidden, self._mean))
        variance = self._node("MatMul", self._node("Mul", centred, centred), self._mean)
        deviation = self._node("Sqrt", self._node("Add", variance, self._epsilon))
        scaled = self._node("Mul", self._node("Div", centred, deviation), self._constant(self._weight(name)))
        return self._node("Add", scaled, self._constant(self._bias(name)))

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self._nodes_of(kind, *inputs, outputs=1, **attributes)[0]

    def _nodes_of(self, kind: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Add a node, and return the names of its outputs."""
        names = [f"{kind.lower()}_{len(self._nodes)}_{number}" for number in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def _constant(self, value: Tensor | np.generic) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _numbers(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _weight(self, name: str) -> Tensor:
        return self._weights[f"{name}.weight"]

    def _bias(self, name: str) -> Tensor:
        return self._weights[f"{name}.bias"]
