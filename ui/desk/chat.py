"""The inbox and the conversation pages, with every operator action.

The pages are forms and links and work without JavaScript; `ui/src/desk` adds live updates.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, TypeAlias
from urllib.parse import urlencode

from fastapi import Form, Header, Query
from markupsafe import Markup
from starlette.responses import Response

from components.language import texts
from pipelines import problems
from pipelines.ask.articles import from_chat
from pipelines.ask.chats import suggestions
from pipelines.ask.chats.conversations import Conversations
from pipelines.routes import OpenRouter, opens
from tenants.audit import search
from tenants.chats import sites, store, undo
from tenants.chats.records import MAX_SEQ
from tenants.core import context
from tenants.core.errors import Invalid, OporaError, TryAgain
from tenants.desk import articles, evaluation_results, inbox, operators, replies, sessions
from tenants.desk.inbox import VIEWS, View
from ui.api.desk import REPLY_LIMIT
from ui.desk import conversation, similar
from ui.desk.view import Desk, Endpoint, back_to, may, or_again, reader_locale, unless_known

_ONE = "/desk/chat/{chat_id}"
_MOST_HOURS = 24 * 366
_LAST_ASKED = 3
"""Number of a customer's last messages that are searched for the topic of a chat."""

_Text: TypeAlias = Annotated[str, Form(max_length=100_000)]
_Version: TypeAlias = Annotated[int | None, Form(ge=0)]
_Seq: TypeAlias = Annotated[int, Form(ge=0, le=MAX_SEQ)]
_MessageId: TypeAlias = Annotated[str, Form(pattern=r"^[0-9a-f]{0,32}$")]
_View: TypeAlias = Annotated[View, Query()]
_Known: TypeAlias = Annotated[str, Header(max_length=100)]


def router(desk: Desk, conversations: Conversations) -> OpenRouter:
    endpoints = OpenRouter("operate", limit=200_000, page=True, include_in_schema=False)
    _add_reading(endpoints, desk)
    _add_writing(endpoints, desk, conversations)
    _add_moving(endpoints, desk, conversations)
    _add_replies(endpoints, desk)
    return endpoints


def _add_reading(endpoints: OpenRouter, desk: Desk) -> None:
    @endpoints.get("/desk")
    def show_inbox(
        view: _View = "waiting",
        q: Annotated[str, Query(max_length=200)] = "",
        site: Annotated[str, Query(max_length=64)] = "",
        reason: Annotated[str, Query(max_length=64)] = "",
        after: Annotated[str, Query(max_length=1_000)] = "",
        if_none_match: _Known = "",
    ) -> Response:
        chosen = inbox.Filter(*(one.replace("\0", " ") for one in (q, site, reason)))
        me = context.current().subject

        def listed() -> tuple[Markup, str | None]:
            found, people = inbox.page(view, chosen, after=after), conversation.names(operators.all())
            rows = desk.part("inbox_rows.html", rows=found.rows, people=people, customer=conversation.customer)
            return rows, found.following

        kept = {name: value for name, value in (("q", q), ("site", site), ("reason", reason)) if value}
        shown_to = ("rows", view, reader_locale(), me if view in inbox.OWN else "")
        rows, following = listed() if kept or after else desk.shared.get(listed, *shown_to)
        page = desk.page(
            "inbox.html",
            section="inbox",
            views=VIEWS,
            view=view,
            chosen=chosen,
            kept=urlencode(kept),
            sites=sites.own(),
            reasons=desk.shared.get(inbox.reasons, "reasons"),
            rows=rows,
            following=following,
            counts=desk.shared.get(inbox.counts, "counts", me),
            sets_up=may("admin"),
            first=not after,
            loss=evaluation_results.unseen_loss() if may("ingest") else None,
        )
        return unless_known(page, if_none_match)

    @endpoints.get(_ONE)
    def show_chat(
        chat_id: str, before: Annotated[int | None, Query(ge=1, le=MAX_SEQ)] = None, if_none_match: _Known = ""
    ) -> Response:
        return unless_known(_conversation(desk, chat_id, before=before), if_none_match)

    @endpoints.get(f"{_ONE}/similar")
    def show_similar(chat_id: str) -> Response:
        """Return closed chats similar to this one. The chat's page loads them on demand."""
        asked = [one.text for one in store.recent(store.get(chat_id).chat_id) if one.author == "customer" and one.text]
        found = similar.similar(" ".join(asked[-_LAST_ASKED:]), but=chat_id)
        return desk.page("similar.html", section="inbox", chat_id=chat_id, found=found)

    @endpoints.get("/desk/turns/{turn_id}")
    def show_turn(turn_id: str) -> Response:
        record = search.get(turn_id)
        content = record.content or {}
        turn = conversation.parsed_turn(content.get("answer"))
        phoenix = desk.settings.phoenix_url.rstrip("/")
        return desk.page(
            "turn.html",
            section="inbox",
            record=record,
            turn=turn,
            passages=conversation.passages(turn) if turn is not None else (),
            found=content.get("found", ()),
            retrieved=content.get("retrieved", ()),
            calls=content.get("calls", ()),
            trace=f"{phoenix}/redirects/traces/{turn.trace_id}" if phoenix and turn and turn.trace_id else "",
        )


def _add_writing(endpoints: OpenRouter, desk: Desk, conversations: Conversations) -> None:
    again = _again(desk)

    @endpoints.post(f"{_ONE}/reply")
    @again
