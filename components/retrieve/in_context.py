"""Sections for the other readings of a message in a conversation."""

from typing import Any

from haystack import Document, component

from components.faults import degraded
from components.passages import relevance, with_meta
from components.retrieve.probe import Probe


@component
class ContextRetriever:
    """Find the sections that a message may be about if it is read with or without the conversation before it.

    "Four days now" means little by itself, but together with the question before it, its section can be found. These
    sections are offered in addition to those for the query, and are never quoted as an answer: only the customer knows
    which reading is right. If the search fails, nothing is offered and the turn is degraded (`in_context`).

    :param probe: searches for each reading.

    ```python
    ContextRetriever().run(readings=["I was charged twice. Four days now"])["documents"]
    ```
    """

    def __init__(self, probe: Probe | None = None) -> None:
        self.probe = probe or Probe()

    @component.output_types(documents=list[Document])
    def run(self, readings: list[str], filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the `documents` of all readings, each with its highest relevance, best first.

        The best one of each reading has `meta["leads"]`.
        """
        best: dict[str, Document] = {}
        leading: set[str] = set()
        try:
            for reading in readings:
                ranked = self.probe.ranked(reading, filters)
                leading.update(document.id for document in ranked[:1])
                for document in ranked:
                    if document.id not in best or relevance(document) > relevance(best[document.id]):
                        best[document.id] = document
        except Exception as error:
            degraded("in_context", error)
            return {"documents": []}
        documents = [with_meta(document, leads=document.id in leading) for document in best.values()]
        return {"documents": sorted(documents, key=relevance, reverse=True)}
