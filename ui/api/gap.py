"""`/gaps` over HTTP, for operators. The gate has checked the token and set the tenant."""

import asyncio
from functools import partial
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from pipelines.ask.articles import gap_meanings
from pipelines.ask.articles.usecase import Articles
from pipelines.routes import OpenRouter, opens
from tenants.knowledge import gaps
from tenants.knowledge.gaps import Gap


class GapChange(BaseModel, extra="forbid"):
    """Change to a gap."""

    status: gaps.Status


def router(service: Articles) -> OpenRouter:
    endpoints = OpenRouter("operate", limit=1_000)

    @endpoints.get("/gaps")
    def list_gaps(
        status: Literal["open", "closed", "dismissed", "all"] = "open",
        text: Annotated[str, Query(max_length=200)] = "",
    ) -> dict[str, object]:
        """Questions that the knowledge base could not answer, grouped by meaning, most frequent first."""
        groups = gap_meanings.groups(None if status == "all" else status, text)
        return {
            "groups": [
                {"count": group.count, "doc_ids": group.doc_ids, "gaps": [gap_as_json(gap) for gap in group.gaps]}
                for group in groups
            ]
        }

    @endpoints.patch("/gaps/{gap_id}")
    @opens(takes_turns=True)
    async def set_gap(gap_id: str, change: GapChange) -> dict[str, object]:
        """Dismiss, reopen or close a gap. Closing answers 409 while one of its questions has no answer."""
        if change.status == "closed":
            return gap_as_json(await service.in_turn(partial(service.close_gap, gap_id)))
        return gap_as_json((await asyncio.to_thread(gaps.decide, [gap_id], change.status))[0])

    return endpoints


def gap_as_json(gap: Gap) -> dict[str, object]:
    """Return a gap without the stems and the vector used for grouping."""
    shown: dict[str, object] = to_jsonable_python(gap, exclude={"stems", "vector", "vector_of"})
    return shown
