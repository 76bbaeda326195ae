"""Password hashing: one pool for sign-ins and for changes of passwords.

Threat: an admin, or their token, changes passwords all the time, or a few addresses guess passwords, and so keep
the operators of all tenants from signing in. Few changes of a tenant are accepted at once, and sign-ins take turns with
them and, by network, with each other.
"""

from collections.abc import Callable
from typing import TypeVar

from pipelines.connections import network_of
from pipelines.pools import Pool
from tenants.core import context
from tenants.core.errors import NoTenant

T = TypeVar("T")

_SIGN_INS_OF_ADDRESS, _CHANGES_OF_TENANT = 4, 2
_PATIENCE_SECONDS = 20.0


class Passwords:
    """Runs work that hashes passwords. Belongs to the event loop."""

    def __init__(self) -> None:
        # One password is hashed at a time. The second thread is for another tenant, or for a sign-in.
        self._pool = Pool("passwords", 2, turns=1, patience=_PATIENCE_SECONDS)

    async def sign_in(self, address: str, work: Callable[[], T]) -> T:
        """Run the work of a person who is not signed in yet, when it is the turn of their network. Raises `Busy`."""
        return await self._pool.run({f"address {address}": _SIGN_INS_OF_ADDRESS}, work, sender=network_of(address))

    async def change(self, work: Callable[[], T]) -> T:
        """Run the work of the tenant in context, or of an admin of the installation. Raises `Busy`."""
        try:
            tenant_id = context.current().tenant_id
        except NoTenant:
            tenant_id = ""
        return await self._pool.run({f"tenant {tenant_id}": _CHANGES_OF_TENANT}, work)
