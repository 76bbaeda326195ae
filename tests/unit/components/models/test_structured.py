"""Forms: streamed while they are written, repaired without guessing, and part of their prompt's version."""

import json
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from components.models.failures import Malformed
from components.models.prompts import Prompt
from components.models.structured import Form, fill, parsed
from tests.models import Reply, ScriptedModels

PROMPT = Prompt("judge", "en", "Judge.\n--- user\n{{ question }}")


class Part(Form):
    """A docstring for readers of the code."""

    number: int


class Judgement(Form):
    """Another one."""

    score: Annotated[int, Field(ge=0, le=100, description="how good, in percent")]
    verdict: Literal["fully", "not_at_all"]
    parts: tuple[Part, ...]


FILLED = {"score": 80, "verdict": "not_at_all", "parts": [{"number": 1}]}


def filled(models: ScriptedModels, pieces: list[str] | None = None) -> Judgement:
    return fill(
        Judgement,
        models,
        PROMPT,
        values={"question": "?"},
        step="judge",
        tier="fast",
        on_text=None if pieces is None else pieces.append,
    )


def test_repairable_reply_is_accepted() -> None:
    for reply in (
        f"Sure:\n```json\n{json.dumps(FILLED)}\n```\nDone.",
        f"{{note}} {json.dumps(FILLED)} {{and more}}",
        json.dumps({**FILLED, "score": "80 %"}),
        json.dumps({**FILLED, "score": 80.2}),
        json.dumps({**FILLED, "verdict": "Not at all"}),
        json.dumps({**FILLED, "parts": {"number": "1"}}),
        json.dumps({**FILLED, "parts": [{"number": 1, "note": "…"}], "note": "…"}),
        "{'score': 80%, 'verdict': 'not_at_all', 'parts': [{'number': 1,}],}",
    ):
        assert parsed(Judgement, reply).model_dump(mode="json") == FILLED


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no form",
        "[]",
        json.dumps({**FILLED, "score": 0.8}),  # 80% or a fraction of one percent
        json.dumps({**FILLED, "score": None}),
        json.dumps({**FILLED, "score": 101}),
        json.dumps({**FILLED, "verdict": "not"}),
        json.dumps({"verdict": "fully", "parts": []}),
        '{"score": 80, "verdict": "fully"',
        '["' * 50_000,
        "{" * 100_000,
    ],
)
def test_ambiguous_reply_is_refused(reply: str) -> None:
    with pytest.raises(ValidationError):
        parsed(Judgement, reply)


def test_form_is_strict_without_repair() -> None:
    with pytest.raises(ValidationError):
        Judgement.model_validate({**FILLED, "note": "…"})
    with pytest.raises(ValidationError):
        Judgement.model_validate({**FILLED, "score": "80%"})


def test_schema_holds_descriptions_of_fields_only() -> None:
    schema = json.dumps(Judgement.model_json_schema())
    assert "how good, in percent" in schema
    assert "docstring" not in schema
    assert "Another one" not in schema
    assert '"additionalProperties": false' in schema


def test_schema_is_part_of_the_prompt_version() -> None:
    class Longer(Judgement):
        missing: tuple[str, ...]

    models = ScriptedModels(judge=FILLED | {"missing": []})
    filled(models)
    fill(Longer, models, PROMPT, values={"question": "?"}, step="judge", tier="fast")
    labels = {*models.prompts_used, PROMPT.label}
    assert len(labels) == 3
    assert all(label.startswith("judge.en@") for label in labels)


@pytest.mark.parametrize(
    ("replies", "streamed"),
    [([FILLED], [FILLED]), (["{", FILLED], ["{"])],
    ids=["valid", "repaired"],
)
def test_first_reply_is_streamed_and_the_repair_is_not(replies: list[Reply], streamed: list[Reply]) -> None:
    pieces: list[str] = []
    models = ScriptedModels(judge=replies)
    assert filled(models, pieces).score == 80
    assert "".join(pieces) == "".join(one if isinstance(one, str) else json.dumps(one) for one in streamed)
    assert len(models.asked) == len(replies)


def test_second_invalid_reply_is_declared_malformed() -> None:
    with pytest.raises(Malformed):
        filled(ScriptedModels(judge=["{", "{}"]))
