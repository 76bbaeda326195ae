"""`POST /feedback`: a verdict on an answer. The gate has checked the token and set the tenant."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints, field_validator

from pipelines.ask.usecase import Ask
from pipelines.routes import OpenRouter, opens
from tenants.desk.feedback import Reason, Thumb


class FeedbackRequest(BaseModel, extra="forbid"):
    """Verdict on one turn. Its author comes from the token."""

    turn_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:~-]{1,128}$")]
    thumb: Thumb
    reason: Reason | None = None
    comment: Annotated[str, Field(max_length=1_000)] = ""

    @field_validator("comment")
    @classmethod
    def _trim(cls, value: str) -> str:
        # NUL is legal in JSON but not in database text columns.
        return value.replace("\x00", " ").strip()


class FeedbackAnswer(BaseModel, from_attributes=True):
    """Stored verdict; personal data is removed from its comment."""

    turn_id: str
    thumb: Thumb
    reason: Reason | None
    comment: str
    at: datetime


def router(ask: Ask) -> OpenRouter:
    endpoints = OpenRouter("ask", limit=16_000, tags=["ask"])

    @endpoints.post("/feedback")
    @opens(visitors=True, per_minute=20)
    def judge(body: FeedbackRequest) -> FeedbackAnswer:
        """Store a verdict. It replaces the same person's earlier verdict on this turn."""
        return FeedbackAnswer.model_validate(ask.judge(body.turn_id, body.thumb, body.reason, body.comment))

    return endpoints
