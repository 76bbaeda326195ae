"""Closes knowledge gaps: the questions of each are asked again, of today's knowledge base, before it is closed.

A gap is closed if every wording that customers used is answered now. Articles to read, a doubtful answer and a handoff
are no answer, and a part of a question that an answer still leaves open stays a gap. Questions leave no records and no
tickets behind.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from pydantic import ValidationError

from components.turn import SHOWN, Turn
from pipelines.ask import record
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest
from pipelines.ask.replay import RecordedInput
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask, begin
from tenants.audit import search
from tenants.core import fairness
from tenants.core.errors import OporaError, trail
from tenants.knowledge import gaps
from tenants.knowledge.gaps import Gap

log = logging.getLogger("opora.articles")

SECONDS = 30.0
"""Time limit of the questions of a request. Gaps that were not reached stay open; a publication asks them later."""

_WORDINGS = 10
"""Number of a gap's wordings to ask, newest first."""


@dataclass(frozen=True, slots=True)
class Closing:
    """Gaps that were closed, and gaps that stay open because a question has no answer yet.

    :param left: those of the open ones that were not asked, for lack of time.
    """

    closed: tuple[Gap, ...]
    unanswered: tuple[Gap, ...]
    left: tuple[Gap, ...] = ()


def close(gap_ids: Sequence[str], ask: Ask, runner: Runner | None = None) -> Closing:
    """Close those of the gaps whose questions are answered now.

    :param runner: whose seats and time limit hold for the questions; None asks right here, as the command line does.
    :raises NotFound: `gap_unknown`.
    """
    until = monotonic() + SECONDS
    listed = [gaps.get(gap_id) for gap_id in dict.fromkeys(gap_ids)]
    answered, left = list[str](), tuple(listed)
    while left and (len(left) == len(listed) or monotonic() < until):
        gap, *others = left
        left = tuple(others)
        if _is_answered(gap, ask, runner, until):
            answered.append(gap.gap_id)
    closed = gaps.decide(answered, "closed") if answered else ()
    return Closing(closed, tuple(gap for gap in listed if gap.gap_id not in answered), left)


def _is_answered(gap: Gap, ask: Ask, runner: Runner | None, until: float) -> bool:
    for turn in _turns(gap):
        if monotonic() >= until:
            return False
        fairness.yield_to_questions()
        try:
            work = partial(ask.finish, turn)
            finished, _ = runner.in_background(work) if runner is not None else work()
        except OporaError as error:
            log.warning("gap %s is not asked again: %s", gap.gap_id, trail(error))
            return False
        answer = answer_of(finished)
        if answer.outcome not in SHOWN or gap.gap_id in {miss.gap_id for miss in record.misses(finished, answer)}:
            return False
    return True


def _turns(gap: Gap) -> Iterator[Turn]:
    """Yield the recorded turns of a gap, one per wording; its own question if none of them is kept."""
    askings = {asking.question: asking for asking in reversed(gaps.askings([gap.gap_id]))}
    newest = sorted(askings.values(), key=lambda asking: -asking.sequence)[:_WORDINGS]
    records = search.of([asking.turn_id for asking in newest])
    recorded = [_recorded(found.content) for found in records.values() if found.content is not None]
    turns = [turn for turn in recorded if turn is not None]
    yield from turns or [begin(AskRequest(question=gap.question))]


def _recorded(content: object) -> Turn | None:
    """Return the turn as it began; None if another version has recorded it in another form."""
    try:
        return RecordedInput.model_validate(content).turn()
    except ValidationError:
        return None
