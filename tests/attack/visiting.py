"""Visitors of a site of the victim's or the attacker's."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from settings import Settings
from tenants.chats import sites
from tenants.chats.sites import SiteConfig
from tenants.core.context import Tenant, acting_as
from tests.attack.attacking import PATIENCE_SECONDS
from tests.service.serving import Server, in_force

SHOP = "https://shop.example"


def add_site(installation: Settings, tenant_id: str, key: str) -> None:
    """Add a site of a tenant that `SHOP` may show."""
    with in_force(installation), acting_as(Tenant(tenant_id, "admin")):
        sites.add(key, [SHOP], SiteConfig(), key=key)


@contextmanager
def visitor_of(server: Server, key: str, address: str = "127.0.0.1") -> Iterator[httpx.Client]:
    """Return a client of a new visitor of a site, from a loopback address."""
    transport = httpx.HTTPTransport(local_address=address, limits=httpx.Limits(max_connections=None))
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, transport=transport) as client:
        session = client.post("/widget/sessions", json={"site": key}, headers={"Origin": SHOP})
        client.headers["Authorization"] = f"Bearer {session.raise_for_status().json()['token']}"
        yield client
