"""Consents of a site's visitors: the text shown, the time, the address, and the withdrawal.

A consent is never changed except to end it. A visitor of a site that asks for consent cannot write before they agree,
nor after a withdrawal at any site until they agree again.
"""

from datetime import UTC, datetime
from secrets import token_hex

from sqlalchemy import select, update

from tenants.chats import sites
from tenants.chats.tables import ConsentRow
from tenants.core import context
from tenants.core.errors import Forbidden
from tenants.storage import database


def give(text: str, *, site: str, address: str) -> None:
    """Store the caller's consent to the text as shown."""
    caller = context.current()
    row = ConsentRow(
        consent_id=token_hex(12),
        subject=caller.subject,
        site=site,
        text=text,
        address=address,
        at=datetime.now(UTC),
        withdrawn_at=None,
    )
    with database.writing() as session:
        session.add(row)


def withdraw(site: str) -> None:
    """Withdraw the caller's consents at a site."""
    caller = context.current()
    standing = (
        ConsentRow.subject == caller.subject,
        ConsentRow.site == site,
        ConsentRow.withdrawn_at.is_(None),
    )
    with database.writing() as session:
        session.execute(update(ConsentRow).where(*standing).values(withdrawn_at=datetime.now(UTC)))


def check(site: str) -> None:
    """Raise `Forbidden` if the caller may not write: `consent_withdrawn`; `consent_missing` if the site asks for it."""
    caller = context.current()
    query = select(ConsentRow.withdrawn_at).where(ConsentRow.subject == caller.subject, ConsentRow.site == site)
    with database.reading() as session:
        latest = session.scalars(query.order_by(ConsentRow.at.desc()).limit(1)).all()
    if latest and latest[0] is not None:
        raise Forbidden("consent_withdrawn")
    if not latest and any(one.key == site and one.config.consent for one in sites.own()):
        raise Forbidden("consent_missing")
