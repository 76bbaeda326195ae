"""What to ask next: questions whose answers are known to be in the knowledge base."""

from collections.abc import Iterator
from dataclasses import replace

from haystack import component

from components.faults import degraded
from components.judge.protocol import Judge
from components.language.captions import innermost
from components.language.texts import text
from components.language.words import stems
from components.turn import Passage, Query, Turn

_MAX_LENGTH = 60


@component
class QuestionSuggester:
    """Suggests follow-up questions after an answer that passed every gate, none after any other.

    A suggestion is made of the heading of a passage that was graded as evidence but not used, and kept only if the
    judge finds that this passage answers it. When the judge fails there are none: the answer stands without them.

    :param judge: who tells whether a suggestion is answerable.
    :param limit: most suggestions.
    :param threshold: least relevance of the passage to its suggestion.
    """

    def __init__(self, judge: Judge, limit: int = 3, threshold: float = 0.6) -> None:
        self.judge = judge
        self.limit = limit
        self.threshold = threshold

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn, with suggestions in its reply when its route is `auto`."""
        if turn.verdict.route != "auto" or turn.draft is None:
            return {"turn": turn}
        try:
            suggestions = self._suggested(turn)
        except Exception as error:
            return {"turn": degraded(turn, "suggestions", error)}
        return {"turn": replace(turn, reply=replace(turn.reply, suggestions=suggestions))}

    def _suggested(self, turn: Turn) -> tuple[str, ...]:
        suggestions: list[str] = []
        for passage, topic in _topics(turn):
            question = topic if topic.endswith("?") else text("outcomes.suggestion.topic", turn.locale, topic=topic)
            if len(question) <= _MAX_LENGTH and question not in suggestions and self._answerable(question, passage):
                suggestions.append(question)
            if len(suggestions) == self.limit:
                break
        return tuple(suggestions)

    def _answerable(self, question: str, passage: Passage) -> bool:
        query = Query(question, weights=dict.fromkeys(stems(question), 1.0))
        # The stored scores are those of another question.
        unscored = replace(passage, scores={})
        return self.judge.relevance(query, (unscored,))[passage.chunk_id] >= self.threshold


def _topics(turn: Turn) -> Iterator[tuple[Passage, str]]:
    """The innermost headings of graded passages that the answer does not use, best first, each once."""
    used = {(c.passage.doc_id, c.passage.heading) for c in turn.draft.citations} if turn.draft else set()
    for passage in turn.evidence.relevant_passages():
        place = (passage.doc_id, passage.heading)
        if passage.heading and place not in used:
            used.add(place)
            yield passage, innermost(passage.heading)
