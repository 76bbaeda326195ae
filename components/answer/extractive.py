"""Answering without a model: the sentences of the evidence that answer, in their order, each with its citation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import exp

from haystack import component

from components.answer.citations import cite
from components.answer.units import Unit, block, header, is_step, units
from components.judge.analysis import analyse
from components.judge.approaches import proposed
from components.judge.coverage import Question, prepare, sentence_coverage, word_order
from components.language.normalise import fold
from components.language.questions import OPEN, Asked, asked, holds
from components.language.relatives import relatives
from components.language.words import words
from components.nested import Nested
from components.turn import Draft, RejectedApproach, Turn

# Weights of a sentence's features, tuned on the XQuAD development questions (n = 1,038; does the sentence hold the gold
# answer, is its passage the gold one?). The passage's place rules: a fine sentence of a poor passage misleads.
_PLACE = 8.0
_COVERED = 0.5
_COVERED_ITSELF = 0.5
_DERIVED = 0.6
_HOLDS_KIND = 0.5
_ORDERED = 0.4
_LENGTH = 0.3
_LONG = 30
# Where the heading asks the very question, the section answers it from its start.
_EARLY = 1.5
_EARLY_SENTENCES = 3.0
# Who asks how wants the numbered steps.
_STEP = 1.5
# What a sentence of another chunk of the same document must cover of the question by itself.
_STRONG = 0.4


@dataclass(frozen=True, slots=True)
class _Scored:
    """`score` compares sentences, `rank` also prefers the kind of sentence asked for; `itself` is its own coverage."""

    unit: Unit
    score: float
    rank: float
    itself: float


@component
class ExtractiveAnswerer(Nested):
    """Quotes the best sentences of the graded evidence; it cannot invent.

    A question about how to do something gets the whole list of steps with its introduction; another question gets the
    best sentences alone. All of them come from the document of the best one. A sentence about another code than the
    one asked about is never quoted, and neither is one that proposes what the tenant has rejected: the draft says what
    was left out for that. Related passages are there to read beside the answer, not to answer from.

    :param max_sentences: most sentences outside a list.
    :param max_steps: most items of one list, rows of one table.
    :param passages: graded passages looked at, best first.
    :param margin: sentences scoring this much below the best are left out.
    """

    def __init__(
        self,
        max_sentences: int = 3,
        max_steps: int = 12,
        passages: int = 3,
        margin: float = 1.2,
    ) -> None:
        self.max_sentences = max_sentences
        self.max_steps = max_steps
        self.passages = passages
        self.margin = margin

    @component.output_types(turn=Turn, refused=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: `turn` with a draft; without claims when nothing can be quoted. Only a model refuses by itself."""
        question = prepare(turn.query)
        kind = asked(turn.query.search)
        by_passage = {passage.chunk_id: units(passage) for passage in turn.evidence.usable()[: self.passages]}
        rejected = dict(_rejected(by_passage.values(), turn.evidence.rejected))
        withheld = tuple(dict.fromkeys(rejected.values()))
        scored = [one for one in self._scored(turn, question, kind, by_passage.values()) if one.unit not in rejected]
        if not scored:
            return {"turn": replace(turn, draft=Draft("", (), (), withheld=withheld))}
        chosen, cut = self._chosen(self._near(scored, question), by_passage, kind)
        draft = cite([unit for unit in chosen if not (_other_code(unit, question) or unit in rejected)])
        return {"turn": replace(turn, draft=replace(draft, cut=cut, withheld=withheld))}

    def _scored(self, turn: Turn, question: Question, kind: Asked, passages: Iterable[Sequence[Unit]]) -> list[_Scored]:
        found = []
        for among in passages:
            if not among:
                continue
            passage = among[0].passage
            place = turn.evidence.places[passage.chunk_id]
            analysis = analyse(passage)
            kin = {stem: relatives(stem, analysis.families) for stem in question.weights}
            headed = sum(weight for stem, weight in question.weights.items() if stem in analysis.head)
            for unit in among:
                if unit.kind in ("heading", "code") or not unit.sentence.places or _other_code(unit, question):
                    continue
                exact, derived = sentence_coverage(question, analysis, unit.sentence, kin)
                itself = sum(weight for stem, weight in question.weights.items() if stem in unit.sentence.places)
                score = _PLACE * place + _COVERED * exact + _COVERED_ITSELF * itself + _DERIVED * derived
                score += _EARLY * headed * exp(-unit.number / _EARLY_SENTENCES)
                score += _HOLDS_KIND * (kind in OPEN or holds(kind, _news(unit, question)))
                score += _ORDERED * word_order(question, unit.sentence)
                score += _LENGTH * min(1.0, unit.sentence.length / _LONG)
                wanted = kind == "steps" and is_step(unit, among)
                found.append(_Scored(unit, score, score + _STEP * wanted, itself))
        return sorted(found, key=lambda scored: -scored.rank)

    def _near(self, scored: Sequence[_Scored], question: Question) -> list[Unit]:
        """Units within the margin of the best one that may stand beside it, in the order of their rank."""
        best = scored[0]
        least = max(one.score for one in scored) - self.margin
        return [one.unit for one in scored if one is best or (one.rank >= least and _belongs(one, best, question))]

    def _chosen(
        self, near: Sequence[Unit], by_passage: Mapping[str, Sequence[Unit]], kind: Asked
    ) -> tuple[list[Unit], bool]:
        """The best units with what they cannot be read without, in reading order, and whether a list was cut.

        A list counts as one sentence.
        """
        found: dict[Unit, None] = {}
        said: set[str] = set()
        picked, listed, cut = 0, False, False
        for unit in near:
            # Overlapping chunks and boilerplate repeat sentences word for word.
            if unit in found or fold(unit.text) in said:
                continue
            among = by_passage[unit.passage.chunk_id]
            pieces: Sequence[Unit] = (unit,)
            if unit.kind == "lead" or (unit.kind == "item" and kind == "steps"):
                if listed:
                    continue  # one list is an answer, two are a dump of the chunk
                whole = block(unit, among)
                shown = whole[: self.max_steps + 1]
                # An item beyond the shown ones stands alone.
                pieces, listed = shown if unit in shown else pieces, True
                cut = len(pieces) < len(whole)
            elif unit.kind == "row":
                pieces = header(unit, among)
            found.update(dict.fromkeys(pieces))
            said.update(fold(piece.text) for piece in pieces)
            picked += 1
            if picked == self.max_sentences:
                break
        return sorted(found, key=lambda unit: (unit.passage.chunk_index, unit.number)), cut


def _rejected(
    passages: Iterable[Sequence[Unit]], approaches: Sequence[RejectedApproach]
) -> Iterator[tuple[Unit, RejectedApproach]]:
    """The units that propose a rejected approach, and which one."""
    if approaches:
        for unit in chain.from_iterable(passages):
            found = next((approach for approach in approaches if proposed(unit.text, approach)), None)
            if found is not None:
                yield unit, found


def _belongs(one: _Scored, best: _Scored, question: Question) -> bool:
    """Whether a sentence may stand beside the best one: from its passage, or a strong one of the same document."""
    if one.unit.passage is best.unit.passage:
        return True
    exact = not question.codes or bool(one.unit.sentence.codes & question.codes)
    return one.unit.passage.doc_id == best.unit.passage.doc_id and exact and one.itself >= _STRONG


def _news(unit: Unit, question: Question) -> str:
    """What the sentence says beyond the words of the question."""
    return " ".join(word.text for word in words(unit.text) if word.stem not in question.weights)


def _other_code(unit: Unit, question: Question) -> bool:
    """Whether the unit speaks of another code than the question's: E25 is no answer to E20."""
    return bool(question.codes and unit.about and not unit.about & question.codes)
