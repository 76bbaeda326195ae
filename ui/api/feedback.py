"""`POST /feedback`: a verdict on an answer. The gate has checked the token and set the tenant."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from pipelines.ask.usecase import Ask
from pipelines.routes import OpenRouter, opens
from tenants.desk.feedback import Reason, Thumb

COMMENT_LIMIT = 1_000

_PATH = "/feedback"
_BODY_BYTES = 16_000


class FeedbackRequest(BaseModel):
    """Verdict on one turn. Its author comes from the token."""

    model_config = ConfigDict(extra="forbid")

    turn_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:~-]{1,128}$")]
    thumb: Thumb
    reason: Reason | None = None
    comment: Annotated[str, Field(max_length=COMMENT_LIMIT)] = ""

    @field_validator("comment")
    @classmethod
    def _trim(cls, value: str) -> str:
        # NUL is legal in JSON but not in database text columns.
        return value.replace("\x00", " ").strip()


class FeedbackAnswer(BaseModel):
    """Stored verdict; personal data is removed from its comment."""

    turn_id: str
    thumb: Thumb
    reason: Reason | None
    comment: str
    at: datetime


def router(ask: Ask) -> OpenRouter:
    """Return the endpoint."""
    endpoints = OpenRouter("ask", limit=_BODY_BYTES, tags=["ask"])

    @endpoints.post(_PATH)
    @opens(visitors=True, per_minute=20)
    def judge(body: FeedbackRequest) -> FeedbackAnswer:
        """Store a verdict. It replaces the same person's earlier verdict on this turn."""
        verdict = ask.judge(body.turn_id, body.thumb, body.reason, body.comment)
        return FeedbackAnswer(
            turn_id=verdict.turn_id, thumb=verdict.thumb, reason=verdict.reason, comment=verdict.comment, at=verdict.at
        )

    return endpoints
