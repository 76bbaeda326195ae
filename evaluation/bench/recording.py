"""Language models that record their replies: the kind of call, its duration, and whether the form is valid."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter

from haystack.dataclasses import ChatMessage
from pydantic import ValidationError

from components.answer.generative import AnswerForm
from components.judge.forms import ClaimsForm, EvaluationForm, GradesForm
from components.models.calls import CallOutcome, Tier
from components.models.chat import ChatModels
from components.models.chat_call import OnText
from components.models.failures import ModelFailed
from components.models.structured import Form, parsed
from components.retrieve.tool_chooser import ToolForm
from components.understand.condenser import CondensedForm
from components.understand.query_writer import QueriesForm
from evaluation.simulator.knobs import Task
from evaluation.simulator.reading import read

FORMS: Mapping[Task, type[Form]] = {
    "answer": AnswerForm,
    "grade": GradesForm,
    "condense": CondensedForm,
    "review": ClaimsForm,
    "evaluate": EvaluationForm,
    "rewrite": QueriesForm,
    "choose": ToolForm,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """One call of a model. `is_valid` says that its reply is exactly the form requested, `is_repairable` that it is
    after repair; for a plain text both say that there is one. `passages` counts those in the prompt."""

    task: Task
    outcome: CallOutcome
    seconds: float
    text: str
    is_valid: bool
    is_repairable: bool
    passages: int


_REPLIES: ContextVar[list[Reply] | None] = ContextVar("opora_recorded_replies", default=None)


@contextmanager
def record_replies() -> Iterator[list[Reply]]:
    """Collect the replies of the models called in this block."""
    replies: list[Reply] = []
    token = _REPLIES.set(replies)
    try:
        yield replies
    finally:
        _REPLIES.reset(token)


class RecordingModels(ChatModels):
    """`ChatModels` that records each reply. Name it in a pipeline's YAML instead."""

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        step: str,
        prompt: str,
        temperature: float,
        tier: Tier = "fast",
        schema: Mapping[str, object] | None = None,
        on_text: OnText | None = None,
    ) -> str:
        """As `ChatModels.ask`."""
        pieces: list[str] = []

        def record(piece: str) -> None:
            pieces.append(piece)
            if on_text is not None:
                on_text(piece)

        started, text = perf_counter(), ""
        outcome: CallOutcome = "ok"
        try:
            text = ChatModels.ask(
                self,
                messages,
                step=step,
                prompt=prompt,
                temperature=temperature,
                tier=tier,
                schema=schema,
                on_text=None if on_text is None else record,
            )
        except ModelFailed as failed:
            outcome, text = failed.outcome, "".join(pieces)
            raise
        finally:
            if (replies := _REPLIES.get()) is not None:
                replies.append(_reply(messages, schema, text, outcome, perf_counter() - started))
        return text


def _reply(
    messages: Sequence[ChatMessage],
    schema: Mapping[str, object] | None,
    text: str,
    outcome: CallOutcome,
    seconds: float,
) -> Reply:
    request = read([{"role": one.role.value, "content": one.text} for one in messages], schema)
    form = FORMS.get(request.task)
    if form is None:
        is_valid = is_repairable = bool(text.strip()) and outcome == "ok"
    else:
        is_valid = _fits(form, text)
        is_repairable = is_valid or _is_repairable(form, text)
    return Reply(request.task, outcome, seconds, text, is_valid, is_repairable, len(request.passages))


def _is_repairable(form: type[Form], text: str) -> bool:
    try:
        parsed(form, text)
    except ValidationError:
        return False
    return True


def _fits(form: type[Form], text: str) -> bool:
    try:
        form.model_validate_json(text, strict=True)
    except ValidationError:
        return False
    return True
