"""The caller: set once at the gate from a verified token, read everywhere below it, and set nowhere else.

Threat: a request that names its own tenant. Nothing under `tenants/` takes a tenant id from a request; stored data is
reached through `current()` alone, and asking without a tenant raises.
"""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, TypeAlias, get_args

from tenants.core.errors import NoTenant, trail
from tenants.core.scoped import scoped

log = logging.getLogger("opora.background")

Scope: TypeAlias = Literal["ask", "ingest", "operate", "admin", "visit"]
SCOPES: frozenset[str] = frozenset(get_args(Scope))
"""Every scope a token can carry. There is no implication between them: `admin` alone cannot ask."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """The tenant of this call, the person or system inside it (`subject`), and its scopes.

    `site` is the key of a visitor's website, and `sender` the name under which a visitor takes turns with others of the
    tenant; both are empty for all other callers. A new visitor costs nothing, so the sender of those who have not
    signed in is their address. `token_id` and `issued_at` (epoch seconds,
    0 if unknown) identify the caller's token for `tenants.access.revocations`.
    """

    tenant_id: str
    subject: str
    scopes: frozenset[str] = frozenset()
    site: str = ""
    sender: str = field(default="", compare=False)
    token_id: str = field(default="", compare=False)
    issued_at: float = field(default=0.0, compare=False)

    def key(self, *parts: str) -> str:
        """Return a key that no other tenant, subject or list of parts produces: for caches, sessions, jobs and files.

        Lengths are hashed too, so that `("a", "bc")` and `("ab", "c")` differ. 32 hexadecimal characters.
        """
        digest = sha256()
        for part in (self.tenant_id, self.subject, *parts):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
        return digest.hexdigest()[:32]


COMMAND_LINE = "cli"
"""Subject of the commands, and of tokens that are made without one."""
_CURRENT: ContextVar[Tenant | None] = ContextVar("opora_tenant", default=None)


def current() -> Tenant:
    """Return the tenant of this call. Raises `NoTenant` outside `acting_as`."""
    tenant = _CURRENT.get()
    if tenant is None:
        raise NoTenant
    return tenant


def tenant_id() -> str | None:
    """Return the id of the tenant of this call; None outside `acting_as`."""
    tenant = _CURRENT.get()
    return tenant.tenant_id if tenant is not None else None


def holder() -> tuple[str, str]:
    """Return the tenant and the visitor that a shared resource is taken for: empty for other callers and for none."""
    tenant = _CURRENT.get()
    return (tenant.tenant_id, tenant.subject if tenant.site else "") if tenant is not None else ("", "")


def acting_as(tenant: Tenant) -> AbstractContextManager[Tenant]:
    """Run the block for `tenant`; the tenant before it is restored afterwards.

    A new thread starts without a tenant: run it in `contextvars.copy_context()` where it works for the same caller.
    """
    return scoped(_CURRENT, tenant)


@contextmanager
def working_for(tenant_id: str, subject: str) -> Iterator[None]:
    """Run a block of background work for a tenant. A failure is logged, because the work for the others goes on."""
    try:
        with acting_as(Tenant(tenant_id, subject)):
            yield
    except Exception as error:
        log.error("%s of %r: %s", subject, tenant_id, trail(error))
