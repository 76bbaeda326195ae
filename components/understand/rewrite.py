"""The queries of another retrieval pass, for what the evidence or the answer leaves open."""

from typing import Any

from haystack import Document, component
from haystack.dataclasses import GeneratedAnswer

from components.faults import degraded
from components.turn import Verdict
from components.understand.query_writer import LlmQueryWriter

REWRITER = "rewriter"


@component
class QueryRewriter:
    """Turn missing topics into search queries, or report that no search is needed.

    Without a writer, the missing topics are the queries. With one, a model rewrites them in the words of a help
    article. If the model fails, the topics themselves are searched and the turn is degraded (`rewriter`).

    :param max_queries: maximum number of queries in one pass.
    :param writer: the model that writes the queries; None for no model.

    ```python
    QueryRewriter().run(query="return and delivery", missing=["delivery price"], attempt=1, documents=[])
    ```
    """

    def __init__(self, max_queries: int = 3, writer: LlmQueryWriter | None = None) -> None:
        self.max_queries = max_queries
        self.writer = writer

    @component.output_types(
        query=str, variants=list[str], attempt=int, seen=list[Document], best=GeneratedAnswer, exhausted=Verdict
    )
    def run(
        self,
        query: str,
        missing: list[str],
        attempt: int,
        documents: list[Document],
        best: GeneratedAnswer | None = None,
        locale: str = "ru",
    ) -> dict[str, Any]:
        """Return the next pass: `query` again, `variants` to search too, `attempt`, and the documents `seen` so far.

        :param missing: what the passes so far leave open.
        :param attempt: the number of the pass that has ended.
        :param documents: all documents of the passes so far.
        :param best: the best answer of the passes so far; passed on.
        """
        carried = {"best": best} if best is not None else {}
        queries = [topic for topic in dict.fromkeys(" ".join(one.split()) for one in missing) if topic]
        if self.writer is not None and queries:
            try:
                queries = [*self.writer.write(query, queries, locale), *queries]
            except Exception as error:
                degraded(REWRITER, error)
        variants = [text for text in dict.fromkeys(queries) if text != query][: self.max_queries]
        if not variants:
            return {"exhausted": Verdict("human", ("no_new_query",)), **carried}
        return {"query": query, "variants": variants, "attempt": attempt + 1, "seen": documents, **carried}
