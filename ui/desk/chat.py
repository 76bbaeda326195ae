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
from pipelines.ask.chats import suggested_replies
from pipelines.ask.chats.customer_chats import Conversations
from pipelines.routes import OpenRouter, opens
from tenants.audit import search
from tenants.chats import sites, store, undo
from tenants.chats.records import MAX_SEQ
from tenants.core import context
from tenants.core.errors import Conflict, Invalid, OporaError, RateLimited, TryAgain
from tenants.desk import articles, evaluation_results, inbox, operator_sessions, operators, replies
from tenants.desk.inbox import VIEWS, View
from ui.api.desk import REPLY_LIMIT
from ui.desk import chat_view, similar
from ui.desk.rendering import Desk, Endpoint, back_to, may, or_again, reader_locale, unless_known

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
            found, people = inbox.page(view, chosen, after=after), chat_view.names(operators.all())
            rows = desk.part("inbox_rows.html", rows=found.rows, people=people, customer=chat_view.customer)
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
        turn = chat_view.parsed_turn(content.get("answer"))
        phoenix = desk.settings.phoenix_url.rstrip("/")
        return desk.page(
            "turn.html",
            section="inbox",
            record=record,
            turn=turn,
            passages=chat_view.passages(turn) if turn is not None else (),
            found=content.get("found", ()),
            retrieved=content.get("retrieved", ()),
            calls=content.get("calls", ()),
            trace=f"{phoenix}/redirects/traces/{turn.trace_id}" if phoenix and turn and turn.trace_id else "",
        )


def _add_writing(endpoints: OpenRouter, desk: Desk, conversations: Conversations) -> None:
    again = _again(desk)
    # Chats may have no room: the operator keeps the text.
    again_later = _again(desk, Invalid, Conflict, RateLimited, TryAgain)

    @endpoints.post(f"{_ONE}/reply")
    @opens(takes_turns=True)
    @again_later
    async def reply(
        chat_id: str,
        text: _Text = "",
        seen: _Seq = 0,
        client_id: Annotated[str, Form()] = "",
        suggestion: _MessageId = "",
    ) -> Response:
        name, known = operator_sessions.current().operator.name, _known_id(client_id)
        send = partial(store.reply, seen=seen, name=name, client_id=known, suggestion=suggestion or None)
        await asyncio.to_thread(send, chat_id, _checked(text))
        conversations.drop(chat_id)
        return back_to(_path(chat_id))

    @endpoints.post(f"{_ONE}/note")
    @again_later
    def note(chat_id: str, text: _Text = "") -> Response:
        store.note(chat_id, _checked(text), name=operator_sessions.current().operator.name)
        return back_to(_path(chat_id))

    @endpoints.post(f"{_ONE}/article")
    @opens(scope="ingest")
    @again
    def write_article(chat_id: str) -> Response:
        return back_to(f"/desk/articles/{from_chat.write(chat_id).article_id}")

    @endpoints.post(f"{_ONE}/suggest")
    @opens(takes_turns=True)
    @_again(desk, Invalid, TryAgain)
    async def suggest(chat_id: str) -> Response:
        await suggested_replies.suggest(conversations.runner, chat_id)
        return back_to(_path(chat_id))

    @endpoints.post(f"{_ONE}/discard")
    def discard(chat_id: str, suggestion: _MessageId = "") -> Response:
        store.discard_suggestion(chat_id, suggestion)
        return back_to(_path(chat_id))


def _add_moving(endpoints: OpenRouter, desk: Desk, conversations: Conversations) -> None:
    again = _again(desk)

    @endpoints.post(f"{_ONE}/take")
    @opens(takes_turns=True)
    @again
    async def take(chat_id: str, version: _Version = None) -> Response:
        name = operator_sessions.current().operator.name
        await asyncio.to_thread(store.take, chat_id, version=version, name=name)
        conversations.drop(chat_id)
        return back_to(_path(chat_id))

    @endpoints.post(f"{_ONE}/hand_back")
    @again
    def hand_back(chat_id: str, version: _Version = None) -> Response:
        store.hand_back(chat_id, version=version)
        return back_to(_path(chat_id))

    @endpoints.post(f"{_ONE}/snooze")
    @again
    def snooze(
        chat_id: str, hours: Annotated[float, Form(gt=0, le=_MOST_HOURS)] = 24, version: _Version = None
    ) -> Response:
        store.snooze(chat_id, datetime.now(UTC) + timedelta(hours=hours), version=version)
        return back_to(_path(chat_id))

    @endpoints.post(f"{_ONE}/resolve")
    @again
    def resolve(chat_id: str, version: _Version = None) -> Response:
        store.resolve(chat_id, version=version)
        return back_to(_path(chat_id))

    @endpoints.post(f"{_ONE}/reopen")
    @again
    def reopen(chat_id: str, version: _Version = None) -> Response:
        store.reopen(chat_id, version=version, name=operator_sessions.current().operator.name)
        return back_to(_path(chat_id))

    @endpoints.post(f"{_ONE}/undo")
    @again
    def take_back(chat_id: str) -> Response:
        undo.undo(chat_id)
        return back_to(_path(chat_id))

    @endpoints.post(f"{_ONE}/transfer")
    @again
    def transfer(chat_id: str, operator: Annotated[str, Form(max_length=100)], version: _Version = None) -> Response:
        # Only if an operator is available to take it.
        heir = operators.get(operator)
        store.transfer(chat_id, heir.login, version=version, name=heir.name)
        return back_to(_path(chat_id))


def _add_replies(endpoints: OpenRouter, desk: Desk) -> None:
    def listed(refused: OporaError | None = None, title: str = "", text: str = "") -> Response:
        return desk.page(
            "replies.html",
            refused,
            section="inbox",
            replies=replies.all(),
            variables=replies.VARIABLES,
            title=title,
            text=text,
        )

    @endpoints.get("/desk/replies")
    def show_replies() -> Response:
        return listed()

    @endpoints.post("/desk/replies/add")
    @or_again(listed, Invalid)
    def add_reply(title: _Text = "", text: _Text = "") -> Response:
        replies.add(title, text)
        return back_to("/desk/replies")

    @endpoints.post("/desk/replies/remove")
    def remove_reply(reply_id: Annotated[str, Form(max_length=64)]) -> Response:
        replies.remove(reply_id)
        return back_to("/desk/replies")


def _conversation(
    desk: Desk, chat_id: str, refused: OporaError | None = None, *, before: int | None = None, text: str = ""
) -> Response:
    """Return the page of a chat.

    :param text: the operator's unsent text.
    """
    me, locale = operator_sessions.current().operator, reader_locale()
    chat, staff = store.get(chat_id), operators.all()
    people = chat_view.names(staff)
    shown = inbox.stretch(chat.chat_id, before=before)
    return desk.page(
        "chat.html",
        refused,
        section="inbox",
        chat=chat,
        site={one.key: one.name for one in sites.own()}.get(chat.site, chat.site),
        who=chat_view.customer(chat, locale),
        bubbles=chat_view.bubbles(shown.messages, people, locale),
        earlier=shown.messages[0].seq if shown.earlier else None,
        newest=before is None,
        people=people,
        acts=chat_view.possible(chat, me.login),
        undoable=undo.is_possible(chat),
        others=chat_view.others(chat, staff, me.login),
        canned=chat_view.canned(chat, me),
        draft=chat_view.draft(chat),
        delivery=chat_view.delivery(chat, locale),
        article=articles.of_chat(chat.chat_id),
        writes=may("ingest"),
        limit=REPLY_LIMIT,
        queue=desk.shared.get(partial(inbox.page, "waiting", limit=20), "queue"),
        waiting=desk.shared.get(partial(inbox.count, "waiting"), "waiting"),
        customer=chat_view.customer,
        fault=_in_words(refused) if refused else "",
        text=text,
    )


def _again(desk: Desk, *refusals: type[OporaError]) -> Callable[[Endpoint], Endpoint]:
    """Show the current chat, the reason for the rejection and the operator's text if an action is rejected."""

    def show(refused: OporaError, chat_id: str, text: str = "", **_: object) -> Response:
        return _conversation(desk, chat_id, refused, text=text)

    return or_again(show, *refusals)


def _in_words(refused: OporaError) -> str:
    if "state" in refused.params:
        named = texts.text(f"chats.state.{refused.params['state']}", reader_locale())
        refused = type(refused)(refused.code, **{**refused.params, "state": named})
    return problems.detail(refused)


def _checked(text: str) -> str:
    words = text.replace("\r\n", "\n").replace("\0", "").strip()
    if not 1 <= len(words) <= REPLY_LIMIT:
        raise Invalid("message_length", limit=REPLY_LIMIT)
    return words


def _known_id(client_id: str) -> str | None:
    """Return the id that the page assigned to a message, so that a repeated send stores it once."""
    return f"desk:{client_id}" if client_id and client_id.isalnum() and len(client_id) <= 64 else None


def _path(chat_id: str) -> str:
    return f"/desk/chat/{chat_id}"
