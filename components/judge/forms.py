"""The forms that a judging model fills in. Scores are whole percentages, which models give more consistently than
fractions.

Bounds that a reader can mend by cutting, such as the length of a list, are not part of a form.
"""

from typing import Annotated, Literal

from pydantic import Field

from components.models.structured import Form
from components.turn import ClaimStatus

Percentage = Annotated[int, Field(ge=0, le=100)]


class Grade(Form):
    """Whether the passage `[number]` helps to answer the question."""

    number: int
    answers: bool


class AppraisalForm(Form):
    """Every passage graded, how far all of them together answer, and what they leave open."""

    passages: tuple[Grade, ...]
    adequacy: Percentage
    missing: tuple[str, ...]


class Fact(Form):
    """One statement made in the numbered claim: do its passages say it, and in which words?"""

    number: int
    claim: str
    status: ClaimStatus
    quote: str


class ClaimsForm(Form):
    """Every statement of every claim, checked."""

    claims: tuple[Fact, ...]


class EvaluationForm(Form):
    """How good an answer is, how far it answers, how sure the judge is, and what it leaves open."""

    quality: Annotated[int, Field(ge=1, le=100)]
    answerability: Literal["fully", "partially", "cannot"]
    confidence: Percentage
    missing: tuple[str, ...]
