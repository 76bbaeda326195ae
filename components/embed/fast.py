"""Dense vectors by a model in this process: ONNX Runtime, through fastembed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from components.embed.encoding import EncoderFiles, Pooling, encode, load
from components.embed.onnx import loading, models_folder
from components.embed.processes import EMBEDDING_PROCESSES
from components.nested import Nested
from tenants.index import Dense

if TYPE_CHECKING:
    from fastembed import TextEmbedding


class FastEmbedder(Nested):
    """Embeds by a model that fastembed knows by name, or by any other ONNX model when `file` says where it is.

    Components that name the same model share it. It is loaded at first use, which takes seconds. Passages of a bulk
    load are embedded in worker processes, one model each.

    :param model: name, such as `intfloat/multilingual-e5-small`.
    :param dimensions: numbers of a vector.
    :param question_prefix: what the model wants before a question, such as `"query: "`.
    :param passage_prefix: what it wants before a passage, such as `"passage: "`.
    :param file: the ONNX file in the model's folder, such as `onnx/model_int8.onnx`; empty for the one that fastembed
        knows.
    :param pooling: how that file's token vectors become one; only with `file`.
    :param cache_dir: folder of models; empty for that of the settings.
    :param offline: never fetch anything: the model's files must be there.
    :param threads: of one computation; None for one to each core.
    :param batch: the most passages computed at once; of long ones it is fewer.
    :param passage_length: characters of a passage that are read, title and heading among them; None for all that the
        model takes. Longer ones are no easier to find by one vector, and take longer.
    :param required: False: where the files are missing, an index is made without dense vectors.
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
        batch: int = 8,
        passage_length: int | None = None,
        required: bool = True,
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
        self.passage_length = passage_length
        self.required = required

    @property
    def space(self) -> str:
        """The model and everything that changes its vectors, such as the revision of the file in the folder."""
        file_part = f" {self.file} {self.pooling} {self._revision()}" if self.file else ""
        cut = f" {self.passage_length}" if self.passage_length else ""
        return f"{self.model}{file_part} {self.question_prefix!r} {self.passage_prefix!r}{cut}"

    @property
    def available(self) -> bool:
        """Whether there will be vectors; where the files are required, their absence is a failure to embed."""
        return self.required or bool(self._revision())

    def passages(self, texts: Sequence[str]) -> Sequence[Dense]:
        """The vectors of passages, in their order."""
        prefixed = [self.passage_prefix + text[: self.passage_length] for text in texts]
        vectors = EMBEDDING_PROCESSES.embedded(self._files(), prefixed, self.batch) if self._revision() else None
        if vectors is None:
            self._loaded()
            vectors = encode(self._files(), prefixed, self.batch)
        numbers: list[list[float]] = vectors.tolist()
        return numbers

    def question(self, text: str) -> Dense:
        """The vector of a question."""
        (vector,) = self._loaded().query_embed([self.question_prefix + text])
        numbers: list[float] = vector.tolist()
        return numbers

    def _loaded(self) -> "TextEmbedding":
        with loading(self.model, models_folder(self.cache_dir)):
            return load(self._files())

    def _files(self) -> EncoderFiles:
        folder = models_folder(self.cache_dir)
        return EncoderFiles(self.model, self.dimensions, self.file, self.pooling, folder, self.offline, self.threads)

    def _revision(self) -> str:
        """The revision of the model in the folder; empty when there is none."""
        repository = Path(models_folder(self.cache_dir)) / f"models--{self.model.replace('/', '--')}"
        try:
            return (repository / "refs" / "main").read_text(encoding="ascii").strip()
        except OSError:
            return ""
