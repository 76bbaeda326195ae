"""`POST /feedback`: what somebody thinks of an answer. The gate has checked the token and set the tenant."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from pipelines.ask.usecase import Ask
from pipelines.gate import Route
from settings import Settings
from tenants.feedback import Reason, Thumb

COMMENT_LIMIT = 1_000

_PATH = "/feedback"


class FeedbackRequest(BaseModel):
    """A verdict on one turn. Who gives it comes from the token."""

    model_config = ConfigDict(extra="forbid")

    turn_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:~-]{1,128}$")]
    thumb: Thumb
    reason: Reason | None = None
    comment: Annotated[str, Field(max_length=COMMENT_LIMIT)] = ""

    @field_validator("comment")
    @classmethod
    def _trim(cls, given: str) -> str:
        # NUL is legal in JSON and in no database text column.
        return given.replace("\x00", " ").strip()


class FeedbackAnswer(BaseModel):
    """The verdict as stored: the comment is without personal data."""

    turn_id: str
    thumb: Thumb
    reason: Reason | None
    comment: str
    at: datetime


def routes(settings: Settings) -> tuple[Route, ...]:
    """What the gate lets through."""
    return (Route("POST", _PATH, scope="ask", visitors=True, body=FeedbackRequest, limit=settings.max_body_bytes),)


def router(ask: Ask) -> APIRouter:
    """The endpoint."""
    endpoints = APIRouter(tags=["ask"])

    @endpoints.post(_PATH)
    def judge(body: FeedbackRequest) -> FeedbackAnswer:
        """Keep a verdict; the same person's earlier one on this turn gives way to it."""
        given = ask.judge(body.turn_id, body.thumb, body.reason, body.comment)
        return FeedbackAnswer(
            turn_id=given.turn_id, thumb=given.thumb, reason=given.reason, comment=given.comment, at=given.at
        )

    return endpoints
