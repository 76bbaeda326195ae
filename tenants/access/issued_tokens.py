"""Register of issued tokens: subject, expiry and last use, never the token itself.

A token of an identity provider, or one signed elsewhere with our key, is valid although it is not listed here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Literal, TypeAlias

from sqlalchemy import ColumnElement, select, tuple_

from settings import get_settings
from tenants.access import revocations, token_uses, tokens
from tenants.access.revocations import Revocation
from tenants.access.tables import RevocationRow, TokenRow
from tenants.accounts import registry, settings_history
from tenants.core import context
from tenants.core.errors import Conflict, Invalid, NotFound
from tenants.storage import database
from tenants.storage.mapping import record_of
from tenants.storage.tenant_session import TenantSession

State: TypeAlias = Literal["valid", "ending", "revoked", "expired"]
MAX_TOKENS = 1_000
"""Tokens of a tenant that have not expired."""
GRACE = timedelta(days=1)
"""Default grace period of a replaced token."""
KEPT_EXPIRED = timedelta(days=30)
"""Retention of expired tokens in the list."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """Metadata of one token. `used_at` is exact to ten minutes; None if the token was never used.

    `ends_at` is the expiry or the time of revocation. `state` is `ending` while a replaced token still works.
    """

    token_id: str
    subject: str
    scopes: tuple[str, ...]
    issued_at: datetime
    issued_by: str
    expires_at: datetime
    used_at: datetime | None
    ends_at: datetime
    state: State


def issue(*, subject: str, scopes: Iterable[str], ttl_seconds: int) -> tuple[IssuedToken, str]:
    """Issue a token for the tenant in context and record it. The token itself cannot be read again.

    Raises `Invalid`: `scope_unknown`, `subject_invalid`, `ttl_invalid`, `tokens_too_many`.
    """
    return _issue(subject, frozenset(scopes), ttl_seconds)


def rotate(token_id: str, *, grace: timedelta = GRACE) -> tuple[IssuedToken, str]:
    """Replace a token by a new one with the same subject, scopes and lifetime.

    :param grace: how long the old token keeps working, unless it expires sooner.
    :raises NotFound: `token_unknown`.
    :raises Conflict: `token_over`, if the token has expired, or was revoked or replaced.
    :raises Invalid: `grace_invalid`.
    """
    before = get(token_id)
    if not timedelta() <= grace <= timedelta(seconds=tokens.MAX_TTL_SECONDS):
        raise Invalid("grace_invalid")
    lifetime = round((before.expires_at - before.issued_at).total_seconds())
    rotated = _issue(before.subject, frozenset(before.scopes), lifetime, instead_of=token_id, grace=grace)
    registry.expire()
    return rotated


def revoke(token_id: str) -> Revocation:
    """Refuse a token from now on. Raises `NotFound`: `token_unknown`."""
    return revocations.revoke("token", get(token_id).token_id)


def get(token_id: str) -> IssuedToken:
    """Return the record of a token of the tenant in context. Raises `NotFound`: `token_unknown`."""
    for token in _known(TokenRow.token_id == token_id):
        return token
    raise NotFound("token_unknown")


def all() -> tuple[IssuedToken, ...]:
    """Return the tokens of the tenant in context: working ones first, then the newest.

    Their last uses in this process are included. Those in others are written within a minute of the next request.
    """
    token_uses.write()
    return tuple(sorted(_known(), key=lambda one: one.state not in ("valid", "ending")))


def _issue(
    subject: str, scopes: frozenset[str], ttl_seconds: int, instead_of: str = "", grace: timedelta = GRACE
) -> tuple[IssuedToken, str]:
    caller, token_id, now = context.current(), token_hex(16), datetime.now(UTC).replace(microsecond=0)
    raw = tokens.issue(
        get_settings(), caller.tenant_id, scopes=scopes, subject=subject, ttl_seconds=ttl_seconds, token_id=token_id
    )
    row = TokenRow(
        token_id=token_id,
        subject=subject,
        scopes=sorted(scopes),
        issued_at=now,
        issued_by=caller.subject,
        expires_at=now + timedelta(seconds=ttl_seconds),
    )
    with database.writing() as session:
        if instead_of:
            session.lock_tenant()
            _end_soon(session, instead_of, grace)
        else:
            session.check_room(TokenRow, MAX_TOKENS, "tokens_too_many", TokenRow.expires_at > now)
        session.add(row)
        noted = {"subject": subject, "scopes": sorted(scopes), "expires_at": row.expires_at}
        settings_history.note(
            session, "token", "rotated" if instead_of else "added", instead_of or token_id, after=noted
        )
    return _token(row, row.expires_at), raw


def _end_soon(session: TenantSession, token_id: str, grace: timedelta) -> None:
    """Revoke a replaced token, unless a simultaneous request has revoked or replaced it."""
    row = session.existing(TokenRow, token_id)
    names = [("token", token_id), ("subject", row.subject), ("tenant", "")]
    of_token = tuple_(RevocationRow.kind, RevocationRow.value).in_(names)
    stored = session.scalars(select(RevocationRow).where(of_token))
    revoked: dict[tuple[str, str], datetime] = {(one.kind, one.value): one.until for one in stored}
    if ("token", token_id) in revoked or _state(row, _end(row, revoked)) != "valid":
        raise Conflict("token_over")
    revocations.add(session, "token", token_id, min(datetime.now(UTC) + grace, row.expires_at))


def _known(*fitting: ColumnElement[bool]) -> tuple[IssuedToken, ...]:
    query = select(TokenRow).where(*fitting)
    revoked: dict[tuple[str, str], datetime] = {(one.kind, one.value): one.until for one in revocations.all()}
    with database.reading() as session:
        rows = session.scalars(query.order_by(TokenRow.issued_at.desc(), TokenRow.token_id)).all()
    return tuple(_token(row, _end(row, revoked)) for row in rows)


def _end(row: TokenRow, revoked: Mapping[tuple[str, str], datetime]) -> datetime:
    of_many = (revoked.get(name) for name in (("subject", row.subject), ("tenant", "")))
    ends = [until for until in of_many if until is not None and row.issued_at <= until]
    return min([row.expires_at, *ends, revoked.get(("token", row.token_id), row.expires_at)])


def _token(row: TokenRow, ends_at: datetime) -> IssuedToken:
    return record_of(IssuedToken, row, ends_at=ends_at, state=_state(row, ends_at))


def _state(row: TokenRow, ends_at: datetime) -> State:
    over = ends_at <= datetime.now(UTC)
    if ends_at < row.expires_at:
        return "revoked" if over else "ending"
    return "expired" if over else "valid"
