"""Sections for the other readings of a message in a conversation."""

from typing import Any

from haystack import Document, component

from components.faults import degraded
from components.passages import relevance, to_passage, with_meta
from components.retrieve.probe import Probe

_SECTIONS = 3
"""Number of sections of the topic's article. Of 92 everyday follow-ups in the demo shops, the right one is the first of
them for 45, among three for 54, among four for 56."""


@component
class ContextRetriever:
    """Find the sections that a message may be about if it is read with or without the conversation before it.

    "Four days now" means little by itself, but together with the question before it, its section can be found. These
    sections are offered in addition to those for the query, and are never quoted as an answer: only the customer knows
    which reading is right. If the search fails, nothing is offered and the turn is degraded (`in_context`).

    A follow-up is often about the article that the question before it was about: "and who pays for that?" after one
    about a return. So the sections of that article that are nearest to the message alone are offered, too.

    :param probe: searches for each reading.

    ```python
    ContextRetriever().run(readings=["I was charged twice. Four days now"])["documents"]
    ```
    """

    def __init__(self, probe: Probe | None = None) -> None:
        self.probe = probe or Probe()

    @component.output_types(documents=list[Document])
    def run(
        self, readings: list[str], question: str = "", topic: str = "", filters: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the `documents` of all readings, each with its highest relevance, best first.

        The best one of each reading has `meta["leads"]`, the sections of the topic's article `meta["of_topic"]`.

        :param question: the message as typed.
        :param topic: the question before it, if the message may go on with it.
        """
        best: dict[str, Document] = {}
        leading: set[str] = set()
        try:
            of_topic = self._of_topic(question, topic, filters) if topic else []
            for reading in readings:
                ranked = self.probe.ranked(reading, filters)
                leading.update(document.id for document in ranked[:1])
                for document in ranked:
                    if document.id not in best or relevance(document) > relevance(best[document.id]):
                        best[document.id] = document
        except Exception as error:
            degraded("in_context", error)
            return {"documents": []}
        for document in of_topic:
            best.setdefault(document.id, document)
        within = {document.id for document in of_topic}
        documents = [
            with_meta(document, leads=document.id in leading, of_topic=document.id in within)
            for document in best.values()
        ]
        return {"documents": sorted(documents, key=relevance, reverse=True)}

    def _of_topic(self, question: str, topic: str, filters: dict[str, Any] | None) -> list[Document]:
        """Return the sections nearest to a message in the article that its topic is about."""
        about = self.probe.ranked(topic, filters)[:1]
        if not about:
            return []
        of_article = {"field": "meta.doc_id", "operator": "in", "value": [to_passage(about[0]).doc_id]}
        conditions = [*(filters or {}).get("conditions", ()), of_article]
        return self.probe.ranked(question, {"operator": "AND", "conditions": conditions})[:_SECTIONS]
