"""What of a section is shown: the part that answers, whole where that is short, in the order of the text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from components.answer.section import Part, blocks, flat, steps, trimmed
from components.answer.units import Unit, indent, is_frame, is_numbered, is_rule
from components.judge.coverage import Question
from components.language.captions import is_resolution
from components.language.question_kind import QuestionKind
from components.language.questions import OPEN, AnswerType
from components.language.words import stems

_SHORT = 500
"""Characters of a paragraph or a list that is shown whole although only one fact was asked for."""

_ENOUGH = 600
"""Characters of a long section that are shown to who asked for one thing of it."""

_WHOLE: frozenset[QuestionKind] = frozenset({"howto", "what_is", "list", "other"})
"""Kinds of questions that a whole section answers."""

_NAMED = 0.1
"""How much more of the question the caption of a part must cover than all others', so that it alone is meant."""

_ASKED = 0.6
"""Share of the question that a line repeats which says nothing else."""

_FEW_ROWS = 3

_OUTDOES = 0.34
"""How much more of the question a later way of doing the same must cover than the first one, to stand in its place."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that is shown: characters, steps at the outermost level."""

    characters: int
    steps: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """Units in the order of the text; `cut` says that the section goes on."""

    units: tuple[Unit, ...]
    cut: bool = False


def choose(
    section: Sequence[Part],
    scores: Mapping[Unit, float],
    question: Question,
    form: AnswerType,
    kind: QuestionKind,
    limits: Limits,
) -> Chosen:
    """What of a section answers the question.

    :param scores: how well each unit that may answer does.
    """
    answering = [part for part in section if any(unit in scores for unit in part.units)]
    if not answering:
        return Chosen(())
    best = max(answering, key=lambda part: max(scores.get(unit, float("-inf")) for unit in part.units))
    if form not in OPEN:
        return _fact(best, scores, question, limits)
    resolving = next((part for part in answering if part.resolves and kind != "what_is"), None)
    meant = resolving or _meant(answering, question)
    if meant is not None:
        return _shown(_opened(meant.whole, question), scores, kind, limits)
    everything = tuple(flat(answering))
    if _size(everything) <= limits.characters and steps(everything) <= limits.steps:
        return Chosen(trimmed(_opened(everything, question)))
    # Ways to do the same, one below the other: the first is the one the article recommends.
    first = next(part for part in answering if part.name or part is answering[-1])
    covered = {id(part): _covered(_words(part.whole), question) for part in (first, best)}
    shown = first if covered[id(first)] >= covered[id(best)] - _OUTDOES else best
    chosen = _shown(_opened(shown.whole, question), scores, kind, limits)
    return Chosen(chosen.units, cut=chosen.cut or len(answering) > 1)


def _meant(among: Sequence[Part], question: Question) -> Part | None:
    """The part whose caption names what was asked for, where no other one does as well."""
    named = sorted(((_covered(stems(part.name), question), at) for at, part in enumerate(among)), reverse=True)
    if len(named) < 2 or named[0][0] < named[1][0] + _NAMED:
        return None
    return among[named[0][1]]


def _fact(part: Part, scores: Mapping[Unit, float], question: Question, limits: Limits) -> Chosen:
    """The paragraph, the list or the row of a table that holds what was asked for."""
    best = max((unit for unit in part.units if unit in scores), key=lambda unit: scores[unit])
    block = next(block for block in blocks(part.units) if best in block)
    if best.kind == "row":
        return _rows([unit for unit in block if unit.kind == "row"], question, limits)
    if _size(block) <= _SHORT:
        return Chosen(trimmed(block))
    if best.kind == "item":
        lead = block[:1] if block[0].kind == "lead" else ()
        return Chosen((*lead, best))
    at = block.index(best)
    return Chosen(trimmed(block[max(0, at - 1) : at + 2]))


def _rows(table: Sequence[Unit], question: Question, limits: Limits) -> Chosen:
    """The rows of a table that cover most of the question, below the row that names the columns; the whole table where
    they are many.
    """
    body = [unit for unit in table if not is_frame(unit, table)]
    covered = {unit: _covered(unit.sentence.places, question) for unit in body}
    most = max(covered.values(), default=0.0)
    near = [unit for unit in body if covered[unit] >= most]
    if len(near) <= _FEW_ROWS:
        return Chosen(tuple(unit for unit in table if unit in near or (unit is table[0] and unit not in body)))
    whole = [unit for unit in table if not is_rule(unit)]
    shown = [unit for at, unit in enumerate(whole) if _size(whole[: at + 1]) <= limits.characters]
    return Chosen(tuple(shown), cut=len(shown) < len(whole))


def _opened(chosen: Sequence[Unit], question: Question) -> tuple[Unit, ...]:
    """The units from where they begin to answer: captions and sentences that only repeat the question are left out."""
    left = list(chosen)
    while len(left) > 1 and _repeats(left[0], question):
        left.pop(0)
    return tuple(left)


def _repeats(unit: Unit, question: Question) -> bool:
    if unit.kind == "heading" and (unit.text.endswith("?") or is_resolution(unit.text.lstrip("# "))):
        return True
    said = set(stems(unit.text))
    return (
        unit.kind in ("heading", "sentence") and said <= question.weights.keys() and _covered(said, question) > _ASKED
    )


def _shown(chosen: Sequence[Unit], scores: Mapping[Unit, float], kind: QuestionKind, limits: Limits) -> Chosen:
    """As much as may be shown: a short text whole, of a long one the procedure, or the block that answers best and what
    stands below it.
    """
    if _fits(chosen, limits):
        return Chosen(trimmed(chosen))
    among = blocks(chosen)
    best = max(range(len(among)), key=lambda at: max(scores.get(unit, float("-inf")) for unit in among[at]))
    procedure = next((at for at, block in enumerate(among) if steps(block) > 1), None)
    if kind in ("howto", "why") and procedure is not None:
        start = procedure
    elif kind in _WHOLE and sum(map(_size, among[: best + 1])) <= limits.characters:
        start = 0
    else:
        start = best
        limits = limits if kind in _WHOLE else Limits(max(_ENOUGH, _size(among[best])), limits.steps)
    shown: list[Unit] = []
    for unit in (unit for block in among[start:] for unit in block):
        if shown and not _fits([*shown, unit], limits):
            break
        shown.append(unit)
    return Chosen(trimmed(_at_a_step(shown, chosen)), cut=True)


def _at_a_step(shown: list[Unit], among: Sequence[Unit]) -> Sequence[Unit]:
    """What is shown, ended before a step of which only a part would be."""
    following = among[among.index(shown[-1]) + 1 :]
    outer = min((indent(unit) for unit in shown if is_numbered(unit)), default=None)
    if outer is None or not following or (is_numbered(following[0]) and indent(following[0]) <= outer):
        return shown
    if indent(following[0]) == 0 and not is_numbered(following[0]):
        return shown
    begun = [at for at, unit in enumerate(shown) if is_numbered(unit) and indent(unit) <= outer]
    # The first step is shown in part rather than nothing of it.
    return shown[: begun[-1]] if len(begun) > 1 else shown


def _fits(units: Sequence[Unit], limits: Limits) -> bool:
    return _size(units) <= limits.characters and steps(units) <= limits.steps


def _size(units: Sequence[Unit]) -> int:
    return sum(unit.sentence.end - unit.sentence.start + 1 for unit in units)


def _words(units: Sequence[Unit]) -> set[str]:
    return {stem for unit in units for stem in unit.sentence.places}


def _covered(said: Iterable[str], question: Question) -> float:
    known = set(said)
    return sum(weight for stem, weight in question.weights.items() if stem in known)
