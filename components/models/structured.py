"""Forms that a model fills in: sent as a JSON schema, repaired, validated, and requested once more if invalid.

A missing number is never filled in for the model.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_args, get_origin

from haystack.dataclasses import ChatMessage, ChatRole
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator

from components.models.calls import Tier
from components.models.chat import ChatModels
from components.models.chat_call import OnText
from components.models.failures import Malformed
from components.models.prompts import Prompt

_MAX_FAULTS = 5
_MAX_REPAIRED = 8_000
"""Maximum length for json-repair, which takes quadratic time for `["["[…`: a second for this length."""

_OPENING = re.compile(r"""\{\s*["']""")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PERCENTAGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%?\s*")
_LENIENT = "lenient"


def _without_class_texts(schema: dict[str, Any]) -> None:
    # Pydantic copies the class's docstring and name here. They are for readers of the code: no edit of them may change
    # what a model is asked. `Field(description=...)` is for the model, and stays.
    schema.pop("description", None)
    schema.pop("title", None)


class Form(BaseModel):
    """The form of a reply. Every field is required and no other is allowed, as providers' strict schemas require."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_without_class_texts)

    @model_validator(mode="before")
    @classmethod
    def _repaired(cls, data: object, info: ValidationInfo) -> object:
        """Correct what small models get wrong where nothing has to be guessed: unrequested fields, percent signs, null
        or a single value in place of a list, capitals and spaces in a choice.
        """
        if info.context != _LENIENT or not isinstance(data, Mapping):
            return data
        fields = cls.model_fields
        return {name: _repaired(value, fields[name].annotation) for name, value in data.items() if name in fields}


Filled = TypeVar("Filled", bound=Form)
Faults = Callable[[Filled], Iterable[str]]
"""Check of a form beyond its schema; returns the errors in words for the model."""


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
    on_text: OnText | None = None,
) -> Filled:
    """Return the form as the model fills it in.

    :param values: what the prompt is filled with.
    :param step: the calling step, for traces and costs.
    :param on_text: called with each piece of the first reply as it arrives, which is JSON and not validated yet. A
        second request is not streamed.
    :raises ModelFailed: no model answered; `Malformed` when the second reply is no better than the first.
    """
    schema = _schema(form)
    label = replace(asked, schema=json.dumps(schema)).label
    messages = asked.messages(**values)

    def reply(asking: list[ChatMessage], on_piece: OnText | None = None) -> str:
        return models.ask(
            asking, step=step, prompt=label, tier=tier, temperature=temperature, schema=schema, on_text=on_piece
        )

    examples = frozenset(text for one in messages if one.is_from(ChatRole.ASSISTANT) for text in _texts(one.text or ""))

    def check(read: Filled) -> Iterator[str]:
        yield from faults(read)
        if examples & frozenset(_texts(read.model_dump_json())):
            yield "copied from an example: say it of this question"

    first = reply(messages, on_text)
    read, wrong = _read(form, first, check)
    if read is None:
        again = models.prompt("repair", asked.language).messages(faults=wrong)
        read, _ = _read(form, reply([*messages, ChatMessage.from_assistant(first), *again]), check)
    if read is None:
        raise Malformed
    return read


def parsed(form: type[Filled], text: str) -> Filled:
    """Return the form in a reply, with its unambiguous mistakes corrected. Raises `pydantic.ValidationError`."""
    return form.model_validate_json(json.dumps(json_object(text)), context=_LENIENT)


def json_object(text: str) -> object:
    """Return the first JSON object in a text, ignoring surrounding text; None if there is no object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if len(text) > _MAX_REPAIRED:
            return None
        import json_repair  # a tenth of a second, only for models that need it

        try:
            # Start at the object: json-repair takes any brace in the text before it for one.
            start = _OPENING.search(text)
            value = json_repair.loads(text[start.start() if start else 0 :])
        except (ValueError, RecursionError):
            return None
    values = value if isinstance(value, list) else [value]
    return next((one for one in values if isinstance(one, dict)), None)


def _repaired(value: object, annotation: object) -> object:
    kind = get_origin(annotation)
    if kind is Literal and isinstance(value, str):
        word = "_".join(value.casefold().split())
        return word if word in get_args(annotation) else value
    if kind is tuple:
        parts = value if isinstance(value, list) else [value] if value else []
        return [_repaired(part, get_args(annotation)[0]) for part in parts]
    if annotation is int:
        if isinstance(value, str) and (found := _PERCENTAGE.fullmatch(value)):
            value = float(found[1])
        # A fraction of 1 may mean a percentage or not, and stays.
        return round(value) if isinstance(value, float) and (value >= 1 or value == 0) else value
    return value


def _texts(form: str) -> Iterator[str]:
    """Yield all texts of several words in a form. Others are choices of a fixed set."""
    return (text for text in _TEXT.findall(form) if " " in text.strip())


@lru_cache(maxsize=32)
def _schema(form: type[Form]) -> dict[str, object]:
    return form.model_json_schema()


def _read(form: type[Filled], text: str, faults: Faults[Filled]) -> tuple[Filled | None, list[str]]:
    """Return the filled form, or what is wrong with it."""
    try:
        read = parsed(form, text)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False, include_context=False)
        return None, [f"{'.'.join(map(str, error['loc'])) or 'JSON'}: {error['msg']}" for error in errors[:_MAX_FAULTS]]
    wrong = list(faults(read))[:_MAX_FAULTS]
    return (None if wrong else read), wrong
