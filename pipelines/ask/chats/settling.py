"""Outcome of a turn in a chat, stored in one transaction: the answer, or the handoff to a person."""

from dataclasses import replace

from components.turn import Outcome
from pipelines.ask.chats.thread import PendingQuestion
from pipelines.ask.contract import TurnAnswer
from pipelines.ask.effects import HANDED_OVER, OFFERED, EndedTurn, unverified, with_ticket
from tenants.accounts import policy
from tenants.chats import sites, store
from tenants.chats.records import Body, BotReply, Chat, HandoffRequest
from tenants.chats.tickets import Ticket

FAILED: frozenset[Outcome] = frozenset({"refused", "cannot_answer", "failed"})
"""Outcomes that leave the customer without an answer; some in a row, without articles to read, call a person."""

REPEATED_FAILURES = "repeated_failures"


def settle(chat: Chat, pending: PendingQuestion, ended: EndedTurn) -> EndedTurn | None:
    """Store the outcome of a turn. Return None if a person has taken the chat or the customer has stopped the answer.

    :param chat: state at the beginning of the turn.
    """
    turn = ended.turn
    # A customer with articles to read chooses: read, ask again, or ask for a person.
    failed = turn.outcome in FAILED and not turn.reply.articles
    limit = policy.current().failures_to_person
    failed_too_often = failed and 0 < limit <= chat.failures + 1
    if turn.outcome in HANDED_OVER or failed_too_often:
        return _hand_over(
            chat, pending, ended, REPEATED_FAILURES if failed_too_often else turn.reason or str(turn.outcome)
        )
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
        client_id=store.answer_id(pending.request_id),
    )
    return ended if stored is not None else None


def _hand_over(chat: Chat, pending: PendingQuestion, ended: EndedTurn, reason: str) -> EndedTurn | None:
    turn, settled = ended.turn, ended
    request = HandoffRequest(
        reason=reason,
        question=pending.question.text,
        turn_id=turn.turn_id,
        draft=unverified(turn),
        confidence=ended.answer.scores.confidence,
    )

    hours = sites.hours(chat.site)

    def reply(ticket: Ticket) -> BotReply:
        nonlocal settled
        replied, handoff = with_ticket(turn, ticket, hours)
        settled = replace(ended, turn=replied, handoff=handoff)
        return BotReply(settled.answer.answer.text, _body(settled))

    client_id = store.answer_id(pending.request_id)
    handed = store.hand_over(chat.chat_id, request, version=chat.version, reply=reply, client_id=client_id)
    return settled if handed is not None else None


def _body(ended: EndedTurn) -> Body:
    answer: TurnAnswer = ended.answer
    return {"turn": answer.model_dump(mode="json"), "meant": ended.turn.standalone_question or ended.turn.question}
