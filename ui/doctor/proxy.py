"""Checks of the running service and of the reverse proxy in front of it.

Threat: behind a misconfigured proxy, all customers share one limit per address, or each client chooses its own address.
Neither is visible until an attack.
"""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

import httpx

from settings import Settings
from tenants.storage import database
from tenants.work import locks, queue_postgres
from ui.doctor.finding import SECONDS, Finding, ok, problem, warning

_FORGED = "192.0.2.1"
"""An address reserved for documentation (RFC 5737)."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared only
_COMMANDS = {
    "address_forged": "nginx: proxy_set_header X-Forwarded-For $remote_addr;",
    "address_not_forwarded": "nginx: proxy_set_header X-Forwarded-For $remote_addr;",
    "scheme_not_forwarded": "nginx: proxy_set_header X-Forwarded-Proto $scheme;",
    "proxies_not_trusted": "export OPORA_TRUSTED_PROXIES=10.0.3.0/24",
    "public_url_unreachable": "opora serve",
}


def check_service(settings: Settings) -> Iterator[Finding]:
    """Check the service of the data folder, or on its port; that it does not run is no problem. Check that a worker
    runs if the service leaves the background work to workers.
    """
    yield _on_port(settings)
    is_external = settings.worker == "external" and database.is_shared(settings)
    if is_external and queue_postgres.lacks_workers(settings, SECONDS):
        yield warning("service", "worker_missing", "opora worker")


def _on_port(settings: Settings) -> Finding:
    running = locks.service_place(settings)
    place = running or settings
    host, port = _EVERYWHERE.get(place.host, place.host), place.port
    address = f"http://{host}:{port}"
    try:
        ready = httpx.get(f"{address}/readyz", timeout=SECONDS, trust_env=False)
        known = "status" in ready.json()
    except httpx.ConnectError:
        if running is None:
            return ok("service", "service_stopped", address=address)
        return warning("service", "service_silent", address=address)
    except (httpx.HTTPError, ValueError, TypeError):
        known = False
    if not known:
        return problem("service", "port_taken", f"opora serve --port {port + 1}", port=port)
    if ready.is_success:
        return ok("service", "service", address=address)
    return warning("service", "service_not_ready", address=address)


def check_proxy(settings: Settings) -> Iterator[Finding]:
    """Check the public address, and how the service sees requests that come through it."""
    if not settings.public_url:
        if settings.trusted_proxies or settings.host not in _LOOPBACK:
            yield warning("proxy", "public_url_missing", "export OPORA_PUBLIC_URL=https://help.example.com")
        else:
            yield ok("proxy", "proxy_none")
        return
    errors = list(_in_front(settings))
    for code in errors:
        yield problem("proxy", code, _COMMANDS[code], url=settings.public_url)
    if not errors:
        yield ok("proxy", "proxy", url=settings.public_url)


def _in_front(settings: Settings) -> Iterator[str]:
    """Send a request with a forged `X-Forwarded-For` to the public address; yield what is wrong with what arrives."""
    try:
        answer = httpx.get(
            f"{settings.public_url.rstrip('/')}/seen", headers={"X-Forwarded-For": _FORGED}, timeout=SECONDS
        ).raise_for_status()
        seen: dict[str, str] = answer.json()
        address = ip_address(seen["address"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        yield "public_url_unreachable"
        return
    proxies = [ip_network(one) for one in filter(None, settings.trusted_proxies.split(","))]
    if str(address) == _FORGED:
        yield "address_forged"
    elif any(address in network for network in proxies):
        yield "address_not_forwarded"
    if seen.get("scheme") != httpx.URL(settings.public_url).scheme:
        yield "scheme_not_forwarded" if proxies else "proxies_not_trusted"
