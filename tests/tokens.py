"""Helpers for tests of tokens."""

import asyncio

from settings import Settings
from tenants.access import revocations
from tenants.access.tokens import TokenVerifier
from tenants.core.context import acting_as
from tenants.core.errors import Unauthenticated


def refused(raw: str, settings: Settings) -> bool:
    """Whether a token is refused as revoked."""
    caller = TokenVerifier(settings).verify(raw)
    with acting_as(caller):
        try:
            asyncio.run(revocations.check(caller))
        except Unauthenticated as error:
            return error.code == "token_revoked"
    return False
