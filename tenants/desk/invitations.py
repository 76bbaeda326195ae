"""Invitation of a new tenant's first admin: a one-time link, valid for a day while the tenant has no users.

Administrators of the installation see no tenant data. So they can create a link only while a tenant is empty; later,
its own admins invite people, or the owner of the data folder adds them from the command line.
"""

from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe

from sqlalchemy import delete, select

from tenants.access.tables import TokenRow
from tenants.accounts.registry import Registry, TenantRecord
from tenants.chats.tables import ChatRow, SiteRow, TicketRow, WebhookRow
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Conflict, NotFound, OporaError
from tenants.desk import operators
from tenants.desk.operator_sessions import digest_of
from tenants.desk.operators import Operator
from tenants.desk.sso_providers import SignInProviderRow
from tenants.desk.tables import ArticleRow, CannedReplyRow, EvaluationQuestionRow, InvitationRow, OperatorRow
from tenants.knowledge.tables import DocumentRow, RejectedRow, ToolRow
from tenants.storage import database
from tenants.storage.audit_tables import AuditRow
from tenants.storage.tables import Base

LONGEST = timedelta(days=1)
_IN_USE: tuple[type[Base], ...] = (
    *(OperatorRow, CannedReplyRow, ArticleRow, EvaluationQuestionRow, SignInProviderRow),
    *(DocumentRow, RejectedRow, ToolRow),
    *(SiteRow, ChatRow, TicketRow, WebhookRow),
    *(TokenRow, AuditRow),
)


def invite(tenant_id: str) -> str:
    """Create a link that replaces the previous one; return its secret.

    :raises NotFound: `tenant_unknown`.
    :raises Conflict: `tenant_in_use`, if the tenant has a user or any data.
    """
    with acting_as(Tenant(tenant_id, "")), database.reading() as session:
        if any(session.scalars(select(row).limit(1)).first() is not None for row in _IN_USE):
            raise Conflict("tenant_in_use")
    return renew(tenant_id)


def renew(tenant_id: str) -> str:
    """Create a link that replaces the previous one, whatever data the tenant has; return its secret.

    For the owner of the data folder alone, who has access to all data anyway.

    :raises NotFound: `tenant_unknown`.
    :raises Conflict: `tenant_in_use`, if the tenant has a user.
    """
    Registry().get(tenant_id)
    if _is_staffed(tenant_id):
        raise Conflict("tenant_in_use")
    secret = token_urlsafe(24)
    with acting_as(Tenant(tenant_id, "")), database.writing() as session:
        session.lock_tenant()  # of two simultaneous links, one replaces the other
        session.execute(delete(InvitationRow))
        session.add(InvitationRow(digest=digest_of(secret), created_at=datetime.now(UTC)))
    return secret


def check(secret: str) -> TenantRecord:
    """Return the tenant of a link. Raises `NotFound`, `invitation_used`, if the link is not valid."""
    with database.across_tenants() as session:
        row = session.get(InvitationRow, digest_of(secret))
    if row is None or datetime.now(UTC) - row.created_at >= LONGEST or _is_staffed(row.tenant_id):
        raise NotFound("invitation_used")
    return Registry().get(row.tenant_id)


def accept(secret: str, *, login: str, password: str, name: str) -> Operator:
    """Create the first admin of the link's tenant; the link is then used up.

    :raises Invalid: for a login or a password that does not fit; the link still works then.
    :raises NotFound: `invitation_used`.
    """
    tenant = check(secret)
    operators.check_new(login, password)
    with acting_as(Tenant(tenant.tenant_id, operators.normal_login(login))):
        with database.writing() as session:
            # Of two simultaneous requests, the second one finds the link gone.
            used = delete(InvitationRow).where(InvitationRow.digest == digest_of(secret))
            created_at = session.scalar(used.returning(InvitationRow.created_at))
            if created_at is None:
                raise NotFound("invitation_used")
        try:
            return operators.add(login, password, role="admin", name=name)
        except OporaError:
            # The login may be taken meanwhile, for example: keep the link usable, unless a newer one replaces it.
            with database.writing() as session:
                session.lock_tenant()
                if session.scalar(select(InvitationRow.digest).limit(1)) is None:
                    session.add(InvitationRow(digest=digest_of(secret), created_at=created_at))
            raise


def _is_staffed(tenant_id: str) -> bool:
    with acting_as(Tenant(tenant_id, "")), database.reading() as session:
        return session.scalar(select(OperatorRow.login).limit(1)) is not None
