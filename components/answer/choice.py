"""Chooses what to show of a section: the part that answers, in full where it is short, in the order of the text."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from components.answer.section import Part, announces, blocks, flat, steps, trimmed
from components.answer.units import Unit, indent, is_frame, is_numbered, is_rule, plain
from components.judge.answer_form import form_share, is_definition
from components.judge.coverage import Question
from components.language.captions import innermost, is_abstract, is_question, is_resolution
from components.language.question_kind import QuestionKind, kind_of
from components.language.questions import OPEN, AnswerType
from components.language.words import stems

_SHORT = 500
"""Characters up to which a paragraph or a list is shown in full even if the question asks for one fact."""

_FACT_CHARACTERS = 600
"""Characters shown of a long section when the question asks for one thing in it."""

_ANSWERED_BY_SECTION: frozenset[QuestionKind] = frozenset({"howto", "what_is", "list", "other"})
"""Kinds of questions that are answered by a whole section."""

_RESOLVED: frozenset[QuestionKind] = frozenset({"howto", "why", "other"})
"""Kinds of questions that want the solution of a problem whatever the other captions name."""

_DONE: frozenset[QuestionKind] = frozenset({"howto", "other"})
"""Kinds of questions that ask for something to do, if in a word or two."""

SENTENCES: frozenset[QuestionKind] = frozenset({"yesno", "quantity", "where"})
"""Kinds of questions that one sentence answers, under whichever caption it stands."""

_SURELY_NAMED = 0.5
"""Share of such a question that a caption must cover to be trusted over the best sentence."""

_NOTHING = 12
"""Characters of a solution that says that there is none."""

_SOLUTIONS = frozenset(stems("решение исправление устранение fix solution resolution workaround remediation"))

_NAMED = 0.1
"""How much more of the question one caption must cover than all others for its part to be the only answer."""

_REPEATED_SHARE = 0.6
"""Share of the question from which on a line that says nothing else only repeats it."""

_HEADED = 0.3
"""Share of the question that a heading must cover to be taken for what was asked about."""

_GOES_ON = re.compile(
    r"(?:эт[аиоу]\w*|так(?:ая|ие|ое|ой|ие)?|он[аио]?|при этом|также|кроме того|поэтому|затем|в этом случае|"
    r"th(?:is|ese|ose|ey|en|erefore)|it|also|in this case)\b",
    re.IGNORECASE,
)
"""How a sentence begins that says little without the one before it."""

_FEW_ROWS = 3

_OUTDOES = 0.34
"""How much more of the question a later alternative must cover than the first one to replace it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that is shown: characters, steps at the outermost level."""

    characters: int
    steps: int


@dataclass(frozen=True, slots=True)
class Choice:
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
    deciding: Collection[Unit] = (),
) -> Choice:
    """The units of a section that answer the question.

    :param scores: how well each unit that may answer does.
    :param deciding: those that say yes or no to the question, or what the thing is.
    """
    scored = [part for part in section if any(unit in scores for unit in part.units)]
    if not scored:
        return Choice(())
    answering = [part for part in scored if not _answers_another(part, question, kind)] or scored
    best = max(answering, key=lambda part: max(scores.get(unit, float("-inf")) for unit in part.units))
    deciding = [unit for part in answering for unit in part.units if unit in deciding]
    if deciding and kind == "what_is" and not _fits(tuple(flat(answering)), limits):
        return _telling(deciding, answering, limits)
    if deciding and kind != "what_is":
        return _from(max(deciding, key=lambda unit: scores.get(unit, float("-inf"))), answering)
    if (form not in OPEN and kind != "what_is") or kind == "quantity":
        return _fact(best, scores, question, limits)
    resolving, named = _resolving_part(answering, question, kind), _named_part(answering, question, kind)
    if named and kind in SENTENCES and named is not best and _covered(stems(named.name), question) < _SURELY_NAMED:
        named = None
    intended_part = (resolving or named) if kind in _RESOLVED else (named or resolving)
    if intended_part is None and _is_apart(answering, best, question, kind):
        intended_part = answering[0]
    if intended_part is not None:
        units = _with_alternatives(intended_part, answering, question)
        if kind == "why" and intended_part is resolving:
            cause = next((part for part in answering[: answering.index(resolving)] if part.gives_cause), None)
            units = (*(cause.with_caption if cause else ()), *units)
        return _within_limits(_without_repetition(units, question, kind), scores, kind, limits)
    everything = tuple(flat(answering))
    if _size(everything) <= limits.characters and steps(everything) <= limits.steps:
        everything = _without_repetition(everything, question, kind)
        everything = everything if kind == "list" else _without_bare_list(everything, scores)
        if kind not in SENTENCES:
            return Choice(trimmed(everything))
        return Choice(trimmed(everything)) if steps(everything) > 1 else _first_blocks(everything, scores)
    # Alternatives one below the other: the article recommends the first.
    alternatives = [part for part in answering if not part.states] or answering
    first = next(part for part in alternatives if part.name or part is alternatives[-1])
    covered = {id(part): _covered(_words(part.with_caption), question) for part in (first, best)}
    preferred = kind not in SENTENCES and covered[id(first)] >= covered[id(best)] - _OUTDOES
    selected_part = first if best.states or preferred else best
    selected_units = _with_alternatives(selected_part, answering, question)
    following = alternatives[alternatives.index(selected_part) + 1 :] if is_abstract(selected_part.name) else []
    if following:
        selected_units = (*selected_units, *following[0].with_caption)
    choice = _within_limits(_without_repetition(selected_units, question, kind), scores, kind, limits)
    return Choice(choice.units, cut=choice.cut or len(answering) > 1)


def _answers_another(part: Part, question: Question, kind: QuestionKind) -> bool:
    """Whether a part stands under another question than the one that is asked: "Can I …?" without a word of what to do
    says nothing of how.
    """
    if not is_question(part.name):
        return False
    if kind == "howto" and kind_of(part.name) == "yesno" and not _tells_how(part):
        return True
    return _covered(stems(part.name), question) < _SURELY_NAMED


def _from(deciding: Unit, among: Sequence[Part]) -> Choice:
    """A short answer that begins with what decides; a sentence that only goes on keeps the one before it."""
    units = next(part.units for part in among if deciding in part.units)
    paragraphs = blocks(units)
    at = next(at for at, block in enumerate(paragraphs) if deciding in block)
    selected = list(paragraphs[at])
    if deciding.kind in ("sentence", "lead"):
        start = selected.index(deciding)
        selected = selected[max(0, start - bool(_GOES_ON.match(plain(deciding)))) :]
    following = paragraphs[at + 1 :]
    while following and _size(selected) + _size(following[0]) <= _FACT_CHARACTERS:
        selected += following.pop(0)
    return Choice(trimmed(selected), cut=bool(following))


def _telling(deciding: Collection[Unit], among: Sequence[Part], limits: Limits) -> Choice:
    """The paragraphs and list items that say what a thing is, or each of the things, as many as may be shown."""
    selected: list[Unit] = []
    for block in (block for part in among for block in blocks(part.units)):
        for piece in _pieces(block):
            if any(unit in deciding for unit in piece) and (not selected or _fits([*selected, *piece], limits)):
                selected += piece
    return Choice(trimmed(selected), cut=True)


def _pieces(block: Sequence[Unit]) -> list[list[Unit]]:
    """A list as its outermost items, each with what is indented under it; anything else as it is."""
    pieces: list[list[Unit]] = [[]]
    for unit in block:
        if unit.kind == "item" and indent(unit) == 0:
            pieces.append([])
        pieces[-1].append(unit)
    return [piece for piece in pieces if piece]


def _with_alternatives(part: Part, among: Sequence[Part], question: Question) -> tuple[Unit, ...]:
    """A part with what stands below it under captions of their own: one that only opens them says little."""
    units = part.with_caption
    if not part.name or steps(units) or _size(units) > _SHORT:
        return units
    for following in among[among.index(part) + 1 :]:
        if not following.name or following.resolves or _covered(stems(following.name), question):
            break
        units = (*units, *following.with_caption)
    return units


def _is_apart(among: Sequence[Part], best: Part, question: Question, kind: QuestionKind) -> bool:
    """Whether the section opens with the whole answer, and what follows under captions is about something else: the
    whole procedure, or the best sentence under a heading that names what was asked about.
    """
    opening, *others = among
    if not others or opening.name or any(_covered(stems(one.name), question) for one in others):
        return False
    if kind == "howto" and steps(opening.units) > 1:
        return True
    heading = innermost(opening.units[0].passage.heading)
    whole = best is opening and not announces(opening.units[-1]) and not any(steps(one.units) for one in others)
    return whole and _covered(stems(heading), question) >= _HEADED


def _resolving_part(among: Sequence[Part], question: Question, kind: QuestionKind) -> Part | None:
    """The part that gives the solution of a problem, which is no definition unless a solution is asked for."""
    if kind == "what_is" and not question.weights.keys() & _SOLUTIONS:
        return None
    return next((part for part in among if part.resolves and _size(part.units) > _NOTHING), None)


def _named_part(among: Sequence[Part], question: Question, kind: QuestionKind) -> Part | None:
    """The part whose caption names what was asked for, where no other one does as well; the opening part where it
    stands nearer to that by its heading.
    """
    named = sorted(((_covered(stems(part.name), question), at) for at, part in enumerate(among)), reverse=True)
    if len(named) < 2 or named[0][0] < named[1][0] + _NAMED:
        return None
    opening, best = among[0], among[named[0][1]]
    return opening if kind in _DONE and _is_headed_nearer(opening, best, question) else best


def _is_headed_nearer(opening: Part, captioned: Part, question: Question) -> bool:
    """Whether an opening part tells how to do what the heading above it names, and a caption below names no more of the
    question: under "How to lock it" stands "How to unlock it" as well. One that only leads to the steps tells nothing.
    """
    if opening.name or steps(captioned.units) > steps(opening.units) or not _tells_how(opening):
        return False
    heading = question.weights.keys() & stems(innermost(opening.units[0].passage.heading))
    return heading >= question.weights.keys() & stems(captioned.name)


def _tells_how(part: Part) -> bool:
    return form_share("howto", "\n".join(map(plain, part.units))) > 0


def _fact(part: Part, scores: Mapping[Unit, float], question: Question, limits: Limits) -> Choice:
    """The paragraph, the list or the row of a table that holds what was asked for."""
    best = max((unit for unit in part.units if unit in scores), key=lambda unit: scores[unit])
    block = next(block for block in blocks(part.units) if best in block)
    if best.kind == "row":
        return _rows([unit for unit in block if unit.kind == "row"], question, limits)
    if _size(block) <= _SHORT:
        return Choice(trimmed(block))
    if best.kind == "item":
        lead = block[:1] if block[0].kind == "lead" else ()
        return Choice((*lead, best))
    at = block.index(best)
    return Choice(trimmed(block[max(0, at - 1) : at + 2]))


def _rows(table: Sequence[Unit], question: Question, limits: Limits) -> Choice:
    """The rows of a table that cover most of the question, below the row that names the columns; the whole table where
    they are many.
    """
    body = [unit for unit in table if not is_frame(unit, table)]
    covered = {unit: _covered(unit.sentence.places, question) for unit in body}
    best_coverage = max(covered.values(), default=0.0)
    best_rows = [unit for unit in body if covered[unit] >= best_coverage]
    if len(best_rows) <= _FEW_ROWS:
        return Choice(tuple(unit for unit in table if unit in best_rows or (unit is table[0] and unit not in body)))
    rows = [unit for unit in table if not is_rule(unit)]
    fitting = [unit for at, unit in enumerate(rows) if _size(rows[: at + 1]) <= limits.characters]
    return Choice(tuple(fitting), cut=len(fitting) < len(rows))


def _without_repetition(units: Sequence[Unit], question: Question, kind: QuestionKind) -> tuple[Unit, ...]:
    """The units from where they begin to answer. Left out are captions and sentences that only repeat the question, the
    definition of a thing before the procedure that was asked for, and a caption that the first step says again.
    """
    remaining = list(units)
    while len(remaining) > 1 and _repeats(remaining[0], question, kind):
        remaining.pop(0)
    if kind == "howto":
        remaining = _without_definition(remaining)
    captions = [at for at, unit in enumerate(remaining[:-1]) if unit.kind == "heading"]
    if len(captions) == 1 and _is_said_again(remaining[captions[0]], remaining[captions[0] + 1 :]):
        remaining.pop(captions[0])
    return tuple(remaining)


def _without_definition(units: list[Unit]) -> list[Unit]:
    among = blocks(units)
    if len(among) > 1 and is_definition(among[0][0].text) and all(unit.kind == "sentence" for unit in among[0]):
        following = [unit for block in among[1:] for unit in block]
        return following if steps(following) > 1 else units
    return units


def _is_said_again(caption: Unit, below: Sequence[Unit]) -> bool:
    """Whether the first step below a caption says it again: "In the app", "1. Open the app"."""
    first_step = next(filter(is_numbered, below), None)
    return first_step is not None and set(stems(caption.text)) <= set(stems(first_step.text))


def _first_blocks(units: Sequence[Unit], scores: Mapping[Unit, float]) -> Choice:
    """As many paragraphs as make a short answer, the best one in any case."""
    among = blocks(units)
    best = max(range(len(among)), key=lambda at: max(scores.get(unit, float("-inf")) for unit in among[at]))
    end = best + 1
    while end < len(among) and sum(map(_size, among[: end + 1])) <= _FACT_CHARACTERS:
        end += 1
    return Choice(trimmed([unit for block in among[:end] for unit in block]), cut=end < len(among))


def _without_bare_list(units: tuple[Unit, ...], scores: Mapping[Unit, float]) -> tuple[Unit, ...]:
    """The units without a list that they open with and nothing introduces, unless the best one stands in it."""
    among = blocks(units)
    if len(among) < 2 or among[0][0].kind != "item" or is_numbered(among[0][0]):
        return units
    best = max(units, key=lambda unit: scores.get(unit, float("-inf")))
    return units if best in among[0] else units[len(among[0]) :]


def _repeats(unit: Unit, question: Question, kind: QuestionKind) -> bool:
    if unit.kind == "heading" and (is_question(unit.text) or is_resolution(unit.text)):
        return True
    if kind == "yesno" and unit.kind == "sentence" and not unit.text.endswith("?"):
        # "You can return it" answers in the question's own words.
        return False
    unit_stems = set(stems(unit.text))
    return (
        unit.kind in ("heading", "sentence")
        and unit_stems <= question.weights.keys()
        and _covered(unit_stems, question) > _REPEATED_SHARE
    )


def _within_limits(units: Sequence[Unit], scores: Mapping[Unit, float], kind: QuestionKind, limits: Limits) -> Choice:
    """As much as may be shown: a short text whole, of a long one the procedure, or the block that answers best and what
    stands below it.
    """
    if _fits(units, limits):
        return Choice(trimmed(units))
    among = blocks(units)
    best = max(range(len(among)), key=lambda at: max(scores.get(unit, float("-inf")) for unit in among[at]))
    procedure = next((at for at, block in enumerate(among) if steps(block) > 1), None)
    if kind in ("howto", "why") and procedure is not None:
        explained = kind == "why" and sum(map(_size, among[:procedure])) <= _FACT_CHARACTERS
        start = 0 if explained else procedure
    elif kind in _ANSWERED_BY_SECTION and sum(map(_size, among[: best + 1])) <= limits.characters:
        start = 0
    else:
        start = best
        if kind not in _ANSWERED_BY_SECTION:
            limits = Limits(max(_FACT_CHARACTERS, _size(among[best])), limits.steps)
    selected: list[Unit] = []
    for unit in (unit for block in among[start:] for unit in block):
        if selected and not _fits([*selected, unit], limits):
            break
        selected.append(unit)
    return Choice(trimmed(_at_a_step(selected, units)), cut=True)


def _at_a_step(selected: list[Unit], among: Sequence[Unit]) -> Sequence[Unit]:
    """What is shown, ended before a step of which only a part would be."""
    following = among[among.index(selected[-1]) + 1 :]
    outer = min((indent(unit) for unit in selected if is_numbered(unit)), default=None)
    if outer is None or not following or (is_numbered(following[0]) and indent(following[0]) <= outer):
        return selected
    if indent(following[0]) == 0 and not is_numbered(following[0]):
        return selected
    begun = [at for at, unit in enumerate(selected) if is_numbered(unit) and indent(unit) <= outer]
    # The first step is shown in part rather than nothing of it.
    return selected[: begun[-1]] if len(begun) > 1 else selected


def _fits(units: Sequence[Unit], limits: Limits) -> bool:
    return _size(units) <= limits.characters and steps(units) <= limits.steps


def _size(units: Sequence[Unit]) -> int:
    return sum(unit.sentence.end - unit.sentence.start + 1 for unit in units)


def _words(units: Sequence[Unit]) -> set[str]:
    return {stem for unit in units for stem in unit.sentence.places}


def _covered(stems_of_unit: Iterable[str], question: Question) -> float:
    covered_stems = set(stems_of_unit)
    return sum(weight for stem, weight in question.weights.items() if stem in covered_stems)
