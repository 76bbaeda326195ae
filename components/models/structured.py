"""Forms that a model fills in: sent as a JSON schema, repaired, validated, and requested once more if invalid.

A missing number is never filled in for the model.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeVar

from haystack.dataclasses import ChatMessage, ChatRole
from pydantic import BaseModel, ConfigDict, ValidationError

from components.models.calls import Tier
from components.models.chat import ChatModels
from components.models.failures import Malformed
from components.models.prompts import Prompt
from components.models.repair import parse_object, repaired

_MAX_FAULTS = 5
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Form(BaseModel):
    """The form of a reply. Every field is required and no other is allowed, as strict schemas of providers demand."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Filled = TypeVar("Filled", bound=Form)
Faults = Callable[[Filled], Iterable[str]]
"""What is wrong with a form that keeps to its schema, in words for the model."""


def fill(
    form: type[Filled],
    models: ChatModels,
    asked: Prompt,
    *,
    values: dict[str, object],
    step: str,
    tier: Tier,
    faults: Faults[Filled] = lambda _: (),
    temperature: float = 0.0,
) -> Filled:
    """The form as the model fills it in.

    :param values: what the prompt is filled with.
    :param step: who asks.
    :raises ModelFailed: no model answered; `Malformed` when the second reply is no better than the first.
    """
    schema = _schema(form)
    messages = asked.messages(**values)

    def reply(asking: list[ChatMessage]) -> str:
        return models.ask(asking, step=step, prompt=asked.label, tier=tier, temperature=temperature, schema=schema)

    examples = frozenset(text for one in messages if one.is_from(ChatRole.ASSISTANT) for text in _texts(one.text or ""))

    def check(read: Filled) -> Iterator[str]:
        yield from faults(read)
        if examples & frozenset(_texts(read.model_dump_json())):
            yield "copied from an example: say it of this question"

    first = reply(messages)
    read, wrong = _read(form, first, check)
    if read is None:
        again = models.prompt("repair", asked.language).messages(faults=wrong)
        read, _ = _read(form, reply([*messages, ChatMessage.from_assistant(first), *again]), check)
    if read is None:
        raise Malformed
    return read


def _texts(form: str) -> Iterator[str]:
    """All that is written in a form: texts of several words, which are no choice of a fixed set."""
    return (text for text in _TEXT.findall(form) if " " in text.strip())


@lru_cache(maxsize=32)
def _schema(form: type[Form]) -> dict[str, object]:
    return form.model_json_schema()


def _read(form: type[Filled], text: str, faults: Faults[Filled]) -> tuple[Filled | None, list[str]]:
    """The filled form, or what is wrong with it."""
    try:
        read = form.model_validate_json(json.dumps(repaired(parse_object(text), _schema(form))))
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False, include_context=False)
        return None, [f"{'.'.join(map(str, error['loc'])) or 'JSON'}: {error['msg']}" for error in errors[:_MAX_FAULTS]]
    wrong = list(faults(read))[:_MAX_FAULTS]
    return (None if wrong else read), wrong
