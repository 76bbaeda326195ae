"""Canned replies: texts for operators to insert, with placeholders for data of the chat."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex

from sqlalchemy import select

from tenants.core.errors import Invalid
from tenants.desk.tables import CannedReplyRow
from tenants.storage import database
from tenants.storage.mapping import record_of, records

VARIABLES = ("operator", "ticket", "organisation")
MOST = 200
_TITLE, _TEXT = 100, 5_000
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class CannedReply:
    """A text to insert, with the placeholders `{operator}`, `{ticket}` and `{organisation}`."""

    reply_id: str
    title: str
    text: str

    def filled(self, values: Mapping[str, str]) -> str:
        """Fill in the placeholders. One without a value is left in the text, for the operator to see."""
        return _PLACE.sub(lambda place: values.get(place[1]) or place[0], self.text)


def all() -> tuple[CannedReply, ...]:
    """Return the tenant's canned replies by title."""
    return records(CannedReply, select(CannedReplyRow).order_by(CannedReplyRow.title))


def add(title: str, text: str) -> CannedReply:
    """Add a canned reply. Raises `Invalid`: `reply_invalid`, `replies_too_many`."""
    title, text = " ".join(title.split()), text.strip()
    if not 1 <= len(title) <= _TITLE or not 1 <= len(text) <= _TEXT or "\0" in title + text:
        raise Invalid("reply_invalid")
    row = CannedReplyRow(reply_id=token_hex(8), title=title, text=text, created_at=datetime.now(UTC))
    with database.writing() as session:
        session.check_room(CannedReplyRow, MOST, "replies_too_many")
        session.add(row)
    return record_of(CannedReply, row)


def remove(reply_id: str) -> None:
    """Take a canned reply away. Raises `NotFound`: `reply_unknown`."""
    with database.writing() as session:
        session.delete(session.existing(CannedReplyRow, reply_id))
