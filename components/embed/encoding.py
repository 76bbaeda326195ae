"""Encodes texts by a model on disk. Imports nothing heavy, because worker processes load this module at each start."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fastembed import TextEmbedding

Pooling: TypeAlias = Literal["mean", "cls", "last_token"]
Vectors: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EncoderFiles:
    """A model for ONNX Runtime and how it is run.

    :param model: name, as fastembed or the folder of models knows it.
    :param file: the ONNX file in its folder; empty for the one that fastembed knows.
    :param pooling: how that file's token vectors become one.
    :param folder: of all models, one sub-folder each as Hugging Face lays them out.
    :param offline: never fetch anything.
    :param threads: of one computation; None for one to each core.
    """

    model: str
    dimensions: int
    file: str
    pooling: Pooling
    folder: str
    offline: bool
    threads: int | None


@lru_cache(maxsize=8)
def load(files: EncoderFiles) -> "TextEmbedding":
    """The model, loaded once for all components that name it. Takes seconds."""
    from fastembed import TextEmbedding

    name = _registered(files.model, files.file, files.pooling, files.dimensions) if files.file else files.model
    return TextEmbedding(name, cache_dir=files.folder, threads=files.threads, local_files_only=files.offline)


def encode(files: EncoderFiles, texts: Sequence[str], batch: int) -> Vectors:
    """The vectors of passages, in their order.

    Batches contain texts of about as many tokens, because a batch takes as long as its longest text. By characters a
    sixth more would be computed: code has twice the tokens of prose.

    :param batch: texts computed at once.
    """
    model = load(files)
    order = sorted(range(len(texts)), key=lambda number: model.token_count(texts[number]))
    vectors = np.zeros((len(texts), files.dimensions), np.float32)
    encoded = model.passage_embed([texts[number] for number in order], batch_size=batch)
    for number, vector in zip(order, encoded, strict=True):
        vectors[number] = vector
    return vectors


@lru_cache(maxsize=64)
def _registered(model: str, file: str, pooling: Pooling, dimensions: int) -> str:
    """Register a model with fastembed under a name that identifies its configuration."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name = f"{model}/{file}#{pooling}{dimensions}"
    TextEmbedding.add_custom_model(
        name,
        pooling=PoolingType(pooling.upper()),
        normalization=True,
        sources=ModelSource(hf=model),
        dim=dimensions,
        model_file=file,
    )
    return name
