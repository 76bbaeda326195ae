"""Dense vectors by a model in this process: ONNX Runtime, through fastembed."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from components.embed.onnx import loading, models_folder
from components.nested import Nested
from tenants.index import Dense

if TYPE_CHECKING:
    from fastembed import TextEmbedding

Pooling: TypeAlias = Literal["mean", "cls", "last_token"]


class FastEmbedder(Nested):
    """Embeds by a model that fastembed knows by name, or by any other ONNX model when `file` says where it is.

    All that name the same model share it. It is loaded at first use, which takes seconds.

    :param model: name, such as `intfloat/multilingual-e5-small`.
    :param dimensions: numbers of a vector.
    :param question_prefix: what the model wants before a question, such as `"query: "`.
    :param passage_prefix: what it wants before a passage, such as `"passage: "`.
    :param file: the ONNX file in the model's folder, such as `onnx/model_int8.onnx`; empty for the one that fastembed
        knows.
    :param pooling: how that file's token vectors become one; only with `file`.
    :param cache_dir: folder of models; empty for `models` in the data folder.
    :param offline: never fetch anything: the model's files must be there.
    :param threads: of one computation; None for one to each core.
    :param batch: passages computed at once.
    """

    def __init__(
        self,
        model: str,
        dimensions: int,
        question_prefix: str = "",
        passage_prefix: str = "",
        file: str = "",
        pooling: Pooling = "mean",
        cache_dir: str = "",
        offline: bool = True,
        threads: int | None = None,
        batch: int = 16,
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        self.question_prefix = question_prefix
        self.passage_prefix = passage_prefix
        self.file = file
        self.pooling = pooling
        self.cache_dir = cache_dir
        self.offline = offline
        self.threads = threads
        self.batch = batch

    @property
    def space(self) -> str:
        """The model, and all that changes what it computes."""
        own = f" {self.file} {self.pooling}" if self.file else ""
        return f"{self.model}{own} {self.question_prefix!r} {self.passage_prefix!r}"

    def passages(self, texts: Sequence[str]) -> Sequence[Dense]:
        """The vectors of passages, in their order."""
        prefixed = [self.passage_prefix + text for text in texts]
        return [vector.tolist() for vector in self._loaded().passage_embed(prefixed, batch_size=self.batch)]

    def question(self, text: str) -> Dense:
        """The vector of a question."""
        (vector,) = self._loaded().query_embed([self.question_prefix + text])
        numbers: list[float] = vector.tolist()
        return numbers

    def _loaded(self) -> "TextEmbedding":
        folder = models_folder(self.cache_dir)
        with loading(self.model, folder):
            name = _known(self.model, self.file, self.pooling, self.dimensions) if self.file else self.model
            return _load(name, folder, self.offline, self.threads)


@lru_cache(maxsize=8)
def _load(name: str, folder: str, offline: bool, threads: int | None) -> "TextEmbedding":
    from fastembed import TextEmbedding

    return TextEmbedding(name, cache_dir=folder, threads=threads, local_files_only=offline)


@lru_cache(maxsize=64)
def _known(model: str, file: str, pooling: Pooling, dimensions: int) -> str:
    """Make a model known to fastembed, under a name that stands for all that makes it another model."""
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
