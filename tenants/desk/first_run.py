"""First run: a one-time link that creates the first tenant and admin of an empty installation.

The link gives control of the installation, so it is printed on the console of the service and nowhere else. It works
for a day, and only until there is a tenant or a user who can sign in.
"""

from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe

from sqlalchemy import delete, select, true

from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.chats.sites import checked_origin
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound
from tenants.core.names import check_tenant_id
from tenants.desk import operators
from tenants.desk.operator_sessions import digest_of
from tenants.desk.operators import Operator
from tenants.desk.tables import OneTimeLinkRow
from tenants.storage import database

LONGEST = timedelta(days=1)


def open_link() -> str | None:
    """Create a link that replaces any earlier one; return its secret, or None if the installation is in use.

    Where there may be replicas, those of others that are being started work as well, until one of them has been used.
    """
    if not _is_empty():
        return None
    secret, now = token_urlsafe(24), datetime.now(UTC)
    with database.writing() as session:
        replaced = OneTimeLinkRow.created_at < now - LONGEST if database.is_shared() else true()
        session.execute(delete(OneTimeLinkRow).where(replaced))
        session.add(OneTimeLinkRow(digest=digest_of(secret), created_at=now))
    return secret


def check(secret: str) -> None:
    """Raise `NotFound`, `link_used`, unless the link may be used."""
    with database.reading() as session:
        row = session.get(OneTimeLinkRow, digest_of(secret))
    if row is None or datetime.now(UTC) - row.created_at >= LONGEST or not _is_empty():
        raise NotFound("link_used")


def set_up(
    secret: str, *, tenant_id: str, tenant_name: str, locale: str, origin: str, login: str, name: str, password: str
) -> Operator:
    """Create the first tenant, its site and its admin; the link is then used up.

    :param origin: of the website with the widget; may be empty.
    :raises Invalid: for an invalid value; then nothing is created, and the link still works.
    :raises NotFound: `link_used`.
    """
    check(secret)
    check_tenant_id(tenant_id)
    operators.check_new(login, password)
    origins = [checked_origin(origin)] if origin else []
    with database.writing() as session:
        # Lock all links: of two simultaneous requests, the second one finds them gone.
        links = session.scalars(select(OneTimeLinkRow).order_by(OneTimeLinkRow.digest).with_for_update()).all()
        if digest_of(secret) not in {link.digest for link in links}:
            raise NotFound("link_used")
        session.execute(delete(OneTimeLinkRow))
    tenant = Registry().add(tenant_id, name=tenant_name, locale=locale)
    with acting_as(Tenant(tenant_id, login)):
        sites.add(tenant.name, origins)
        return operators.add(login, password, role="admin", name=name)


def _is_empty() -> bool:
    return not Registry().list() and not operators.anybody()
