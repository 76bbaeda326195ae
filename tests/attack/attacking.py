"""Attackers, targets and attacks, and visitors of their sites."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Semaphore
from time import monotonic

import httpx

from evaluation.benchmarks.attacks import SHOP, become_visitor, client_from
from settings import Settings
from tenants.access.tokens import issue
from tenants.chats import sites
from tenants.chats.sites import SiteConfig
from tenants.core.context import Tenant, acting_as
from tests.service.serving import ALL_SCOPES, ARTICLES, Server, in_force

ATTACKER, VICTIM = "mallory", "acme"
PATIENCE_SECONDS = 60
QUESTION = {"question": "Что значит код E20?"}
ZONE = "Asia/Kamchatka"
"""Where the services under attack believe they are, so that a time read in their zone instead of in UTC is noticed."""


@dataclass
class SlowTool:
    """A tool that answers when it is let go, and the secrets that it was sent."""

    url: str = ""
    called: Semaphore = field(default_factory=lambda: Semaphore(0))
    go: Event = field(default_factory=Event)
    secrets: list[str | None] = field(default_factory=list)


@contextmanager
def client_of(server: Server, installation: Settings, tenant_id: str) -> Iterator[httpx.Client]:
    """Return a client of the tenant, whose articles are ingested."""
    token = issue(installation, tenant_id, scopes=ALL_SCOPES, subject="anna", ttl_seconds=3_600)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, headers=headers) as client:
        assert client.post("/ingest/run", json={"documents": ARTICLES}).is_success
        yield client


def is_answered(client: httpx.Client) -> bool:
    """Whether a client gets its answer."""
    return bool(client.post("/ask/run", json=QUESTION).json()["outcome"] == "answered")


@dataclass(frozen=True)
class Attacked:
    """A service with its installation, a client of the attacker and one of the victim."""

    installation: Settings
    attacker: httpx.Client
    victim: httpx.Client


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


def eventually(happens: Callable[[], bool]) -> bool:
    """Whether something happens within `PATIENCE_SECONDS`."""
    deadline = monotonic() + PATIENCE_SECONDS
    while monotonic() < deadline:
        if happens():
            return True
        Event().wait(0.05)
    return False
