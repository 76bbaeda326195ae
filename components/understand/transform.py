"""A standalone search query from a question and the conversation before it."""

import re
from collections.abc import Iterable
from typing import Any

from haystack import component

from components.faults import degraded
from components.judge.terms import strict_codes
from components.language.asking import to_the_point
from components.language.captions import innermost
from components.language.normalise import LATIN_LOOKALIKES, clean
from components.language.recovery import recover, vocabulary_of
from components.language.words import stems
from components.passages import relevance, to_passage
from components.retrieve.probe import Probe
from components.retrieve.tools import ToolSearch
from components.turn import Exchange, Query
from components.understand.condenser import LlmCondenser
from components.understand.followup import (
    chosen_option,
    last_topic,
    leaning,
    named,
    new_topic,
    previous,
    replaced_topic,
    standalone,
    with_company,
)
from components.understand.parts import parts_of
from components.understand.synonyms import common_synonyms, with_known_synonyms
from tenants.accounts import policy
from tenants.index import open_collection
from tenants.knowledge import lexicon

TRANSFORMER = "transformer"
_ANSWERED = 0.45
"""Probability from which the knowledge base answers a reading of "and delivery?". Below, it is a topic by itself."""
_PARTS = re.compile(r"[^\W\d_]+|\d+")


@component
class QueryTransformer:
    """Resolve follow-ups, repair typing, apply the tenant's synonyms; codes, amounts and names are never changed.

    A question that depends on the conversation is completed from it: by the condenser if there is one, otherwise by
    rules. A question with words that are unknown to the knowledge base is repaired (wrong keyboard layout, Latin
    letters, typing errors). The words as typed are searched in addition to the repaired ones, and so is each part of a
    message with several questions.

    `readings` are other ways to understand a message of a conversation: with the question before it, and by itself.
    With a condenser, which decides between them, this list is empty.

    A question is `absent` if it names codes and the knowledge base contains none of them, unless `codes_may_differ`.

    :param recovery: whether to repair questions.
    :param max_variants: maximum number of further texts to search for.
    :param turns: number of earlier questions that a follow-up may refer to.
    :param condenser: a model that rewrites follow-ups; None for rules.
    :param tools: the tenant's tools, which may know codes that the knowledge base lacks.
    :param codes_may_differ: whether to search even for a code that the knowledge base lacks. A model understands that
        "TLS1.1" is not a code, or that an article spells it differently.
    :param probe: decides whether a short question is a new topic, by the reading with the better answer.

    ```python
    QueryTransformer().run(question="and for the E20?", history=history)["query"]
    ```
    """

    def __init__(
        self,
        recovery: bool = True,
        max_variants: int = 3,
        turns: int = 4,
        condenser: LlmCondenser | None = None,
        tools: ToolSearch | None = None,
        codes_may_differ: bool = False,
        probe: Probe | None = None,
    ) -> None:
        self.codes_may_differ = codes_may_differ
        self.recovery = recovery
        self.max_variants = max_variants
        self.turns = turns
        self.condenser = condenser
        self.tools = tools
        self.probe = probe or Probe()

    @component.output_types(
        query=str, variants=list[str], understood=Query, absent=list[str], standalone=str, readings=list[str]
    )
    def run(
        self, question: str, history: list[Exchange] | None = None, context: str = "", locale: str = "ru"
    ) -> dict[str, Any]:
        """Return `query`, its `variants` and other `readings`, or `absent` codes; always what was `understood`.

        :param history: the conversation so far, oldest first.
        :param context: the product or page that the customer is looking at; searched with the question.
        """
        terms = lexicon.current()
        typed = to_the_point(clean(question).strip())
        completed = self._completed(typed, (history or [])[-self.turns :], locale)
        groups = (*policy.current().synonyms, *common_synonyms())
        meant = completed or with_company(typed, terms.stems)
        with_synonyms = with_known_synonyms(meant, groups, terms.stems)
        recovered = recover(with_synonyms, vocabulary_of(terms.words, terms.stems)) if self.recovery else None
        search = recovered.text if recovered else with_synonyms
        others = (completed, typed, *parts_of(search), *(recovered.others if recovered else ()))
        if context:
            others = (f"{search} ({context})", *others)
        variants = _distinct(others, excluding=search)[: self.max_variants]
        codes = strict_codes(search)
        understood = Query(search, tuple(variants), recovered.kind if recovered else "none", codes=codes)
        result: dict[str, Any] = {"understood": understood, "standalone": completed}
        if readings := self._readings(search, typed, (history or [])[-self.turns :]):
            result["readings"] = readings
        absent = () if self.codes_may_differ else _absent_codes(codes)
        if absent and not (self.tools is not None and self.tools.may_answer(question, search)):
            return {**result, "absent": list(absent)}
        return {**result, "query": search, "variants": variants}

    def _completed(self, typed: str, history: list[Exchange], locale: str) -> str:
        """Return the question completed from the conversation; empty if it needs no context."""
        if not history:
            return ""
        if self.condenser is not None:
            try:
                return self.condenser.condense(typed, history, locale)
            except Exception as error:
                degraded(TRANSFORMER, error)
        completed = standalone(typed, history)
        if new_topic(typed) and previous(history) is not None:
            readings = _distinct((replaced_topic(typed, history), completed), excluding="")
            probabilities = {reading: self.probe.probability(reading) for reading in readings}
            best = max(probabilities, key=probabilities.__getitem__, default="")
            return best if probabilities.get(best, 0.0) >= _ANSWERED else ""
        if not completed or leaning(typed) == "surely":
            return completed
        return "" if self._stands_alone(typed, completed) else completed

    def _readings(self, search: str, typed: str, history: list[Exchange]) -> list[str]:
        """Return the message with the topic of the conversation, and by itself; empty without a topic.

        An offered topic that the customer chose means what it says.
        """
        before = previous(history)
        is_chosen = before is not None and chosen_option(typed, before.options) is not None
        topic = "" if self.condenser is not None or is_chosen else last_topic(history)
        if not topic:
            return []
        # The last reply said that the knowledge base lacks the code.
        for code in strict_codes(topic):
            if _absent_codes((code,)):
                topic = re.sub(re.escape(code), "", topic, flags=re.IGNORECASE)
        return _distinct((f"{topic} {typed}", typed) if re.search(r"\w", topic) else (typed,), excluding=search)

    def _stands_alone(self, typed: str, completed: str) -> bool:
        """Return whether the knowledge base answers the question as typed, or has its very topic as a heading."""
        alone = self.probe.best(typed)
        if alone is None:
            return False
        if relevance(alone) >= self.probe.probability(completed):
            return True
        passage = to_passage(alone)
        headed = frozenset(stems(f"{passage.title} {innermost(passage.heading)}"))
        topic = named(typed)
        return bool(topic) and headed.issuperset(topic)


def _absent_codes(codes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the codes if no passage can hold any of them, spelt as one word or in parts ("E-20", "Е-20").

    Only complete counts prove absence. While an ingest run changes the index, the search decides.
    """
    known = lexicon.current()
    in_parts = (" ".join(_PARTS.findall(code)) for code in codes)
    spelt = ((code, parts, parts.translate(LATIN_LOOKALIKES)) for code, parts in zip(codes, in_parts, strict=True))
    is_known = (any(all(stem in known.stems for stem in stems(form)) for form in forms) for forms in spelt)
    if not codes or any(is_known):
        return ()
    return codes if open_collection().count() == known.chunks else ()


def _distinct(texts: Iterable[str], *, excluding: str) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text and text != excluding]
