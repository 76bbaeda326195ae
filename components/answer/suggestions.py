"""Follow-up questions that the knowledge base answers."""

from collections.abc import Iterable, Iterator
from itertools import chain

from haystack import Document, component
from haystack.dataclasses import GeneratedAnswer

from components.answer.drafts import to_draft
from components.faults import degraded
from components.language.captions import innermost
from components.language.identifiers import codes
from components.language.marks import HEADING_LINE
from components.passages import relevance, to_passage
from components.retrieve.probe import Probe
from components.turn import Draft, Passage
from components.understand.followup import leaning
from components.understand.intent import IntentClassifier

_MAX_LENGTH = 60
_TRIED = 12
_RELATED_FROM = 0.02
"""Least probability that a document answers the question, from which its headings are suggested."""


@component
class QuestionSuggester:
    """Suggest follow-up questions after an answer.

    A suggestion is a heading of the documents that were found, or else of those that are cited, outside the answer. It
    is kept if it is understood without the conversation, and if a search for it, by words and then also by meaning,
    finds that document with enough certainty to answer. If the search fails, nothing is suggested.

    :param limit: suggestions at most.
    :param threshold: minimum probability that a search for the suggestion finds an answer.
    :param intent: reads a suggestion as it would a question.
    :param probe: searches for a suggestion that words alone find.
    """

    def __init__(
        self,
        limit: int = 3,
        threshold: float = 0.45,
        intent: IntentClassifier | None = None,
        probe: Probe | None = None,
    ) -> None:
        self.limit = limit
        self.threshold = threshold
        self.intent = intent or IntentClassifier()
        self.probe = probe or Probe()
        self._by_words = Probe(by_words=True, top_k=5)
        self._sections = Probe(by_words=True, top_k=_TRIED)

    def warm_up(self) -> None:
        """Load the model of intents, once."""
        self.intent.warm_up()

    @component.output_types(suggestions=list[str])
    def run(self, documents: list[Document], answers: list[GeneratedAnswer]) -> dict[str, list[str]]:
        """Return the suggestions.

        :param documents: what was found, best first.
        :param answers: the accepted answer.
        """
        draft = to_draft(answers[0]) if answers else None
        if draft is None or not draft.claims:
            return {"suggestions": []}
        suggestions: list[str] = []
        try:
            for passage, topic in _topics(chain(documents, self._cited(draft)), draft):
                if len(suggestions) == self.limit:
                    break
                if self._leads_to(topic, passage):
                    suggestions.append(topic)
        except Exception as error:
            degraded("suggestions", error)
        return {"suggestions": suggestions}

    def _cited(self, draft: Draft) -> Iterator[Document]:
        """Yield further sections of the cited documents."""
        titles = {citation.passage.doc_id: citation.passage.title for citation in draft.citations}
        for doc_id, title in titles.items():
            if title:
                yield from (one for one in self._sections.ranked(title) if to_passage(one).doc_id == doc_id)

    def _leads_to(self, topic: str, passage: Passage) -> bool:
        for probe in (self._by_words, self.probe):
            best = probe.best(topic)
            if best is None or relevance(best) < self.threshold or to_passage(best).doc_id != passage.doc_id:
                return False
        return "fixed" not in self.intent.run(question=topic)


def _topics(documents: Iterable[Document], draft: Draft) -> Iterator[tuple[Passage, str]]:
    """Yield the headings of what was found, best first, each once, but those of the answer."""
    used = {(one.passage.doc_id, one.passage.heading) for one in draft.citations}
    cited = {doc_id for doc_id, _ in used}
    seen = {innermost(heading) for _, heading in used}
    for document in documents:
        passage = to_passage(document)
        if passage.doc_id not in cited and relevance(document) < _RELATED_FROM:
            continue
        own = innermost(passage.heading) or ("" if passage.doc_id in cited else passage.title)
        inner = (match[1] for match in HEADING_LINE.finditer(passage.text))
        for topic in (*(() if (passage.doc_id, passage.heading) in used else (own,)), *inner):
            if not topic or len(topic) > _MAX_LENGTH or topic in seen or topic in draft.text:
                continue
            seen.add(topic)
            if leaning(topic) != "surely" and len(codes(topic)) <= 1:
                yield passage, topic
            if len(seen) >= _TRIED:
                return
