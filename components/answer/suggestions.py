"""Follow-up questions that the knowledge base answers."""

from collections.abc import Iterator

from haystack import Document, component
from haystack.dataclasses import GeneratedAnswer

from components.answer.drafts import to_draft
from components.faults import degraded
from components.language.captions import innermost
from components.passages import relevance, to_passage
from components.retrieve.probe import Probe
from components.turn import Passage

_MAX_LENGTH = 60
_TRIED = 6


@component
class QuestionSuggester:
    """Suggest follow-up questions after an answer.

    A suggestion is the heading of a document that was accepted as evidence but not used. It is kept if a search for it
    leads to that document with enough certainty to answer. If the search fails there are none.

    :param limit: suggestions at most.
    :param threshold: least probability that a search for the suggestion finds an answer.
    :param probe: searches for a suggestion.
    """

    def __init__(self, limit: int = 3, threshold: float = 0.45, probe: Probe | None = None) -> None:
        self.limit = limit
        self.threshold = threshold
        self.probe = probe or Probe(by_words=True, top_k=5)

    @component.output_types(suggestions=list[str])
    def run(self, documents: list[Document], answers: list[GeneratedAnswer]) -> dict[str, list[str]]:
        """Return the suggestions.

        :param documents: the accepted evidence, best first.
        :param answers: the accepted answer.
        """
        draft = to_draft(answers[0]) if answers else None
        if draft is None or not draft.claims:
            return {"suggestions": []}
        used = {(one.passage.doc_id, one.passage.heading) for one in draft.citations}
        suggestions: list[str] = []
        try:
            for passage, topic in _topics(documents, used):
                if len(suggestions) == self.limit:
                    break
                if self._leads_to(topic, passage):
                    suggestions.append(topic)
        except Exception as error:
            degraded("suggestions", error)
        return {"suggestions": suggestions}

    def _leads_to(self, topic: str, passage: Passage) -> bool:
        best = self.probe.best(topic)
        return best is not None and relevance(best) >= self.threshold and to_passage(best).doc_id == passage.doc_id


def _topics(documents: list[Document], used: set[tuple[str, str]]) -> Iterator[tuple[Passage, str]]:
    """The innermost headings of unused documents, best first, each once."""
    seen: set[str] = set()
    for document in documents:
        passage = to_passage(document)
        topic = innermost(passage.heading) or passage.title
        if topic and len(topic) <= _MAX_LENGTH and topic not in seen and (passage.doc_id, passage.heading) not in used:
            seen.add(topic)
            yield passage, topic
            if len(seen) == _TRIED:
                return
