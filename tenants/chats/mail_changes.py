"""Changes of a chat by e-mail: answers of customers, replies sent, and failures."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from secrets import token_hex

from tenants.accounts import policy
from tenants.chats.change import Change, changing
from tenants.chats.records import Body, HandoffRequest
from tenants.chats.tickets import Ticket

PREFIX = "mail:"
"""Prefix of the `client_id` of messages that came by e-mail."""
MAILS_PER_HOUR = 20
"""Messages that one chat takes by e-mail in an hour, delivery reports included."""


def receive(chat_id: str, text: str, *, client_id: str, body: Body, notice: Callable[[Ticket], str]) -> bool:
    """Post a customer's answer that came by e-mail. A repeated `client_id` stores nothing.

    A person answers it: the customer does not read what the assistant would write.

    :param notice: what the chat says about a new ticket.
    :returns: False if it exceeds `MAILS_PER_HOUR`, so that it is not stored.
    """
    channel = policy.current().handoff_channel
    with changing(chat_id) as change:
        row = change.row
        if change.sent_before(client_id) is not None:
            return True
        if _is_full(change):
            return False
        change.become("customer_message")
        row.customer_seen = max(row.customer_seen, row.mailed_seq)
        change.add("customer", "text", text, client_id=client_id, body=body)
        if row.state == "bot":
            request = HandoffRequest("user_request", question=text)
            change.call_person(request, channel, notice=notice)
        return True


def note_sent(chat_id: str, through: int) -> None:
    """Record that the replies up to this message went by e-mail. Customers do not see it in the chat."""
    with changing(chat_id) as change:
        change.row.mailed_seq = max(change.row.mailed_seq, through)
        change.add("system", "note", "", body={"event": "emailed"})


def note_undelivered(chat_id: str, fault: str) -> None:
    """Record that an e-mail did not reach the customer, unless the chat exceeds `MAILS_PER_HOUR`."""
    with changing(chat_id) as change:
        if not _is_full(change):
            body = {"event": "email_failed", "fault": fault}
            change.add("system", "note", "", client_id=PREFIX + token_hex(12), body=body)


def _is_full(change: Change) -> bool:
    return change.sent_since(PREFIX, datetime.now(UTC) - timedelta(hours=1)) >= MAILS_PER_HOUR
