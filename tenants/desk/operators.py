"""Operators: users of the desk with their roles and passwords.

Threats: a stolen database (argon2id, RFC 9106's second choice of parameters), guessing (an unknown login takes the same
time; the sign-in page limits attempts), a common password (at least ten characters, and not like the login), a password
too long to hash cheaply (200 characters), and many sign-ins at once (64 MB each: hashed one at a time with low
priority).
"""

import os
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import get_native_id
from typing import Literal, TypeAlias, TypeVar, get_args

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY
from sqlalchemy import select

from tenants.accounts import settings_history
from tenants.core import context
from tenants.core.context import Scope, Tenant
from tenants.core.errors import Clash, Invalid, NotFound, Unauthenticated
from tenants.desk.tables import OperatorRow, OperatorSessionRow
from tenants.storage import database
from tenants.storage.mapping import record_of, records
from tenants.storage.tenant_session import TenantSession

T = TypeVar("T")
TenantRole: TypeAlias = Literal["operator", "editor", "admin"]
Role: TypeAlias = TenantRole | Literal["installation"]
TENANT_ROLES: tuple[TenantRole, ...] = get_args(TenantRole)
"""From the least to the most privileged."""
SCOPES_OF: Mapping[Role, frozenset[Scope]] = {
    "operator": frozenset({"operate"}),
    "editor": frozenset({"operate", "ingest"}),
    "admin": frozenset({"operate", "ingest", "admin"}),
    "installation": frozenset(),
}
"""Scopes of each role. An admin of the installation has no tenant, and so no access to tenant data."""

MIN_PASSWORD, MAX_PASSWORD = 10, 200
_LOGIN = re.compile(r"[\w.@+-]{2,100}")
_HASHER = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
_NICENESS = 10
_NOBODYS = "$argon2id$v=19$m=65536,t=3,p=4$b3BvcmEtb3BvcmEtb3BvcmE$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
"""A hash that matches no password."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A user of the desk. Admins of the installation have no `tenant_id`. `name` is shown to customers.

    `password_digest` tells whether the password has changed since this was read.
    """

    operator_id: str
    login: str
    tenant_id: str | None
    role: Role
    name: str
    created_at: datetime
    password_digest: str = field(repr=False, compare=False)

    def acting(self) -> Tenant | None:
        """Return the caller for this user; None without a tenant."""
        if self.tenant_id is None:
            return None
        return Tenant(self.tenant_id, self.login, frozenset(SCOPES_OF[self.role]))


def add(login: str, password: str, *, role: Role, name: str = "") -> Operator:
    """Add an operator of the tenant in context.

    :raises Invalid: `login_invalid`, `login_taken`, `password_short`, `password_weak`, `role_unknown`.
    """
    return _add(_writing(installation=False), login, password, checked_role(role), name)


def add_installation_admin(login: str, password: str, *, name: str = "") -> Operator:
    """Add an admin of the installation. Only for the command line and the first run."""
    return _add(_writing(installation=True), login, password, "installation", name)


def checked_role(role: str) -> Role:
    """Return a role that a tenant's operator may have. Raises `Invalid`: `role_unknown`."""
    known = next((one for one in TENANT_ROLES if one == role), None)
    if known is None:
        raise Invalid("role_unknown", role=role, roles=", ".join(TENANT_ROLES))
    return known


def check_new(login: str, password: str) -> None:
    """Raise `Invalid` for a login or a password that no operator may have."""
    login = normal_login(login)
    if not _LOGIN.fullmatch(login):
        raise Invalid("login_invalid")
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise Invalid("password_short", least=MIN_PASSWORD, most=MAX_PASSWORD)
    if login in password.casefold() or len(set(password)) < 4:
        raise Invalid("password_weak")


def all() -> tuple[Operator, ...]:
    """Return the operators of the tenant in context, by login."""
    return records(Operator, select(OperatorRow).order_by(OperatorRow.login))


def installation_admins() -> tuple[Operator, ...]:
    """Return the admins of the installation, by login."""
    query = select(OperatorRow).where(OperatorRow.tenant_id.is_(None)).order_by(OperatorRow.login)
    with database.across_tenants() as session:
        return tuple(record_of(Operator, row) for row in session.scalars(query))


def anybody() -> bool:
    """Whether any user can sign in to this installation."""
    with database.across_tenants() as session:
        return session.scalar(select(OperatorRow.login).limit(1)) is not None


def get(login: str) -> Operator:
    """Return an operator of the tenant in context. Raises `NotFound`: `operator_unknown`."""
    with database.reading() as session:
        return record_of(Operator, _existing(session, login))


def admit(login: str, *, role: Role | None, default_role: Role | None, name: str) -> Operator:
    """Return the operator that an identity provider vouches for, in the tenant in context; add them if needed.

    The tenant's only admin stays one, whatever the provider says.

    :param role: the role according to the provider; None if it gives none.
    :param default_role: the role of a new operator; None refuses people who were not added before.
    :raises Invalid: `login_invalid`, `login_taken` (by the same person at the same moment), `operator_unknown`.
    """
    login = normal_login(login)
    if not _LOGIN.fullmatch(login):
        raise Invalid("login_invalid")
    with Invalid("login_taken").instead_of(Clash), database.writing() as session:
        session.lock_tenant()
        row = session.scalar(select(OperatorRow).where(OperatorRow.login == login).with_for_update(key_share=True))
        if row is None:
            if default_role is None:
                raise Invalid("operator_unknown")
            row = OperatorRow(
                login=login,
                role=role or default_role,
                name=_display_name(name, login),
                password="",
                created_at=datetime.now(UTC),
            )
            session.add(row)
            session.flush()  # gives the operator an id
            settings_history.note(session, "person", "added", login, after={"role": row.role, "name": row.name})
        elif role is not None and role != row.role and not _is_last_admin(session, row):
            settings_history.note(session, "person", "changed", login, {"role": row.role}, {"role": role})
            row.role = role
        return record_of(Operator, row)


def change(login: str, *, role: str | None = None, name: str | None = None) -> Operator:
    """Change the role or name of an operator of the tenant in context; their open sessions follow at once.

    :raises Invalid: `role_unknown`, `operator_oneself`: admins cannot change their own role; `operator_last_admin`.
    :raises NotFound: `operator_unknown`.
    """
    caller = context.current()
    with database.writing() as session:
        session.lock_tenant()
        row = _existing(session, login)
        before = {"role": row.role, "name": row.name}
        if role is not None and checked_role(role) != row.role:
            if row.login == caller.subject:
                raise Invalid("operator_oneself")
            _check_not_last(session, row)
            row.role = role
        if name is not None:
            row.name = _display_name(name, row.login)
        settings_history.note(session, "person", "changed", row.login, before, {"role": row.role, "name": row.name})
        return record_of(Operator, row)


def remove(login: str, *, installation: bool = False, even_last: bool = False) -> None:
    """Remove an operator of the tenant in context, or an admin of the installation, who is signed out at once.

    :param even_last: remove the tenant's only admin, too. For the owner of the data folder, who can add another.
    :raises Invalid: `operator_last_admin`.
    :raises NotFound: `operator_unknown`.
    """
    with _writing(installation=installation) as session:
        if not installation:
            session.lock_tenant()
        row = _existing(session, login)
        if not (installation or even_last):
            _check_not_last(session, row)
        session.delete(row)
        if not installation:
            settings_history.note(session, "person", "removed", row.login, {"role": row.role, "name": row.name})


def set_password(
    login: str, password: str, *, installation: bool = False, verified: Operator | None = None
) -> Operator:
    """Set the password of an operator of the tenant in context, or of an admin of the installation, which ends all of
    their sessions. Raises `NotFound`, and `Invalid` as `add`.

    :param verified: the operator whose old password was checked. Raises `Unauthenticated`, `sign_in_failed`, if another
        one has been set since.
    """
    login = normal_login(login)
    with _writing(installation=installation) as session:
        _existing(session, login)
    check_new(login, password)
    hashed = _hash(password)
    with _writing(installation=installation) as session:
        row = _existing(session, login, lock=True)
        if verified is not None and row.password_digest != verified.password_digest:
            raise Unauthenticated("sign_in_failed")
        row.password = hashed
        session.remove(OperatorSessionRow, OperatorSessionRow.operator_id == row.operator_id)
        if not installation:
            settings_history.note(session, "person", "rotated", login)
        return record_of(Operator, row)


def authenticate(login: str, password: str, company: str = "") -> Operator:
    """Return the operator with this login and password. An unknown login takes the same time.

    :param company: the tenant. If empty: the only tenant with operators, or the installation.
    :raises Unauthenticated: `sign_in_failed`, whatever the reason.
    """
    login, matching = normal_login(login), None
    # The places to look in do not depend on the login, so neither does the number of passwords to hash.
    for tenant_id in _places(company):
        row = _find(login, tenant_id)
        if _verify((row.password if row is not None else "") or _NOBODYS, password):
            matching = matching or row
    if matching is None:
        raise Unauthenticated("sign_in_failed")
    return record_of(Operator, matching)


def place_of(company: str) -> str:
    """Return the tenant that `authenticate` looks in first; empty for the installation."""
    return _places(company)[0] or ""


def check_password(operator: Operator, password: str) -> Operator:
    """Return the operator again. Raises `Unauthenticated`, `sign_in_failed`, unless this is their password."""
    row = _find(operator.login, operator.tenant_id)
    if not _verify((row.password if row is not None else "") or _NOBODYS, password) or row is None:
        raise Unauthenticated("sign_in_failed")
    return record_of(Operator, row)


def has_several_tenants() -> bool:
    """Return whether operators of several tenants sign in here, and so have to name theirs."""
    return len(_staffed() - {None}) > 1


def normal_login(login: str) -> str:
    """Normalise a login, so that different spellings of one name are the same login."""
    return unicodedata.normalize("NFKC", login).strip().casefold()


def _staffed() -> set[str | None]:
    """Return up to three tenants with operators; None for the installation."""
    with database.across_tenants() as session:
        return set(session.scalars(select(OperatorRow.tenant_id).distinct().limit(3)))


def _places(company: str) -> Sequence[str | None]:
    """Return the tenants, or None for the installation, in which an account may be."""
    if company:
        return (company,)
    staffed = _staffed()
    if not staffed or len(staffed - {None}) > 1:
        return (None,)
    return sorted(staffed, key=lambda tenant_id: tenant_id is None)


def _find(login: str, tenant_id: str | None) -> OperatorRow | None:
    if not _LOGIN.fullmatch(login) or "\0" in (tenant_id or ""):
        return None
    query = select(OperatorRow).where(OperatorRow.login == login, OperatorRow.tenant_id == tenant_id)
    with database.across_tenants() as session:
        return session.scalar(query)


def _add(opening: AbstractContextManager[TenantSession], login: str, password: str, role: Role, name: str) -> Operator:
    login = normal_login(login)
    check_new(login, password)
    row = OperatorRow(
        login=login,
        role=role,
        name=_display_name(name, login),
        password=_hash(password),
        created_at=datetime.now(UTC),
    )
    with Invalid("login_taken").instead_of(Clash), opening as session:
        session.add(row)
        if not session.across:
            settings_history.note(session, "person", "added", login, after={"role": role, "name": row.name})
    return record_of(Operator, row)


def _writing(*, installation: bool) -> AbstractContextManager[TenantSession]:
    return database.across_tenants(write=True) if installation else database.writing()


def _existing(session: TenantSession, login: str, *, lock: bool = False) -> OperatorRow:
    """Return an operator of the tenant, or an admin of the installation if the session is of all tenants."""
    query = select(OperatorRow).where(OperatorRow.login == normal_login(login))
    if lock:
        query = query.with_for_update(key_share=True)
    row = session.scalar(query.where(OperatorRow.tenant_id.is_(None)) if session.across else query)
    if row is None:
        raise NotFound("operator_unknown")
    return row


def _check_not_last(session: TenantSession, row: OperatorRow) -> None:
    """Raise `Invalid`, `operator_last_admin`, for the only admin of a tenant."""
    if _is_last_admin(session, row):
        raise Invalid("operator_last_admin")


def _is_last_admin(session: TenantSession, row: OperatorRow) -> bool:
    """Return whether this is the only admin of the tenant.

    The tenant must be locked: two admins may demote each other at the same moment.
    """
    others = select(OperatorRow.login).where(OperatorRow.role == "admin", OperatorRow.login != row.login)
    return row.role == "admin" and session.scalar(others.limit(1)) is None


def _display_name(name: str, login: str) -> str:
    return " ".join(name.split())[:100] or login.partition("@")[0]


def _hash(password: str) -> str:
    return _hashed(lambda: _HASHER.hash(_normal(password)))


def _verify(hashed: str, password: str) -> bool:
    def matches() -> bool:
        try:
            return _HASHER.verify(hashed, _normal(password[:MAX_PASSWORD]))
        except (VerificationError, InvalidHashError):
            return False

    return _hashed(matches)


def _hashed(work: Callable[[], T]) -> T:
    """Hash in a thread of low priority, one at a time. Requests come from the pool of `ui.passwords`."""
    return _HASHING.submit(work).result()


def _give_way() -> None:
    """Lower the priority of this thread. Threads of Argon2 inherit it."""
    os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)


_HASHING = ThreadPoolExecutor(1, "passwords", _give_way)


def _normal(password: str) -> str:
    """Normalise a password, so that the keyboard does not matter (RFC 8265)."""
    return unicodedata.normalize("NFC", password)
