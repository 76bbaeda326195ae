"""Tiny models for ONNX Runtime in the folder layout of Hugging Face, so that tests load them as real ones.

Both compare whole words only. The encoder maps each of `WORDS` to a separate dimension, synonyms to the same one; the
cross-encoder counts the content words that a passage shares with the question, minus two.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

ENCODER = "opora-tests/tiny-encoder"
CROSS_ENCODER = "opora-tests/tiny-cross-encoder"
DIMENSIONS = 8
FILE = "onnx/model_int8.onnx"

SYNONYMS = (
    ("гарантия", "warranty", "поручительство"),
    ("возврат", "вернуть", "refund", "отдать"),
    ("пароль", "password", "код-слово", "забыл"),
    ("насос", "pump", "помпа"),
    ("доставка", "курьер", "delivery"),
    ("оплата", "карта", "деньги"),
)
"""Groups of synonyms, each with a separate dimension."""

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_WORDS = [*_SPECIAL, *(word for group in SYNONYMS for word in group)]


def lay_out(cache: Path, model: str, graph: onnx.ModelProto, file: str = FILE) -> Path:
    """Write a model with its tokenizer into a cache of models; returns its folder."""
    repository = cache / f"models--{model.replace('/', '--')}"
    snapshot = repository / "snapshots" / "1"
    (snapshot / file).parent.mkdir(parents=True, exist_ok=True)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text("1")
    onnx.save(graph, str(snapshot / file))
    _tokenizer().save(str(snapshot / "tokenizer.json"))
    (snapshot / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (snapshot / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64, "pad_token": "[PAD]"}))
    (snapshot / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]"}))
    return snapshot


def with_embedder(yaml: str, block: str) -> str:
    """Return the ingest pipeline with another embedder for its writer.

    :param block: the YAML block as in the file; empty for none.
    """
    changed, count = re.subn(r"      embedder:.*?(?=      encoder:)", lambda _: block, yaml, flags=re.DOTALL)
    assert count == 1
    return changed


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(_WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def _directions(dimensions: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the direction of each token. Unknown and special ones share a weak one, so that no vector is zero."""
    table = np.zeros((len(_WORDS), dimensions), dtype=np.float32)
    table[1 : len(_SPECIAL), dimensions - 1] = 0.02
    for place, group in enumerate(SYNONYMS):
        for word in group:
            table[_WORDS.index(word), place] = 1.0
    return table


def _inputs(*names: str) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names]


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    out: onnx.ValueInfoProto,
    constants: Sequence[onnx.TensorProto] = (),
    dimensions: int = DIMENSIONS,
) -> onnx.ModelProto:
    table = numpy_helper.from_array(_directions(dimensions), "directions")
    graph = helper.make_graph(nodes, "tiny", inputs, [out], [table, *constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


_CONSTANTS = [
    numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
    numpy_helper.from_array(np.array([1], dtype=np.int64), "tokens"),
    numpy_helper.from_array(np.array(1.0, dtype=np.float32), "one"),
    numpy_helper.from_array(np.array(2.0, dtype=np.float32), "two"),
]


def encoder(dimensions: int = DIMENSIONS) -> onnx.ModelProto:
    """Return token vectors, to be pooled: (batch, tokens, dimensions)."""
    nodes = [helper.make_node("Gather", ["directions", "input_ids"], ["last_hidden_state"])]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", dimensions])
    return _model(nodes, _inputs("input_ids", "attention_mask"), out, dimensions=dimensions)


def cross_encoder() -> onnx.ModelProto:
    """Return log-odds of relevance: (batch, 1). The dot product of both sides' summed directions, minus two."""
    nodes = [
        helper.make_node("Gather", ["directions", "input_ids"], ["vectors"]),
        helper.make_node("Cast", ["token_type_ids"], ["is_passage"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["is_passage", "last"], ["of_passage"]),
        helper.make_node("Sub", ["one", "of_passage"], ["of_question"]),
        helper.make_node("Mul", ["vectors", "of_passage"], ["passage_vectors"]),
        helper.make_node("Mul", ["vectors", "of_question"], ["question_vectors"]),
        helper.make_node("ReduceSum", ["passage_vectors", "tokens"], ["passage"], keepdims=0),
        helper.make_node("ReduceSum", ["question_vectors", "tokens"], ["question"], keepdims=0),
        helper.make_node("Mul", ["passage", "question"], ["products"]),
        helper.make_node("ReduceSum", ["products", "tokens"], ["common"], keepdims=1),
        helper.make_node("Sub", ["common", "two"], ["logits"]),
    ]
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    return _model(nodes, _inputs("input_ids", "attention_mask", "token_type_ids"), out, _CONSTANTS)
