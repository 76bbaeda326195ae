"""`opora doctor`: checks of the settings and of the reverse proxy.

Threat: behind a misconfigured proxy, all customers share one limit per address, or each client chooses its own address.
Neither is visible until an attack.
"""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

import httpx

from settings import Settings
from tenants.access import keys
from tenants.core.errors import CallerError, OporaError
from tenants.storage import database, sealed

_FORGED = "192.0.2.1"
"""An address reserved for documentation (RFC 5737)."""
_SECONDS = 10.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def findings(settings: Settings) -> Iterator[OporaError]:
    """Yield the errors of this installation."""
    for check in (keys.given_keys, sealed.check_given, database.check):
        try:
            check(settings)
        except OporaError as error:
            yield error
    if settings.public_url:
        yield from _in_front(settings)
    elif settings.trusted_proxies or settings.host not in _LOOPBACK:
        yield CallerError("public_url_missing")


def _in_front(settings: Settings) -> Iterator[OporaError]:
    """Send a request with a forged `X-Forwarded-For` to the public address, and check how the service sees it."""
    try:
        answer = httpx.get(
            f"{settings.public_url.rstrip('/')}/seen", headers={"X-Forwarded-For": _FORGED}, timeout=_SECONDS
        ).raise_for_status()
        seen: dict[str, str] = answer.json()
        address = ip_address(seen["address"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        yield CallerError("public_url_unreachable")
        return
    proxies = [ip_network(one) for one in filter(None, settings.trusted_proxies.split(","))]
    if str(address) == _FORGED:
        yield CallerError("address_forged")
    elif any(address in network for network in proxies):
        yield CallerError("address_not_forwarded")
    if seen.get("scheme") != httpx.URL(settings.public_url).scheme:
        yield CallerError("scheme_not_forwarded" if proxies else "proxies_not_trusted")
