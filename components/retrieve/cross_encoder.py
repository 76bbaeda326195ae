"""A cross-encoder in this process: ONNX Runtime, through fastembed, in the form of a Haystack ranker."""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from haystack import Document, component

from components.embed.onnx import loading, models_folder

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder


@component
class FastCrossEncoder:
    """Scores documents by reading each together with the question. Scores are log-odds, as the model gives them.

    Components with the same model share it. Choose a model trained on the tenant's language: on Russian passages an
    English model is worse than no reranking.

    :param model: name of a model in fastembed, such as `BAAI/bge-reranker-v2-m3-int8`, or of any other with `file`.
    :param file: the ONNX file in the model's folder, such as `onnx/model_int8.onnx`; empty for fastembed's
        default.
    :param cache_dir: folder of models; empty for `models` in the data folder.
    :param offline: never fetch anything: the model's files must be there.
    :param threads: of one computation; None for one to each core.
    :param batch: documents computed at once.
    """

    def __init__(
        self,
        model: str,
        file: str = "",
        cache_dir: str = "",
        offline: bool = True,
        threads: int | None = None,
        batch: int = 8,
    ) -> None:
        self.model = model
        self.file = file
        self.cache_dir = cache_dir
        self.offline = offline
        self.threads = threads
        self.batch = batch

    def warm_up(self) -> None:
        """Load the model."""
        self._loaded()

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, list[Document]]:
        """:returns: the documents, best first, each with its `score`."""
        texts = [document.content or "" for document in documents]
        scores = list(self._loaded().rerank(query, texts, batch_size=self.batch)) if texts else []
        scored = [replace(document, score=score) for document, score in zip(documents, scores, strict=True)]
        return {"documents": sorted(scored, key=lambda document: -(document.score or 0.0))}

    def _loaded(self) -> "TextCrossEncoder":
        folder = models_folder(self.cache_dir)
        with loading(self.model, folder):
            name = _registered(self.model, self.file) if self.file else self.model
            return _load(name, folder, self.offline, self.threads)


@lru_cache(maxsize=8)
def _load(name: str, folder: str, offline: bool, threads: int | None) -> "TextCrossEncoder":
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    return TextCrossEncoder(name, cache_dir=folder, threads=threads, local_files_only=offline)


@lru_cache(maxsize=64)
def _registered(model: str, file: str) -> str:
    """Register a model in fastembed, under a name that includes the file."""
    from fastembed.common.model_description import ModelSource
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    name = f"{model}/{file}"
    TextCrossEncoder.add_custom_model(name, sources=ModelSource(hf=model), model_file=file)
    return name
