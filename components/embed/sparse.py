"""Sparse vectors as Haystack components, by the encoder of the tenant's index."""

from dataclasses import replace

from haystack import Document, component
from haystack.dataclasses import SparseEmbedding

from components.language.encoder import encode_passage, encode_query
from components.language.encoder_settings import settings_from
from tenants.core.points import Weights
from tenants.index import open_collection


@component
class SparseTextEmbedder:
    """Encode a question for `QdrantSparseEmbeddingRetriever` or `QdrantHybridRetriever`.

    The settings are those of the current index of the tenant in context, so a rebuild needs no change here.

    ```python
    SparseTextEmbedder().run("Can I return a gift?")["sparse_embedding"]
    ```
    """

    @component.output_types(sparse_embedding=SparseEmbedding)
    def run(self, text: str) -> dict[str, SparseEmbedding]:
        """:returns: `sparse_embedding`, empty for a text without content words."""
        return {"sparse_embedding": _embedding(encode_query(text, settings_from(open_collection().encoder)))}


@component
class SparseDocumentEmbedder:
    """Encode documents for Haystack's `DocumentWriter`, by their title, heading and content."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """:returns: `documents`, each with its `sparse_embedding`."""
        settings = settings_from(open_collection().encoder)
        embedded = []
        for document in documents:
            title, heading = (str(document.meta.get(name) or "") for name in ("title", "heading"))
            weights = encode_passage(title, heading, document.content or "", settings)
            embedded.append(replace(document, sparse_embedding=_embedding(weights)))
        return {"documents": embedded}


def _embedding(weights: Weights) -> SparseEmbedding:
    return SparseEmbedding(indices=list(weights), values=list(weights.values()))
