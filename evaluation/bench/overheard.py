"""Language models whose replies are noted: what kind of call, how long, and of the form that was asked for or not."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter

from haystack.dataclasses import ChatMessage
from pydantic import ValidationError

from components.answer.debris import loops
from components.judge.forms import AppraisalForm, ClaimsForm, EvaluationForm
from components.models.calls import CallOutcome, Tier
from components.models.chat import ChatModels
from components.models.chat_call import OnText
from components.models.failures import ModelFailed
from components.models.mending import mended, read_object
from components.models.structured import Form
from components.retrieve.tool_chooser import ToolForm
from components.understand.query_writer import QueriesForm
from evaluation.simulator.knobs import Task
from evaluation.simulator.reading import read

FORMS: Mapping[Task, type[Form]] = {
    "appraise": AppraisalForm,
    "review": ClaimsForm,
    "evaluate": EvaluationForm,
    "rewrite": QueriesForm,
    "choose": ToolForm,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """One call of a model: `as_asked` says that its reply is the form asked for to the letter, `mended` that it is once
    it is read as it is meant; of a text both say that there is one. `passages` is how many the prompt held."""

    task: Task
    outcome: CallOutcome
    seconds: float
    text: str
    as_asked: bool
    mended: bool
    looped: bool
    passages: int


_REPLIES: ContextVar[list[Reply] | None] = ContextVar("opora_overheard", default=None)


@contextmanager
def overheard() -> Iterator[list[Reply]]:
    """The replies of the models that are asked in this block."""
    replies: list[Reply] = []
    token = _REPLIES.set(replies)
    try:
        yield replies
    finally:
        _REPLIES.reset(token)


class OverheardModels(ChatModels):
    """`ChatModels` that notes each reply. Name it in a pipeline's YAML in place of that."""

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

        def listen(piece: str) -> None:
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
                on_text=None if on_text is None else listen,
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
    asked = read([{"role": one.role.value, "content": one.text} for one in messages], schema)
    form = FORMS.get(asked.task)
    if form is None:
        as_asked = meant = bool(text.strip()) and outcome == "ok"
    else:
        as_asked = _fits(form, text)
        meant = as_asked or _fits(form, json.dumps(mended(read_object(text), form.model_json_schema())))
    return Reply(asked.task, outcome, seconds, text, as_asked, meant, loops(text), len(asked.passages))


def _fits(form: type[Form], text: str) -> bool:
    try:
        form.model_validate_json(text, strict=True)
    except ValidationError:
        return False
    return True
