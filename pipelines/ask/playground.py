"""Playground: ask a question like a visitor, with settings that are not in force.

Nothing is recorded: no turn in the audit log, no gap, no ticket, no memory, no statistics. The question counts against
the caller's rate limit, and calls of language models cost money.
"""

import asyncio
from asyncio import Lock
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, TypeAlias
from weakref import WeakValueDictionary

from pydantic import Field, field_validator

from components.turn import Exchange, Quality
from pipelines import definition, problems
from pipelines.ask import profiles
from pipelines.ask.contract import QUESTION_LIMIT, AskRequest, TurnAnswer
from pipelines.ask.engine import AskEngine
from pipelines.ask.runner import Runner
from pipelines.ask.steps import collect_faults
from tenants.accounts import policy
from tenants.core import context
from tenants.core.validation import FrozenModel

Difference: TypeAlias = Literal["outcome", "reason", "text", "citations", "gates"]
MOST_TRIALS = 4
MOST_EXCHANGES = 20
_TURNS: WeakValueDictionary[str, Lock] = WeakValueDictionary()
"""A tenant's questions are tried one after the other: building a pipeline takes longer than most questions."""
STEPS = {"enough": "evaluate_retrieval", "graded": "grade"}
"""Steps of the graph that apply each threshold."""

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class Trial(FrozenModel):
    """Settings of a trial; an omitted threshold keeps its current value.

    `enough`: minimum probability that the best passage answers, for there to be an answer. `graded`: minimum relevance
    of a passage that an answer may cite. `shown`: the policy's `answer_threshold`.
    """

    profile: Annotated[str, Field(max_length=64)] = ""
    quality: Quality = "balanced"
    enough: Share | None = None
    graded: Share | None = None
    shown: Share | None = None

    @field_validator("enough", "graded", "shown", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return None if value == "" else value


class Earlier(FrozenModel):
    """An earlier turn of the conversation that is tried out."""

    question: Annotated[str, Field(min_length=1, max_length=QUESTION_LIMIT)]
    outcome: Annotated[str, Field(max_length=32)]
    options: Annotated[tuple[Annotated[str, Field(max_length=500)], ...], Field(max_length=10)] = ()


class PlaygroundRequest(FrozenModel):
    """A question and the settings to try it under, side by side."""

    question: Annotated[str, Field(min_length=1, max_length=QUESTION_LIMIT)]
    locale: Annotated[str, Field(max_length=8, pattern=r"^[A-Za-z-]*$")] = ""
    history: Annotated[tuple[Earlier, ...], Field(max_length=MOST_EXCHANGES)] = ()
    trials: Annotated[tuple[Trial, ...], Field(min_length=1, max_length=MOST_TRIALS)] = (Trial(),)


@dataclass(frozen=True, slots=True)
class Tried:
    """An answer, and how it differs from the first one.

    :param fault: the step that failed and its message, if one did.
    """

    answer: TurnAnswer
    differences: tuple[Difference, ...]
    fault: str = ""


async def try_out(runner: Runner, asked: PlaygroundRequest) -> tuple[Tried, ...]:
    """Return the answers, one after another.

    :raises Invalid: `profile_unknown`; `question_empty` and its like.
    :raises OporaError: a reason to try again, a rate limit for one.
    """
    history = tuple(Exchange(one.question, one.outcome, one.options) for one in asked.history)
    request = problems.checked(AskRequest, question=asked.question, locale=asked.locale or None, anonymous=True)
    tried: list[Tried] = []
    async with _TURNS.setdefault(context.current().tenant_id, Lock()):
        for trial in asked.trials:
            with collect_faults() as faults:
                answer = await _answer(runner, request, history, trial)
            first = tried[0].answer if tried else answer
            tried.append(Tried(answer, differences(first, answer), "; ".join(faults)))
    return tuple(tried)


def differences(one: TurnAnswer, other: TurnAnswer) -> tuple[Difference, ...]:
    pairs: Sequence[tuple[Difference, object, object]] = (
        ("outcome", one.outcome, other.outcome),
        ("reason", one.refusal_reason, other.refusal_reason),
        ("text", one.answer.text, other.answer.text),
        ("citations", _cited(one), _cited(other)),
        ("gates", _gates(one), _gates(other)),
    )
    return tuple(name for name, before, after in pairs if before != after)


def as_json(tried: Sequence[Tried]) -> dict[str, object]:
    return {
        "schema": "playground.v1",
        "answers": [
            {"turn": one.answer.model_dump(mode="json"), "differs_in": one.differences, "fault": one.fault}
            for one in tried
        ],
    }


async def _answer(runner: Runner, request: AskRequest, history: tuple[Exchange, ...], trial: Trial) -> TurnAnswer:
    chosen = {"profile": trial.profile or None, "answer_threshold": trial.shown}
    fields = {name: value for name, value in chosen.items() if value is not None}
    tried = await asyncio.to_thread(policy.with_changes, fields)
    asked = request.model_copy(update={"quality": trial.quality})
    thresholds = {STEPS[name]: value for name in STEPS if (value := getattr(trial, name)) is not None}
    with policy.overridden(tried):
        if not thresholds:
            return await runner.rehearse(asked, history)
        return await runner.rehearse(asked, history, partial(_engine, thresholds))


def _engine(thresholds: dict[str, float]) -> AskEngine:
    """Return the pipeline of the current profile with other thresholds. It is quick to build: models are shared."""
    path = profiles.path_of(profiles.chosen())
    steps = definition.load(path)["components"]
    engine = AskEngine(path, {step: value for step, value in thresholds.items() if step in steps})
    engine.warm_up()
    return engine


def _cited(answer: TurnAnswer) -> list[str]:
    return [one.chunk_id for one in answer.citations if one.cited]


def _gates(answer: TurnAnswer) -> dict[str, bool]:
    return {one.name: one.passed for one in answer.verdict.gates}
