"""Quality, completeness and relevance of an answer to a question."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from haystack import component
from haystack.dataclasses import GeneratedAnswer

from components.answer.drafts import to_draft
from components.faults import degraded
from components.judge.llm import LlmJudge
from components.judge.terms import read_query
from components.language.asking import GENERIC
from components.language.identifiers import codes
from components.language.words import families, relatives, stems, words
from components.models.calls import tier_of
from components.models.prompts import as_asked
from components.passages import relevance
from components.turn import Complexity, Draft, Exchange, Passage, Quality, SelfEvaluation
from components.understand.followup import previous

SELF_EVALUATOR = "self_evaluator"
_QUOTED = re.compile(r"[«“\"]\s*([^«»“”\"]{2,40}?)\s*[»”\"]")
"""A name that the customer quotes: «Волна Семья», "Family Plus"."""
_NAME = re.compile(r"[A-ZА-ЯЁ][\w-]*(?:\s[A-ZА-ЯЁ][\w-]*)+")
"""A name of several words in a text: Volna Standard."""
NOT_EVALUATED = SelfEvaluation(0, "unknown", 0.0, 0.0)
"""The evaluation if no judge could give one: a score is measured or absent."""


@component
class SelfEvaluator:
    """Score an answer against the question: how completely it answers, its relevance, its quality, and what it leaves
    open.

    A model reads the question, the answer and what its writer left open, never the passages: whether the claims are
    true is `FactVerifier`'s question. A quotation is scored by the judge's probability that its section answers. Below
    `quote_threshold`, it answers nothing, nor does a section that mentions the subject only in passing. Any other
    quotation leaves open the codes and names that it does not contain. If the model fails, the answer counts as not
    evaluated, and the turn is degraded (`self_evaluator`).

    :param judge: the model that evaluates; None to go by the evidence alone.
    :param quote_threshold: minimum adequacy of the evidence for a quotation to count as an answer.

    ```python
    SelfEvaluator().run(query="warranty period", answers=answers, adequacy=0.7)["evaluation"]
    ```
    """

    def __init__(self, judge: LlmJudge | None = None, quote_threshold: float = 0.45) -> None:
        self.judge = judge
        self.quote_threshold = quote_threshold

    @component.output_types(evaluation=SelfEvaluation)
    def run(
        self,
        query: str,
        answers: list[GeneratedAnswer],
        adequacy: float = 0.0,
        history: list[Exchange] | None = None,
        standalone: str = "",
        locale: str = "ru",
        quality: Quality = "balanced",
        complexity: Complexity = "unknown",
        question: str = "",
    ) -> dict[str, SelfEvaluation]:
        """Return the evaluation of the first answer.

        :param query: the standalone question.
        :param adequacy: probability (0..1) that the evidence answers.
        :param history: the conversation so far, oldest first.
        :param standalone: the message completed from the conversation; empty if it was complete.
        :param question: the customer's words, which a model also reads: spelling correction may have changed a name.
        """
        draft = to_draft(answers[0]) if answers else Draft("", (), ())
        if draft.quoted and answers[0].documents:
            # The evidence is as good as its best document, a quotation as the document that it is from.
            adequacy = min(adequacy, relevance(answers[0].documents[0]))
        if self.judge is None or draft.quoted or not draft.claims:
            return {"evaluation": self._by_evidence(query, draft, adequacy, history if history and standalone else ())}
        try:
            tier = tier_of(quality, complexity)
            read = as_asked(question or query, query)
            return {"evaluation": self.judge.evaluate(read, draft.text, draft.missing, locale=locale, tier=tier)}
        except Exception as error:
            degraded(SELF_EVALUATOR, error)
            return {"evaluation": NOT_EVALUATED}

    def _by_evidence(self, query: str, draft: Draft, adequacy: float, history: Sequence[Exchange]) -> SelfEvaluation:
        if not draft.claims:
            return replace(NOT_EVALUATED, answerability="cannot")
        titles = " ".join(f"{one.passage.title} {one.passage.heading}" for one in draft.citations)
        said = frozenset(stems(f"{draft.text} {titles}"))
        off_topic = _in_passing(query, draft.text, titles) or _misses_new_words(query, history, said)
        if adequacy < self.quote_threshold or off_topic:
            return SelfEvaluation(50, "cannot", adequacy, adequacy)
        shown = {*codes(draft.text), *(code for citation in draft.citations for code in _about(citation.passage))}
        missing = tuple(code for code in read_query(query).codes if code not in shown)
        asked = dict.fromkeys((*_QUOTED.findall(query), *_siblings(query, draft.text)))
        missing += tuple(name for name in asked if not said.issuperset(stems(name)))
        return SelfEvaluation(100, "partially" if missing else "fully", adequacy, adequacy, missing)


def _in_passing(query: str, answer: str, titles: str) -> bool:
    """Return whether a query names one thing that is no code, and only the text holds it, not the headings.

    "Refund how long" finds the refund of an extended warranty.
    """
    asked = [stem for stem in dict.fromkeys(stems(query)) if stem not in GENERIC and not stem.isdigit()]
    headed = frozenset(stems(titles))
    if not headed or len(asked) != 1 or codes(query) or asked[0] not in stems(answer):
        return False
    return asked[0] not in headed and not relatives(asked[0], families(headed))


def _misses_new_words(query: str, history: Sequence[Exchange], said: frozenset[str]) -> bool:
    """Return whether a follow-up adds words to the question before it, and the quotation has none of them.

    "And if I pay it off early?" is not answered by the passage about the down payment that was asked about before.
    """
    before = previous(history)
    asked, earlier = set(stems(query)) - GENERIC, set(stems(before.question)) - GENERIC if before else set()
    added = asked - earlier
    if not added or not asked & earlier:
        return False
    among = families(said)
    return not any(stem in said or relatives(stem, among) for stem in added)


def _siblings(query: str, answer: str) -> tuple[str, ...]:
    """Return the names in a query that begin like a name in the answer: "Volna Family" beside "Volna Standard".

    A customer types them without quotation marks and capitals. The family is the word before the last: a verb may open
    the sentence, as in "Connect Volna Standard".
    """
    family_names = {words(name)[-2].stem for name in _NAME.findall(answer) if not words(name)[-2].stop}
    asked = words(query)
    return tuple(
        query[one.start : two.end] for one, two in pairwise(asked) if one.stem in family_names and not two.stop
    )


def _about(passage: Passage) -> tuple[str, ...]:
    """Return the codes that a section is about. A title with several codes is ignored: it belongs to a list."""
    titled = codes(passage.title)
    return (*codes(passage.heading), *(titled if len(titled) == 1 else ()))
