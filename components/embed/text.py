"""Dense vectors of questions as a Haystack component, by the embedder of the tenant's index."""

from haystack import component

from components.embed.dense import EmbeddingFailed, embed_question
from components.faults import degraded
from components.language.encoder_settings import settings_from
from tenants.index import open_collection


@component
class IndexTextEmbedder:
    """Embed a question for `QdrantEmbeddingRetriever` or `QdrantHybridRetriever`.

    Uses the embedder that encoded the tenant's index. Any other text embedder of the same model serves as well.

    The embedding is empty if the index has no dense vectors or the embedder fails. A hybrid search in Opora's document
    stores then uses words only, and after a failure the turn is degraded (`embedder`).

    ```python
    IndexTextEmbedder().run("Can I return a gift?")["embedding"]
    ```
    """

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """:returns: `embedding`."""
        dense = settings_from(open_collection().encoder).dense
        if dense is None:
            return {"embedding": []}
        try:
            return {"embedding": list(embed_question(text, dense))}
        except EmbeddingFailed as error:
            degraded("embedder", error)
            return {"embedding": []}
