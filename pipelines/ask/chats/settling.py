"""What comes of a turn in a chat: its answer is stored, or the chat goes to a person, in one transaction either way."""

from dataclasses import replace

from components.turn import Outcome
from pipelines.ask.chats.thread import Waiting
from pipelines.ask.contract import TurnAnswer
from pipelines.ask.effects import HANDED_OVER, OFFERED, EndedTurn, unverified, with_ticket
from tenants import policy
from tenants.chats import sites, store
from tenants.chats.records import Body, Chat, HandoffRequest, Said
from tenants.handoffs import Ticket

FAILED: frozenset[Outcome] = frozenset({"refused", "cannot_answer", "failed"})
"""Outcomes that leave the customer without an answer; some in a row are a reason to call a person."""

REPEATED_FAILURES = "repeated_failures"


def settle(chat: Chat, waiting: Waiting, ended: EndedTurn) -> EndedTurn | None:
    """Store what a turn has come to. None: a person has the chat by now, or the customer has stopped the answer.

    :param chat: as it was when the turn began.
    """
    turn = ended.turn
    failed = turn.outcome in FAILED
    most = policy.current().failures_to_person
    given_up = failed and 0 < most <= chat.failures + 1
    if turn.outcome in HANDED_OVER or given_up:
        return _hand_over(chat, waiting, ended, REPEATED_FAILURES if given_up else turn.reason or str(turn.outcome))
    if turn.outcome == "failed":
        ended = replace(ended, handoff=OFFERED)
    stored = store.answer(
        chat.chat_id,
        chat.version,
        ended.answer.answer.text,
        turn_id=turn.turn_id,
        body=_body(ended),
        failed=failed,
        confidence=ended.answer.scores.confidence,
        client_id=store.answer_id(waiting.request_id),
    )
    return ended if stored is not None else None


def _hand_over(chat: Chat, waiting: Waiting, ended: EndedTurn, reason: str) -> EndedTurn | None:
    turn, settled = ended.turn, ended
    request = HandoffRequest(
        reason=reason,
        question=waiting.question.text,
        turn_id=turn.turn_id,
        draft=unverified(turn),
        confidence=ended.answer.scores.confidence,
    )

    def say(ticket: Ticket) -> Said:
        nonlocal settled
        said, handoff = with_ticket(turn, ticket, sites.hours(chat.site))
        settled = replace(ended, turn=said, handoff=handoff)
        return Said(settled.answer.answer.text, _body(settled))

    client_id = store.answer_id(waiting.request_id)
    handed = store.hand_over(chat.chat_id, request, version=chat.version, say=say, client_id=client_id)
    return settled if handed is not None else None


def _body(ended: EndedTurn) -> Body:
    """What a message of the assistant carries: the whole turn, and the question as it was meant."""
    answer: TurnAnswer = ended.answer
    return {"turn": answer.model_dump(mode="json"), "meant": ended.turn.standalone_question or ended.turn.question}
