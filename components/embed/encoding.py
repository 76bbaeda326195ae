"""Encodes texts by a model on disk. Imports nothing heavy, because worker processes load this module at each start."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fastembed import TextEmbedding

Pooling: TypeAlias = Literal["mean", "cls", "last_token"]
Vectors: TypeAlias = npt.NDArray[np.float32]

_TOKENS = 512
"""Of one computation. The default encoder takes a tenth less time for long texts than by 2,000 (one core)."""


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

    :param batch: the most texts computed at once; of long ones it is fewer.
    """
    model = load(files)
    vectors = np.zeros((len(texts), files.dimensions), np.float32)
    for numbers in _batches([model.token_count(text) for text in texts], batch):
        vectors[numbers] = list(model.passage_embed([texts[number] for number in numbers], batch_size=batch))
    return vectors


def _batches(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """The numbers of texts that are computed together: of about as many tokens, because each is computed as if it were
    as long as its longest. By characters a tenth more would be computed: code has twice the tokens of prose.

    :param lengths: of the texts, in tokens.
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == most or lengths[number] * (len(batch) + 1) > _TOKENS):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


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
