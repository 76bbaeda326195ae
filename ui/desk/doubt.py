"""Doubts about the knowledge base: documents that may be out of date, contradictions, rejected approaches."""

from datetime import timedelta
from typing import Annotated, Literal, TypeAlias

from fastapi import Form, Query
from starlette.responses import Response

from pipelines.ask.articles import contradictions
from pipelines.problems import refused_as
from pipelines.routes import OpenRouter
from tenants.core.errors import CallerError, OporaError
from tenants.desk import operators
from tenants.knowledge import agreements, freshness, rejected
from ui.api.relation import RejectedRequest
from ui.desk import chat_view
from ui.desk.rendering import Desk, back_to, or_again

_STALE, _REJECTED, _CONTRADICTIONS = "/desk/stale", "/desk/rejected", "/desk/contradictions"
_SETTLE, _UNSETTLE = f"{_CONTRADICTIONS}/settle", f"{_CONTRADICTIONS}/unsettle"
_MOST_DAYS = 3_650
_SHOWN = 200

_Short: TypeAlias = Annotated[str, Form(max_length=2_000)]
_Chunk: TypeAlias = Annotated[str, Form(max_length=64)]
_Days: TypeAlias = Annotated[int, Query(ge=1, le=_MOST_DAYS)]


def router(desk: Desk) -> OpenRouter:
    endpoints = OpenRouter("ingest", limit=20_000, page=True, include_in_schema=False)

    @endpoints.get(_STALE)
    def show_stale(cited: _Days = 30, older: _Days = 365) -> Response:
        stale = freshness.stale(cited_within=timedelta(days=cited), older_than=timedelta(days=older))
        return desk.page(
            "doubts/stale.html",
            section="gaps",
            tab="stale",
            stale=stale[:_SHOWN],
            cited=cited,
            older=older,
            most=_MOST_DAYS,
        )

    @endpoints.get(_CONTRADICTIONS)
    def show_contradictions() -> Response:
        return desk.page(
            "doubts/contradictions.html",
            section="gaps",
            tab="contradictions",
            pairs=contradictions.undecided()[:_SHOWN],
            agreed=agreements.page(limit=_SHOWN),
            people=chat_view.names(operators.all()),
        )

    @endpoints.post(_SETTLE)
    def settle(one: _Chunk, other: _Chunk, decision: Annotated[Literal["supersedes", "agree"], Form()]) -> Response:
        """`supersedes`: from now on, the document of `one` takes precedence over that of `other`."""
        if decision == "supersedes":
            contradictions.supersede(contradictions.passage(one).doc_id, contradictions.passage(other).doc_id)
        else:
            contradictions.agree(one, other)
        return back_to(_CONTRADICTIONS)

    @endpoints.post(_UNSETTLE)
    def unsettle(one: _Chunk, other: _Chunk) -> Response:
        agreements.remove(one, other)
        return back_to(_CONTRADICTIONS)

    def listed(refused: OporaError | None = None, text: str = "", reason: str = "", doc_id: str = "") -> Response:
        return desk.page(
            "doubts/rejected.html",
            refused,
            section="gaps",
            tab="rejected",
            rejected=rejected.page(),
            limits=rejected,
            text=text,
            reason=reason,
            doc_id=doc_id,
        )

    @endpoints.get(_REJECTED)
    def show_rejected() -> Response:
        return listed()

    @endpoints.post(f"{_REJECTED}/add")
    @or_again(listed, CallerError)
    def add_rejected(text: _Short = "", reason: _Short = "", doc_id: _Short = "") -> Response:
        with refused_as("rejected_invalid", text=rejected.MAX_TEXT_LENGTH, reason=rejected.MAX_REASON_LENGTH):
            request = RejectedRequest(text=text, reason=reason, doc_id=doc_id.strip() or None)
        rejected.put(request.rejected())
        return back_to(_REJECTED)

    @endpoints.post(f"{_REJECTED}/remove")
    def remove_rejected(rejected_id: Annotated[str, Form(max_length=64)]) -> Response:
        rejected.remove(rejected_id)
        return back_to(_REJECTED)

    return endpoints
