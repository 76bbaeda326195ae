"""What a model fills in when it judges: small closed forms, sent to it as JSON schemas and read back strictly.

Every field is required and nothing else is allowed, which is what providers' structured output asks for. Scores are
whole percentages: models place those more steadily than fractions.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Percentage = Annotated[int, Field(ge=0, le=100)]
Topic = Annotated[str, Field(min_length=1, max_length=200)]


class Form(BaseModel):
    """One kind of judgement. The title of its schema is its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Grade(Form):
    """Whether the passage `[number]` helps to answer the question."""

    number: int
    answers: bool


class AppraisalForm(Form):
    """Every passage graded, how far all of them together answer (percent), and what they leave open."""

    passages: tuple[Grade, ...]
    adequacy: Percentage
    missing: Annotated[tuple[Topic, ...], Field(max_length=3)]


class Fact(Form):
    """One statement made in the sentence `[sentence]`: does the passage say it, and in which words?"""

    sentence: int
    claim: Annotated[str, Field(max_length=1_000)]
    status: Literal["supported", "partially_supported", "unsupported"]
    passage: int
    quote: Annotated[str, Field(max_length=2_000)]


class ClaimsForm(Form):
    """Every statement of every sentence of an answer, checked."""

    claims: tuple[Fact, ...]


class EvaluationForm(Form):
    """How good an answer is, how far it answers, how sure the judge is (percent), and what it leaves open."""

    quality: Annotated[int, Field(ge=1, le=100)]
    answerability: Literal["fully", "partially", "cannot"]
    confidence: Percentage
    missing: Annotated[tuple[Topic, ...], Field(max_length=3)]
