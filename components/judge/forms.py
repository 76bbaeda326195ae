"""The forms that a judging model fills in. Scores are whole percentages, which models give more consistently than
fractions.

A form leaves out limits that the code can enforce by truncating the reply, such as the length of a list.
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


class GradesForm(Form):
    """Every passage graded, how far all of them together answer, and what they leave open."""

    passages: tuple[Grade, ...]
    adequacy: Percentage
    missing: tuple[str, ...]


class Fact(Form):
    """The verdict on the numbered claim, and the words of its passage that decide it."""

    number: int
    status: ClaimStatus
    quote: str


class ClaimsForm(Form):
    """Every claim, checked."""

    claims: tuple[Fact, ...]


class Proposal(Form):
    """The statement `number` suggests the rejected approach of this number."""

    number: int
    approach: int


class ProposalsForm(ClaimsForm):
    """Every claim, checked, and those that suggest a rejected approach."""

    proposals: tuple[Proposal, ...]


class EvaluationForm(Form):
    """Evaluation of an answer: completeness, relevance, quality, and open points."""

    why: str
    answerability: Literal["fully", "partially", "cannot"]
    relevance: Percentage
    quality: Annotated[int, Field(ge=1, le=100)]
    missing: tuple[str, ...]
