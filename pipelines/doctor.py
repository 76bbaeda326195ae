"""`opora doctor`: whether the settings of an installation fit together, and what stands in front of it.

The threat: behind a reverse proxy that is not set up for it, every limit per address is one for all customers, or one
that each customer chooses for themselves. Neither shows until there is an attack.
"""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

import httpx

from settings import Settings
from tenants import database, keys, sealed
from tenants.errors import CallerError, OporaError

_FORGED = "192.0.2.1"
"""An address of the documentation's (RFC 5737), which no client has."""
_SECONDS = 10.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def findings(settings: Settings) -> Iterator[OporaError]:
    """What is wrong."""
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
    """Ask the service by its public address, saying that the request was forwarded for somebody else."""
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
