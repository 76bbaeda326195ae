"""Visitors of a site of the victim's or the attacker's."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from evaluation.benchmarks.attacks import SHOP, become_visitor, client_from
from settings import Settings
from tenants.chats import sites
from tenants.chats.sites import SiteConfig
from tenants.core.context import Tenant, acting_as
from tests.service.serving import Server, in_force


def add_site(installation: Settings, tenant_id: str, key: str) -> None:
    """Add a site of a tenant that `SHOP` may show."""
    with in_force(installation), acting_as(Tenant(tenant_id, "admin")):
        sites.add(key, [SHOP], SiteConfig(), key=key)


@contextmanager
def visitor_of(server: Server, key: str, address: str = "127.0.0.1") -> Iterator[httpx.Client]:
    """Return a client of a new visitor of a site, from a loopback address."""
    with client_from(server.url, address) as client:
        become_visitor(client, key)
        yield client
