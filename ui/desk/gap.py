"""What the knowledge base could not answer: looked through, dismissed, taken up in an article.

Operators may look, dismiss and write: they know what customers ask. What customers read is for editors to decide.
"""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Form, Query
from starlette.responses import Response

from pipelines import pages
from pipelines.ask.articles import gap_meanings
from pipelines.gate import Route
from tenants.core.errors import Invalid
from tenants.desk import articles, inbox, operators, sessions
from tenants.knowledge import documents, gaps
from tenants.knowledge.gap_groups import Group
from tenants.knowledge.gaps import STATUSES, Status
from ui.desk import conversation, knowledge
from ui.desk.view import Desk, back_to

SCOPE = "operate"
_ALL, _ONE, _DECIDE = "/desk/gaps", "/desk/gaps/{gap_id}", "/desk/gaps/decide"
_FORM_BYTES = 100_000
_PAGE = 20
_ASKINGS = 50
_WORDINGS = 3

_Ids: TypeAlias = Annotated[list[str], Form(max_length=gaps.MOST)]

ROUTES = (
    Route("GET", _ALL, scope=SCOPE, page=True),
    Route("GET", _ONE, scope=SCOPE, page=True),
    Route("POST", _DECIDE, scope=SCOPE, page=True, limit=_FORM_BYTES),
)


def router(desk: Desk) -> APIRouter:
    """The pages."""
    endpoints = APIRouter(include_in_schema=False)

    @endpoints.get(_ALL)
    def show_gaps(
        status: Annotated[Status, Query()] = "open",
        q: Annotated[str, Query(max_length=200)] = "",
        page: Annotated[int, Query(ge=1, le=gaps.MOST)] = 1,
    ) -> Response:
        found = gap_meanings.groups(status, q.replace("\0", " "))
        shown = found[(page - 1) * _PAGE : page * _PAGE]
        return desk.page(
            "gaps/list.html",
            section="gaps",
            tabs=knowledge.tabs("gaps"),
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
        )

    @endpoints.get(_ONE)
    def show_gap(gap_id: str) -> Response:
        group = gap_meanings.group_of(gaps.get(gap_id))
        askings = gaps.askings([gap.gap_id for gap in group.gaps], limit=_ASKINGS)
        return desk.page(
            "gaps/one.html",
            section="gaps",
            tabs=knowledge.tabs("gaps"),
            group=group,
            leader=group.gaps[0],
            askings=askings,
            chats=inbox.known({asking.session_id for asking in askings if asking.session_id}),
            nearest=documents.find(group.doc_ids[:_WORDINGS]),
            written=_written([group]),
            people=conversation.names(operators.all()),
            evaluates=pages.may(sessions.current().operator, "ingest"),
        )

    @endpoints.post(_DECIDE)
    def decide(
        gap: _Ids,
        status: Annotated[Status, Form()],
        back: Annotated[str, Form(max_length=1_000)] = "",
    ) -> Response:
        if not gap:
            raise Invalid("field_missing", field="gap")
        gaps.decide(gap, status)
        return back_to(pages.local(back, _ALL))

    return endpoints


def _written(groups: "list[Group] | tuple[Group, ...]") -> dict[str, articles.Article]:
    """The articles that are written for these gaps, by gap."""
    by_gap = {gap.gap_id: gap.article_id for group in groups for gap in group.gaps if gap.article_id}
    known = articles.find(by_gap.values())
    return {gap_id: known[article_id] for gap_id, article_id in by_gap.items() if article_id in known}
