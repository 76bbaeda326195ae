"""Tokens that are no longer accepted though they are signed and have not expired.

A token is named by its `jti`, or by the digest of itself where it has none, so that a provider's can be revoked too.
A subject's tokens, and all of a tenant's, are revoked up to a moment: those issued later are good. Every process hears
of it within seconds.

A token that another one replaces is revoked from a moment to come, so that both work until then.
"""

from asyncio import to_thread
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from time import time
from typing import Literal, TypeAlias

from sqlalchemy import delete, func, select

from tenants.access import token_uses
from tenants.access.tables import RevocationRow, TokenRow
from tenants.accounts import registry, settings_history
from tenants.core.context import Tenant
from tenants.core.errors import Invalid, Unauthenticated
from tenants.storage import database
from tenants.storage.cache import TenantCache
from tenants.storage.mapping import read, selected
from tenants.storage.tenant_session import TenantSession

Kind: TypeAlias = Literal["token", "subject", "tenant"]
_MAX_VALUE_BYTES = 255
MAX_REVOCATIONS = 10_000
"""Revocations of a tenant besides that of all its tokens. Each is kept as long as a token may live."""
_Revoked: TypeAlias = Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Revocation:
    """Tokens of this kind and value that were issued before `until` are refused; a single token, from then on."""

    kind: Kind
    value: str
    until: datetime


_CACHE: TenantCache[_Revoked] = TenantCache("revocations")


def token_id(raw: str, jti: object) -> str:
    """Return the id of a token: its `jti`, or its digest."""
    # NUL fits in no column of PostgreSQL.
    usable = isinstance(jti, str) and 0 < len(jti.encode()) <= _MAX_VALUE_BYTES and "\0" not in jti
    return str(jti) if usable else sha256(raw.encode()).hexdigest()


def revoke(kind: Kind, value: str = "", *, at: datetime | None = None) -> Revocation:
    """Refuse tokens of the tenant in context. Raises `Invalid`: `revocation_invalid`, `revocations_too_many`.

    :param value: the token's id, or the subject; empty for all of the tenant's.
    :param at: the time of the revocation; now if None.
    """
    if bool(value) == (kind == "tenant") or len(value.encode()) > _MAX_VALUE_BYTES:
        raise Invalid("revocation_invalid")
    with database.writing() as session:
        session.lock_tenant()
        revocation = add(session, kind, value, at or datetime.now(UTC))
    registry.expire()
    return revocation


def add(session: TenantSession, kind: Kind, value: str, at: datetime) -> Revocation:
    """Store a revocation in a transaction that has locked the tenant. It takes nothing back of an earlier one.

    :raises Invalid: `revocations_too_many`. All tokens of the tenant can still be revoked at once.
    """
    same = RevocationRow.kind == kind, RevocationRow.value == value
    # A token that has expired needs no revocation.
    expired = select(TokenRow.token_id).where(TokenRow.expires_at < datetime.now(UTC) - timedelta(days=1))
    session.execute(delete(RevocationRow).where(RevocationRow.kind == "token", RevocationRow.value.in_(expired)))
    stored = session.scalar(select(RevocationRow.until).where(*same))
    if stored is None and kind != "tenant":
        session.check_room(RevocationRow, MAX_REVOCATIONS, "revocations_too_many")
    moments = {at, stored}
    if kind != "token":
        # The replica that issued a token may have a clock that is ahead.
        issued = select(func.max(TokenRow.issued_at))
        moments.add(session.scalar(issued.where(TokenRow.subject == value) if value else issued))
    known = [moment for moment in moments if moment is not None]
    until = min(known) if kind == "token" else max(known)
    if until == stored:
        return Revocation(kind, value, until)
    session.merge(RevocationRow(kind=kind, value=value, until=until))
    settings_history.note(session, "token", "revoked", value or "*", after={"until": until})
    return Revocation(kind, value, until)


def all() -> tuple[Revocation, ...]:
    """Return the revocations of the tenant in context, newest first."""
    order = RevocationRow.until.desc(), RevocationRow.value
    return read(Revocation, selected(Revocation, RevocationRow).order_by(*order))


async def check(tenant: Tenant) -> None:
    """Raise `Unauthenticated` with the code `token_revoked` if the caller's token was revoked, or was issued for a
    removed tenant of the same id.

    Safe on the event loop: a database query runs in a thread.
    """
    token_uses.write_soon()
    record = registry.in_memory()
    if record is None:
        record = await to_thread(registry.current)
    # Whole seconds, as in tokens.
    if tenant.token_id and tenant.issued_at < int(record.created_at.timestamp()):
        raise Unauthenticated("token_revoked")
    revoked = _CACHE.peek(record.key, record.settings)
    if revoked is None:
        revoked = await to_thread(_revoked)
    if not revoked:
        return
    ends_at = revoked.get(("token", tenant.token_id))
    of_many = (("subject", tenant.subject), ("tenant", ""))
    if (ends_at is not None and ends_at <= time()) or any(
        tenant.issued_at <= revoked[name] for name in of_many if name in revoked
    ):
        raise Unauthenticated("token_revoked")


def _revoked() -> _Revoked:
    record = registry.current()
    # Whole seconds, as in tokens: a token issued in the second of its revocation is refused.
    return _CACHE.get(
        record.key, lambda _: {(one.kind, one.value): one.until.timestamp() for one in all()}, record.settings
    )
