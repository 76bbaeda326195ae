"""Answering without a model: the section of the evidence that answers, quoted in order, with its citations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import exp

from haystack import component

from components.answer.bounds import qualified, with_conditions
from components.answer.choice import SENTENCES, Limits, choose
from components.answer.citations import cite
from components.answer.opening import decision, opening
from components.answer.section import in_order, parts, steps
from components.answer.units import Unit, is_numbered, plain, units
from components.judge.analysis import analyse
from components.judge.approaches import proposed
from components.judge.coverage import Question, prepare, sentence_coverage, word_order
from components.judge.demands import demand
from components.language.normalise import fold
from components.language.question_kind import QuestionKind, kind_of
from components.language.questions import OPEN, AnswerType, answer_type, asked, holds
from components.language.relatives import relatives
from components.language.words import words
from components.nested import Nested
from components.retrieve.sections import section_of
from components.turn import Draft, Passage, RejectedApproach, Turn

# Weights of a sentence's features, tuned on the XQuAD development questions (n = 1,038; does the sentence hold the gold
# answer, is its passage the gold one?). The passage rules: a fine sentence of a poorer passage misleads, so that words
# decide only between passages that the judge takes for about as likely. At 8 more answers came from a passage graded 0
# (right of claimed: Microsoft 0.54, now 0.59; Yandex Cloud 0.76, now 0.77).
_PLACE = 30.0
_COVERED = 0.5
_COVERED_ITSELF = 0.5
_DERIVED = 0.6
_HOLDS_KIND = 0.5
_ORDERED = 0.4
_LENGTH = 0.3
_LONG = 30
# A section whose heading asks the same question answers it from its start.
_EARLY = 1.5
_EARLY_SENTENCES = 3.0
# A question about how to do something is answered by numbered steps.
_STEP = 1.5
_DEMANDING: frozenset[QuestionKind] = SENTENCES | {"what_is"}
"""Kinds of questions of which one sentence holds what is demanded."""

_UNQUOTED = frozenset({"heading", "code", "debris"})


@dataclass(frozen=True, slots=True)
class _Scored:
    unit: Unit
    score: float


@component
class ExtractiveAnswerer(Nested):
    """Quotes the section that answers; it cannot invent.

    The best sentence of the graded evidence says which section that is. A question about how to do something gets the
    procedure from its first step, one about an amount, a date or a name its paragraph, any other the whole section, all
    up to `limit`. What speaks of another code than the one asked about is never quoted, and neither is what proposes
    something that the tenant has rejected: the draft says what was left out for that. Related passages are there to
    read beside the answer, not to answer from.

    When the rest of a section cannot be read, the passage alone is quoted and the turn is degraded (`section`).

    :param limit: most characters of an answer.
    :param max_steps: most steps of a procedure.
    :param passages: graded passages looked at, best first.
    """

    def __init__(self, limit: int = 1_500, max_steps: int = 12, passages: int = 3) -> None:
        self.limit = limit
        self.max_steps = max_steps
        self.passages = passages

    @component.output_types(turn=Turn, refused=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """Quote the section that answers.

        :returns: `turn` with a draft; without claims when nothing can be quoted. Only a model refuses by itself.
        """
        question, kind = prepare(turn.query), answer_type(turn.query.search)
        best = self._best(turn, question, kind)
        withheld: dict[RejectedApproach, None] = {}
        for passage in best:
            turn, section = _section(turn, passage)
            rejected = dict(_rejected(section, turn.evidence.rejected))
            withheld.update(dict.fromkeys(rejected.values()))
            quotable = [
                unit for unit in section if not (unit in rejected or _other_code(unit, question) or _is_title(unit))
            ]
            scores = {one.unit: one.score for one in _scored(turn, question, kind, quotable)}
            section_parts = parts(quotable)
            choice = choose(
                section_parts,
                scores,
                question,
                kind,
                kind_of(turn.query.search),
                Limits(self.limit, self.max_steps),
                () if turn.standalone_question else tuple(_deciding(quotable, question, turn.query.search)),
            )
            if choice.units:
                quoted = with_conditions(choice.units, section_parts)
                draft = replace(cite(quoted, quotable), truncated=choice.cut, withheld=tuple(withheld))
                return {"turn": replace(turn, draft=_opened(draft, quoted, question, turn))}
        return {"turn": replace(turn, draft=Draft("", (), (), withheld=tuple(withheld)))}

    def _best(self, turn: Turn, question: Question, kind: AnswerType) -> tuple[Passage, ...]:
        """The passages in the order of their best sentences."""
        usable = turn.evidence.relevant_passages()[: self.passages]
        rejected = dict(_rejected(chain.from_iterable(map(units, usable)), turn.evidence.rejected))
        scored = [candidate for passage in usable for candidate in _scored(turn, question, kind, units(passage))]
        scored.sort(key=lambda candidate: (candidate.unit in rejected, -candidate.score))
        return tuple({candidate.unit.passage.chunk_id: candidate.unit.passage for candidate in scored}.values())


def _opened(draft: Draft, quoted: Sequence[Unit], question: Question, turn: Turn) -> Draft:
    """The draft, opened with a yes or no where it says so, or with the heading that says for whom its steps are.

    Of a follow-up the words searched for are no question.
    """
    if turn.standalone_question:
        return draft
    gap = " " if quoted[0].kind in ("sentence", "lead") else "\n\n"
    words_before = opening(quoted, question, turn.query.search, turn.locale)
    if not words_before and steps(quoted) > 1 and (heading := qualified(quoted[0].passage.heading, question.weights)):
        words_before, gap = f"{heading}:", "\n\n"
    if not words_before:
        return draft
    return replace(draft, text=f"{words_before}{gap}{draft.text}", opening=words_before)


def _deciding(among: Iterable[Unit], question: Question, typed: str) -> Iterator[Unit]:
    """The units that say yes or no to a question that asks for it, or what the thing is that it asks about."""
    if (kind := kind_of(typed)) == "yesno":
        asking = asked(typed)
        yield from (unit for unit in among if decision(unit, question, asking) is not None)
    elif kind == "what_is" and (tells := demand(kind, typed, question.weights)):
        yield from (unit for unit in among if unit.kind not in _UNQUOTED and tells(plain(unit)))


def _section(turn: Turn, passage: Passage) -> tuple[Turn, tuple[Unit, ...]]:
    """The section of a passage."""
    passages_by_id = {other.chunk_id: other for other in turn.evidence.passages}
    try:
        return turn, in_order(section_of(passage, passages_by_id))
    except Exception:
        return turn.degraded_at("section"), units(passage)


def _scored(turn: Turn, question: Question, kind: AnswerType, among: Iterable[Unit]) -> Iterator[_Scored]:
    """How well each unit that may answer does; one of a passage that was not graded has the place of the section's."""
    places = turn.evidence.rank_scores
    lowest = min(places.values(), default=0.0)
    asked_kind = kind_of(turn.query.search)
    demanded = demand(asked_kind, turn.query.search, question.weights) if asked_kind in _DEMANDING else None
    for unit in among:
        if unit.kind in _UNQUOTED or not unit.sentence.places or _other_code(unit, question):
            continue
        analysis = analyse(unit.passage)
        kin = {stem: relatives(stem, analysis.families) for stem in question.weights}
        headed = sum(weight for stem, weight in question.weights.items() if stem in analysis.head)
        exact, derived = sentence_coverage(question, analysis, unit.sentence, kin)
        itself = sum(weight for stem, weight in question.weights.items() if stem in unit.sentence.places)
        score = _PLACE * places.get(unit.passage.chunk_id, lowest)
        score += _COVERED * exact + _COVERED_ITSELF * itself + _DERIVED * derived
        score += _EARLY * headed * exp(-unit.number / _EARLY_SENTENCES)
        score += _HOLDS_KIND * (kind in OPEN or holds(kind, _new_words(unit, question)))
        score += _HOLDS_KIND * (demanded is not None and demanded(unit.text))
        score += _ORDERED * word_order(question, unit.sentence)
        score += _LENGTH * min(1.0, unit.sentence.length / _LONG)
        yield _Scored(unit, score + _STEP * (kind == "steps" and is_numbered(unit)))


def _rejected(among: Iterable[Unit], approaches: Sequence[RejectedApproach]) -> Iterator[tuple[Unit, RejectedApproach]]:
    """The units that propose a rejected approach, and which one."""
    if approaches:
        for unit in among:
            rejected_approach = next((approach for approach in approaches if proposed(unit.text, approach)), None)
            if rejected_approach is not None:
                yield unit, rejected_approach


def _is_title(unit: Unit) -> bool:
    """Whether the unit is only the title again, which is shown beside the answer."""
    return bool(unit.passage.title) and fold(plain(unit)) == fold(unit.passage.title)


def _new_words(unit: Unit, question: Question) -> str:
    """What the sentence says beyond the words of the question."""
    return " ".join(word.text for word in words(unit.text) if word.stem not in question.weights)


def _other_code(unit: Unit, question: Question) -> bool:
    """Whether the unit speaks of another code than the question's: E25 is no answer to E20."""
    return bool(question.codes and unit.about and not unit.about & question.codes)
