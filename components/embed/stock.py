"""Dense vectors by Haystack's own embedders: Ollama, any OpenAI-compatible server, and others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from haystack import Document, default_to_dict
from haystack.components.embedders.types.protocol import DocumentEmbedder, TextEmbedder
from haystack.core.serialization import component_to_dict

from components.serialisation import Nested
from tenants.core.points import Dense


@dataclass(eq=False)
class StockEmbedder(Nested):
    """Embed with two Haystack embedders of the same model.

    They bring their own timeout and retries. Give both a timeout in which the server can load the model: Ollama aborts
    a load that no client waits for any more (https://github.com/ollama/ollama/pull/4638).

    :param passages_by: a document embedder.
    :param questions_by: a text embedder.
    :param model: name of the vector space of both; another name is another space.
    :param dimensions: length of a vector.
    :param patience: seconds that a question waits for its vector. After that it is searched by words, and the call
        continues in the background.
    """

    passages_by: DocumentEmbedder
    questions_by: TextEmbedder
    model: str
    dimensions: int
    patience: float = 3

    @property
    def space(self) -> str:
        """Return the model."""
        return self.model

    @property
    def available(self) -> bool:
        """Always true: an unreachable server is a failure to embed."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Serialise the constructor's arguments for Haystack, with the names of environment variables for secrets."""
        return default_to_dict(
            self,
            passages_by=component_to_dict(self.passages_by, "passages_by"),
            questions_by=component_to_dict(self.questions_by, "questions_by"),
            model=self.model,
            dimensions=self.dimensions,
            patience=self.patience,
        )

    def passages(self, texts: Sequence[str]) -> Sequence[Dense]:
        """Return the vectors of passages, in their order."""
        embedded: list[Document] = self.passages_by.run([Document(content=text) for text in texts])["documents"]
        return [document.embedding or () for document in embedded]

    def question(self, text: str) -> Dense:
        """Return the vector of a question."""
        vector: list[float] = self.questions_by.run(text)["embedding"]
        return vector
