"""Language models that record their calls: the step, the prompt, the reply, and whether it is the form requested."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from haystack.dataclasses import ChatMessage
from pydantic import ValidationError

from components.answer.generative import AnswerForm
from components.judge.forms import ClaimsForm, EvaluationForm, GradesForm, ProposalsForm
from components.models.calls import CallOutcome
from components.models.chat import ChatModels
from components.models.failures import ModelFailed
from components.models.structured import Form, parsed
from components.retrieve.tool_chooser import ToolForm
from components.understand.condenser import CondensedForm
from components.understand.query_writer import QueriesForm

FORMS: Mapping[str, type[Form]] = {
    "answer": AnswerForm,
    "grade": GradesForm,
    "claims": ClaimsForm,
    "proposals": ProposalsForm,
    "evaluate": EvaluationForm,
    "condense": CondensedForm,
    "rewrite": QueriesForm,
    "tools": ToolForm,
}
"""By the step that calls."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of a model. `usable`: the reply is the form requested, after repair if it needs any."""

    step: str
    outcome: CallOutcome
    seconds: float
    prompt: str
    reply: str
    usable: bool


_CALLS: ContextVar[list[RecordedCall] | None] = ContextVar("opora_recorded_calls", default=None)


@contextmanager
def record_calls() -> Iterator[list[RecordedCall]]:
    """Collect the calls of `RecordingModels` in this block, in the order in which they end."""
    calls: list[RecordedCall] = []
    token = _CALLS.set(calls)
    try:
        yield calls
    finally:
        _CALLS.reset(token)


class RecordingModels(ChatModels):
    """`ChatModels` that records each call. Name it in a pipeline's YAML instead."""

    def ask(self, messages: Sequence[ChatMessage], *, step: str, **more: Any) -> str:  # noqa: ANN401
        """Call `ChatModels.ask` and record the call."""
        started, reply = perf_counter(), ""
        outcome: CallOutcome = "ok"
        try:
            reply = ChatModels.ask(self, messages, step=step, **more)
        except ModelFailed as failed:
            outcome = failed.outcome
            raise
        finally:
            if (calls := _CALLS.get()) is not None:
                prompt = "\n\n".join(message.text or "" for message in messages)
                usable = outcome == "ok" and _is_usable(step, reply)
                calls.append(RecordedCall(step, outcome, perf_counter() - started, prompt, reply, usable))
        return reply


def _is_usable(step: str, reply: str) -> bool:
    if step not in FORMS:
        return bool(reply.strip())
    try:
        parsed(FORMS[step], reply)
    except ValidationError:
        return False
    return True
