"""Pending questions of a chat and the conversation before each.

Derived from the stored messages only, so that a service killed during an answer resumes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.turn import Exchange
from tenants.chats.records import Message
from tenants.chats.store import answer_id

MAX_EXCHANGES = 10

_HANDLED_BY_PERSON = frozenset(
    {"queued", "joined", "handed_back", "resolved", "queue_timed_out", "woken", "snoozed", "reopened"}
)
"""Events of a person's work on the chat."""

_SETTLED = _HANDLED_BY_PERSON | {"branched_from"}
"""Events after which earlier messages no longer need an answer from the assistant."""

_OF_TURNS = frozenset({"asked_again", "delayed", "stopped"})
"""Events that belong to a question, and are superseded with it."""


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A message that the assistant has to answer. `request_id` names the answer: there is one to each."""

    request_id: str
    question: Message
    history: tuple[Exchange, ...]


def pending_questions(messages: Sequence[Message]) -> tuple[PendingQuestion, ...]:
    replaced = superseded(messages)
    asked = {one.message_id: one for one in messages if one.author == "customer" and one.text}
    unanswered: dict[str, Message] = {}
    for one in messages:
        event = one.body.get("event")
        if one.author == "customer" and one.message_id in asked and one.message_id not in replaced:
            unanswered[one.message_id] = one
        elif event == "asked_again":
            question = asked.get(str(one.body["message_id"]))
            if question is not None and question.message_id not in replaced:
                unanswered[one.message_id] = question
        elif one.author == "operator" or event in _SETTLED:
            unanswered.clear()
        for request_id in [request_id for request_id in unanswered if one.client_id == answer_id(request_id)]:
            del unanswered[request_id]
    return tuple(
        PendingQuestion(request_id, question, history(messages, before=question.seq))
        for request_id, question in unanswered.items()
    )


def history(messages: Sequence[Message], *, before: int) -> tuple[Exchange, ...]:
    """Return the conversation before a message: what was asked, how it ended, and what a person answered."""
    exchanges: dict[str, Exchange] = {}
    replaced = superseded(messages)
    asked: Message | None = None
    for one in messages:
        if one.seq >= before:
            break
        if one.author == "customer" and one.text and one.message_id not in replaced:
            asked = one
        elif one.author == "bot" and "turn" in one.body and asked is not None and one.message_id not in replaced:
            exchanges[asked.message_id] = _answered(asked, one)
        elif one.author == "operator" and one.kind == "text":
            about = asked.message_id if asked is not None else ""
            earlier = exchanges.get(about)
            question = earlier.question if earlier is not None else asked.text if asked is not None else ""
            said = f"{earlier.reply}\n{one.text}" if earlier is not None and earlier.reply else one.text
            exchanges[about] = Exchange(question, "answered", reply=said)
    return tuple(exchanges.values())[-MAX_EXCHANGES:]


def superseded(messages: Sequence[Message]) -> frozenset[str]:
    """Return the messages that an edit or another answer has taken the place of.

    Both lead back to the message that they replace, so everything said since then is superseded with it; never what a
    person said.
    """
    places = {one.message_id: place for place, one in enumerate(messages)}
    ids: set[str] = set()
    for place, one in enumerate(messages):
        start = places.get(str(one.body.get("replaces")), place)
        ids.update(earlier.message_id for earlier in messages[start:place] if _is_of_turns(earlier))
    return frozenset(ids)


def can_return_to(messages: Sequence[Message], message_id: str) -> bool:
    """Return whether the conversation can go back to a message: it is current, and no person has replied since."""
    place = next((place for place, one in enumerate(messages) if one.message_id == message_id), None)
    if place is None or message_id in superseded(messages):
        return False
    return not any(one.author == "operator" or one.body.get("event") in _HANDLED_BY_PERSON for one in messages[place:])


def _is_of_turns(message: Message) -> bool:
    return message.author in ("customer", "bot") or message.body.get("event") in _OF_TURNS


def _answered(asked: Message, answer: Message) -> Exchange:
    meant, turn = answer.body.get("meant"), answer.body.get("turn")
    outcome = turn.get("outcome") if isinstance(turn, Mapping) else None
    clarification = turn.get("clarification") if isinstance(turn, Mapping) else None
    return Exchange(str(meant or asked.text), str(outcome or "answered"), tuple(_options(clarification)))


def _options(clarification: object) -> Iterator[str]:
    options = clarification.get("options") if isinstance(clarification, Mapping) else None
    yield from (str(one) for one in options or ())
