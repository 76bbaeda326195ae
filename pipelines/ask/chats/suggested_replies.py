"""A reply that the assistant suggests to an operator: what it would itself answer to the customer's last question.

The suggestion is a note in the chat: every operator sees it and no customer does, and it goes wherever the chat goes.
What becomes of it is stored with the reply that it led to, or with a line that says it was discarded.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from components.language.texts import text
from components.turn import SHOWN
from pipelines.ask.chats import thread
from pipelines.ask.contract import ArticlePart, AskRequest, CitationPart, TurnAnswer
from pipelines.ask.effects import HANDED_OVER
from pipelines.ask.runner import Runner
from pipelines.fair_requests import give_up_turn
from tenants.chats import store
from tenants.chats.records import Body, Chat, Message, Posted
from tenants.core import context
from tenants.core.errors import Invalid

Fate: TypeAlias = Literal["offered", "accepted", "edited", "discarded"]
"""An operator's use of a suggestion. `offered`: not used yet."""

_LOOK_BACK = 3
"""Number of messages to try, newest first: the last one is often "are you there?" or a call for a person."""
_NO_QUESTION = HANDED_OVER | {"nonsense", "irrelevant"}
_LINKS = 2
_MARKER = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A stored suggestion. `reply` is the text that an operator may send: without markers, with links."""

    message_id: str
    turn: object
    reply: str


async def suggest(runner: Runner, chat_id: str) -> Posted:
    """Answer the customer's last question for an operator, and note the answer in the chat.

    :raises Invalid: `nothing_to_answer`, when the customer has written no words yet.
    :raises OporaError: a reason to try again; nothing was stored then.
    """
    chat, messages = await asyncio.to_thread(lambda: (store.get(chat_id), store.recent(chat_id)))
    asked = [one for one in reversed(messages) if one.author == "customer" and one.text.strip()][:_LOOK_BACK]
    if not asked:
        raise Invalid("nothing_to_answer")
    give_up_turn()
    question, answer = asked[0], await _rehearse(runner, chat, messages, asked[0])
    for earlier in asked[1:]:
        if answer.outcome not in _NO_QUESTION:
            break
        question, answer = earlier, await _rehearse(runner, chat, messages, earlier)
    body: Body = {
        "suggestion": {
            "turn": answer.model_dump(mode="json"),
            "answers": question.message_id,
            "reply": reply_of(answer, chat.locale),
        }
    }
    return await asyncio.to_thread(store.suggest, chat_id, answer.answer.text, body)


def reply_of(answer: TurnAnswer, locale: str) -> str:
    """Return the text that an operator may send to the customer; empty if the knowledge base has no answer."""
    if answer.outcome in SHOWN:
        cited = _titles(one for one in answer.citations if one.cited)
        words = _MARKER.sub("", answer.answer.text).strip()
        return "\n".join([words, *_links("desk.suggestion.more", cited, locale)])
    near = _titles(answer.articles)
    return "\n".join(_links("desk.suggestion.near", near, locale)).strip()


def stored(message: Message) -> Suggestion | None:
    kept = message.body.get("suggestion") if message.author == "bot" and message.kind == "note" else None
    if not isinstance(kept, dict):
        return None
    return Suggestion(message.message_id, kept.get("turn"), str(kept.get("reply", "")))


def fates(messages: Iterable[Message]) -> dict[str, Fate]:
    """Return the use of each suggestion among the messages, by the id of the suggestion's message."""
    known: dict[str, Fate] = {}
    for one in messages:
        used = one.body.get("suggestion")
        if one.author == "operator" and isinstance(used, dict):
            known[str(used["message_id"])] = "accepted" if used["use"] == "accepted" else "edited"
        elif one.body.get("event") == store.DISCARDED:
            known.setdefault(str(one.body["message_id"]), "discarded")
    return known


async def _rehearse(runner: Runner, chat: Chat, messages: Sequence[Message], question: Message) -> TurnAnswer:
    request = AskRequest(question=question.text, session_id=chat.chat_id, locale=chat.locale)
    # Links lead to the help centre of the customer's site.
    with context.acting_as(replace(context.current(), site=chat.site)):
        return await runner.rehearse(request, thread.history(messages, before=question.seq))


def _titles(parts: Iterable[CitationPart | ArticlePart]) -> dict[str, str]:
    """Titles by address. Without paths of this service, which mean nothing in a text."""
    return {one.url: one.title for one in parts if one.url and not one.url.startswith("/")}


def _links(key: str, titles: dict[str, str], locale: str) -> list[str]:
    lines = [f"{title}: {url}" for url, title in list(titles.items())[:_LINKS]]
    return ["", text(key, locale), *lines] if lines else []
