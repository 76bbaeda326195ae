"""Dense vectors by a model in this process: ONNX Runtime, through fastembed.

fastembed-haystack 3.0 has components for the models that fastembed lists, and `StockEmbedder` takes them. It cannot
load an ONNX file that fastembed does not list, nor tell whether the file is there and which revision it is.

fastembed takes seconds to import, so it is imported only where a model is loaded.
"""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import RLock, get_native_id
from typing import TYPE_CHECKING, Literal, TypeAlias

from components.serialisation import Nested
from settings import get_settings
from tenants.core.points import Dense
from tenants.work.seats import Seats

if TYPE_CHECKING:
    from fastembed import TextEmbedding

log = logging.getLogger("opora.embed")

Pooling: TypeAlias = Literal["mean", "cls", "last_token"]

_LOADING = RLock()
"""Held while a model is loaded, so that each is loaded once however many components name it."""

_WORKERS = Seats(2, 2)
"""Threads that embed passages, for all tenants in turn. They share one model: ONNX Runtime and the tokenizer compute
outside the interpreter's lock. Measured with the default encoder and passages of 650 characters on one core: 39 a
second and thread, 285 MB for two threads. fastembed's `parallel=2` takes 913 MB, because each of its processes loads a
model, and starts them anew for each call.
"""

_SLICE = 32
"""Passages of one task: a second's work."""

_NICENESS = 10
"""Questions are embedded by the same model and do not wait."""

_TOKENS = 512
"""Of one computation. The default encoder takes a tenth less time for long texts than by 2,000 (one core)."""


@dataclass(eq=False)
class FastEmbedder(Nested):
    """Embed with a model that fastembed knows by name, or with any other ONNX model if `file` is set.

    Components that name the same model share it. It is loaded at first use, which takes seconds.

    :param model: name, such as `intfloat/multilingual-e5-small`.
    :param dimensions: length of a vector.
    :param question_prefix: prefix that the model expects before a question, such as `"query: "`.
    :param passage_prefix: prefix that it expects before a passage, such as `"passage: "`.
    :param file: the ONNX file in the model's folder, such as `onnx/model_int8.onnx`; empty for fastembed's
        default.
    :param pooling: how the token vectors of that file's model are combined; only with `file`.
    :param cache_dir: folder of models; empty for that of the settings.
    :param offline: never fetch anything: the model's files must already be there.
    :param threads: number of threads of one computation; None for one per core.
    :param batch: maximum number of passages computed at once; fewer if they are long.
    :param passage_length: characters of a passage that are read, title and heading among them; None for all that the
        model takes. Longer ones are no easier to find by one vector, and take longer.
    :param required: False: if the files are missing, an index is built without dense vectors.
    """

    model: str
    dimensions: int
    question_prefix: str = ""
    passage_prefix: str = ""
    file: str = ""
    pooling: Pooling = "mean"
    cache_dir: str = ""
    offline: bool = True
    threads: int | None = None
    batch: int = 8
    passage_length: int | None = None
    required: bool = True

    @property
    def space(self) -> str:
        """Return the model and everything that changes its vectors, such as the revision of the file in the folder."""
        file_part = f" {self.file} {self.pooling} {self._revision()}" if self.file else ""
        cut = f" {self.passage_length}" if self.passage_length else ""
        return f"{self.model}{file_part} {self.question_prefix!r} {self.passage_prefix!r}{cut}"

    @property
    def available(self) -> bool:
        """Return whether there will be vectors; where the files are required, their absence is a failure to embed."""
        return self.required or bool(self._revision())

    def passages(self, texts: Sequence[str]) -> Sequence[Dense]:
        """Return the vectors of passages, in their order."""
        model = self._loaded()
        prefixed = [self.passage_prefix + text[: self.passage_length] for text in texts]
        slices = [prefixed[start : start + _SLICE] for start in range(0, len(prefixed), _SLICE)]
        return [vector for part in _WORKERS.map(partial(_encode, model, self.batch), slices) for vector in part]

    def question(self, text: str) -> Dense:
        """Return the vector of a question."""
        (vector,) = self._loaded().query_embed([self.question_prefix + text])
        numbers: list[float] = vector.tolist()
        return numbers

    def _loaded(self) -> "TextEmbedding":
        folder = self._folder()
        with _LOADING:
            try:
                name = _registered(self.model, self.file, self.pooling, self.dimensions) if self.file else self.model
                return _load(name, folder, self.offline, self.threads)
            except Exception:
                log.error("the model %s cannot be loaded: its files are missing or damaged in %s", self.model, folder)
                raise

    def _folder(self) -> str:
        """Return the folder of models, with a sub-folder for each as Hugging Face lays them out."""
        return self.cache_dir or str(get_settings().models)

    def _revision(self) -> str:
        """Return the revision of the model in the folder; empty if unknown."""
        repository = Path(self._folder()) / f"models--{self.model.replace('/', '--')}"
        try:
            return (repository / "refs" / "main").read_text(encoding="ascii").strip()
        except OSError:
            return ""


@lru_cache(maxsize=8)
def _load(name: str, folder: str, offline: bool, threads: int | None) -> "TextEmbedding":
    from fastembed import TextEmbedding

    return TextEmbedding(name, cache_dir=folder, threads=threads, local_files_only=offline)


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


def _encode(model: "TextEmbedding", batch: int, texts: Sequence[str]) -> list[Dense]:
    if sys.platform == "linux":  # other systems have one priority for the whole process
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)
    vectors: list[Dense] = [()] * len(texts)
    for numbers in _batches([model.token_count(text) for text in texts], batch):
        embedded = model.passage_embed([texts[number] for number in numbers], batch_size=batch)
        for number, vector in zip(numbers, embedded, strict=True):
            vectors[number] = vector.tolist()
    return vectors


def _batches(lengths: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Yield the numbers of texts to compute together: of about as many tokens, because each is padded to the longest.

    :param lengths: of the texts, in tokens.
    :param limit: most texts of a batch.
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == limit or lengths[number] * (len(batch) + 1) > _TOKENS):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
