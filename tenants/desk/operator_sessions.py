"""Sessions of operators. A session is a random secret in a cookie; the database stores only its digest.

A session ends by signing out, by a new password, with its operator, after 12 hours without use, and after 14 days.
"""

import hmac
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe

from sqlalchemy import ColumnElement, func, select, update

from tenants.core.errors import InternalFault, NotFound, Unauthenticated
from tenants.core.scoped import scoped
from tenants.desk.operators import Operator
from tenants.desk.tables import OperatorRow, OperatorSessionRow
from tenants.storage import database
from tenants.storage.mapping import record_of

IDLE = timedelta(hours=12)
LONGEST = timedelta(days=14)
_NOTED_EVERY = timedelta(minutes=1)
_AT_DESK = timedelta(minutes=15)
_MAX_SECRET = 100
_ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session in use. `csrf` is the token that a page of this session sends with every change."""

    operator: Operator
    session_id: str
    digest: str
    csrf: str


@dataclass(frozen=True, slots=True)
class OperatorSession:
    """A session as its owner sees it in the list."""

    session_id: str
    address: str
    browser: str
    created_at: datetime
    seen_at: datetime


_CURRENT: ContextVar[SignedIn | None] = ContextVar("opora_operator_session", default=None)


def using(signed_in: SignedIn) -> AbstractContextManager[SignedIn]:
    """Run the block for a session. For the gate alone."""
    return scoped(_CURRENT, signed_in)


def current() -> SignedIn:
    """Return the session of this request. Raises `InternalFault` without one."""
    signed_in = _CURRENT.get()
    if signed_in is None:
        raise InternalFault("no_session")
    return signed_in


def begin(operator: Operator, *, address: str, browser: str) -> str:
    """Begin a session of an operator; return its secret, always a new one, against session fixation.

    :raises Unauthenticated: `sign_in_failed`: since the operator was read, they were removed or got another password.
    """
    secret, now = token_urlsafe(32), datetime.now(UTC)
    row = OperatorSessionRow(
        digest=digest_of(secret),
        operator_id=operator.operator_id,
        address=address[:64],
        browser=browser[:200],
        created_at=now,
        seen_at=now,
    )
    # Checked in the transaction of the session: verifying a password takes long, and a change ends only the sessions
    # that exist.
    with database.across_tenants(write=True) as session:
        known = session.find(OperatorRow, operator.operator_id, lock=True)
        if known is None or known.password_digest != operator.password_digest:
            raise Unauthenticated("sign_in_failed")
        session.add(row)
    return secret


def verify(secret: str) -> SignedIn:
    """Return the session of a secret. Raises `Unauthenticated`: `session_ended`."""
    signed_in = _find(secret) if 0 < len(secret) <= _MAX_SECRET else None
    if signed_in is None:
        raise Unauthenticated("session_ended")
    return signed_in


def is_alive(signed_in: SignedIn) -> bool:
    """Whether a session that was in use still is one: for streams, which outlast the moment they were opened."""
    with database.reading() as session:
        row = session.get(OperatorSessionRow, signed_in.digest)
        return row is not None and not _over(row, datetime.now(UTC))


def desk_in_use() -> bool:
    """Whether an operator of the tenant has opened a page of the desk in the last minutes."""
    recent = OperatorSessionRow.seen_at > datetime.now(UTC) - _AT_DESK
    used = select(OperatorSessionRow.digest).join(OperatorRow).where(recent)
    with database.reading() as session:
        return session.scalars(used.limit(1)).first() is not None


def of(operator: Operator) -> tuple[OperatorSession, ...]:
    """Return the sessions of an operator, the last used first."""
    query = select(OperatorSessionRow).where(_of(operator))
    now = datetime.now(UTC)
    with database.reading() as session:
        rows = session.scalars(query.order_by(OperatorSessionRow.seen_at.desc()))
        return tuple(
            OperatorSession(row.digest[:_ID_LENGTH], row.address, row.browser, row.created_at, row.seen_at)
            for row in rows
            if not _over(row, now)
        )


def end(operator: Operator, session_id: str) -> None:
    """End one session of an operator. Raises `NotFound`: `session_unknown`."""
    with database.writing() as session:
        beginning = func.substr(OperatorSessionRow.digest, 1, _ID_LENGTH)
        if not session.remove(OperatorSessionRow, _of(operator), beginning == session_id):
            raise NotFound("session_unknown")


def end_all(operator: Operator) -> int:
    """End every session of an operator; how many there were."""
    with database.writing() as session:
        return session.remove(OperatorSessionRow, _of(operator))


def end_by_secret(secret: str) -> None:
    """End the session of a secret, if it is one."""
    with database.writing() as session:
        session.remove(OperatorSessionRow, OperatorSessionRow.digest == digest_of(secret))


def _of(operator: Operator) -> ColumnElement[bool]:
    return OperatorSessionRow.operator_id == operator.operator_id


def _find(secret: str) -> SignedIn | None:
    digest, now = digest_of(secret), datetime.now(UTC)
    query = (
        select(OperatorSessionRow, OperatorRow)
        .join(OperatorRow, OperatorRow.operator_id == OperatorSessionRow.operator_id)
        .where(OperatorSessionRow.digest == digest)
    )
    with database.across_tenants() as session:
        found = session.execute(query).first()
    if found is None or _over(found[0], now):
        return None
    row, operator = found
    if now - row.seen_at >= _NOTED_EVERY:
        with database.writing() as session:
            noted = update(OperatorSessionRow).where(OperatorSessionRow.digest == digest)
            session.execute(noted.values(seen_at=now))
    csrf = hmac.new(secret.encode(), b"csrf", "sha256").hexdigest()
    return SignedIn(record_of(Operator, operator), digest[:_ID_LENGTH], digest, csrf)


def _over(row: OperatorSessionRow, now: datetime) -> bool:
    return now - row.seen_at >= IDLE or now - row.created_at >= LONGEST


def digest_of(secret: str) -> str:
    """Return the digest stored for a secret."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
