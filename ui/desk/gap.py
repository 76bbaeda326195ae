"""Unanswered questions: list, close, dismiss, and write an article about them.

Operators may view, close and dismiss gaps and write drafts: they know the customers' questions. Only editors publish.
A gap can be closed only if its questions now have answers.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated, TypeAlias
from urllib.parse import urlencode

from fastapi import Form, Query
from starlette.responses import Response

from pipelines import desk_gate
from pipelines.ask.articles import gap_meanings
from pipelines.ask.articles.usecase import Articles
from pipelines.routes import OpenRouter, opens
from tenants.core.errors import Invalid
from tenants.desk import articles, inbox, operators
from tenants.knowledge import documents, gaps
from tenants.knowledge.gap_groups import Group
from tenants.knowledge.gaps import STATUSES, Status
from ui.desk import chat_view
from ui.desk.rendering import Desk, back_to, may

_ALL, _ONE = "/desk/gaps", "/desk/gaps/{gap_id}"
_DECIDE, _ASSIGN = f"{_ALL}/decide", f"{_ALL}/assign"
_PAGE = 20
_ASKINGS = 50
_WORDINGS = 3
_DRAFTS = 50
"""Number of recently changed articles that selected gaps can be added to."""

_Ids: TypeAlias = Annotated[list[str], Form(max_length=gaps.MOST)]
"""Gap ids; those of one group are joined by commas."""
_Back: TypeAlias = Annotated[str, Form(max_length=1_000)]
_Count: TypeAlias = Annotated[int, Query(ge=0, le=gaps.MOST)]


def router(desk: Desk, service: Articles) -> OpenRouter:
    endpoints = OpenRouter("operate", limit=100_000, page=True, include_in_schema=False)

    @endpoints.get(_ALL)
    def show_gaps(
        status: Annotated[Status, Query()] = "open",
        q: Annotated[str, Query(max_length=200)] = "",
        page: Annotated[int, Query(ge=1, le=gaps.MOST)] = 1,
        closed: _Count = 0,
        unanswered: _Count = 0,
    ) -> Response:
        found = gap_meanings.groups(status, q.replace("\0", " "))
        shown = found[(page - 1) * _PAGE : page * _PAGE]
        return desk.page(
            "gaps/list.html",
            section="gaps",
            tab="gaps",
            statuses=STATUSES,
            chosen=status,
            q=q,
            groups=shown,
            found=len(found),
            counts=gaps.counts(),
            wordings=_WORDINGS,
            written=_written(shown),
            number=page,
            following=page + 1 if len(found) > page * _PAGE else None,
            closed=closed,
            unanswered=unanswered,
            drafts=articles.page(limit=_DRAFTS),
        )

    @endpoints.get(_ONE)
    def show_gap(gap_id: str, closed: _Count = 0, unanswered: _Count = 0) -> Response:
        group = gap_meanings.group_of(gaps.get(gap_id))
        askings = gaps.askings([gap.gap_id for gap in group.gaps], limit=_ASKINGS)
        return desk.page(
            "gaps/one.html",
            section="gaps",
            tab="gaps",
            group=group,
            leader=group.gaps[0],
            askings=askings,
            chats=inbox.known({asking.session_id for asking in askings if asking.session_id}),
            nearest=documents.find(group.doc_ids[:_WORDINGS]),
            written=_written([group]),
            people=chat_view.names(operators.all()),
            evaluates=may("ingest"),
            closed=closed,
            unanswered=unanswered,
        )

    @endpoints.post(_DECIDE)
    @opens(takes_turns=True)
    async def decide(gap: _Ids, status: Annotated[Status, Form()], back: _Back = "") -> Response:
        chosen, there = _chosen(gap), desk_gate.local(back, _ALL)
        if status == "closed":
            closing = await service.in_turn(partial(service.close_gaps, chosen))
            counts = urlencode({"closed": len(closing.closed), "unanswered": len(closing.unanswered)})
            return back_to(f"{there}{'&' if '?' in there else '?'}{counts}")
        await asyncio.to_thread(gaps.decide, chosen, status)
        return back_to(there)

    @endpoints.post(_ASSIGN)
    def assign(gap: _Ids, article: Annotated[str, Form(max_length=100)] = "") -> Response:
        chosen = _chosen(gap)
        if not article:
            return back_to(f"/desk/articles/new?{urlencode({'gap': chosen}, doseq=True)}")
        return back_to(f"/desk/articles/{articles.assign(article, chosen).article_id}")

    return endpoints


def _chosen(listed: list[str]) -> list[str]:
    chosen = [gap_id for joined in listed for gap_id in joined.split(",") if gap_id][: gaps.MOST]
    if not chosen:
        raise Invalid("field_missing", field="gap")
    return chosen


def _written(groups: Sequence[Group]) -> dict[str, articles.Article]:
    by_gap = {gap.gap_id: gap.article_id for group in groups for gap in group.gaps if gap.article_id}
    known = articles.find(by_gap.values())
    return {gap_id: known[article_id] for gap_id, article_id in by_gap.items() if article_id in known}
