"""A real server process for all service tests, with a few tenants, and knowledge bases uploaded over HTTP."""

from collections.abc import Callable, Iterator

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from playwright.sync_api import Browser, sync_playwright

from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from settings import Settings
from tenants.access.tokens import issue
from tests.browser.conftest import launched
from tests.service.serving import ARTICLES, Server, environment, in_force, serving
from tests.service.stored import prepared


@pytest.fixture(scope="session")
def provider_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


@pytest.fixture(scope="session")
def simulated_models() -> Iterator[tuple[Simulator, str]]:
    """The model server of the tenant `written`, and its URL."""
    with simulator_thread() as simulator:
        yield simulator


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for a module whose tests are not asynchronous: Playwright keeps an event loop running."""
    with sync_playwright() as playwright:
        browser = launched(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def installation(
    tmp_path_factory: pytest.TempPathFactory, provider_key: RSAPrivateKey, simulated_models: tuple[Simulator, str]
) -> Settings:
    """The data folder of the one server."""
    return prepared(tmp_path_factory.mktemp("service"), provider_key, simulated_models[1])


@pytest.fixture(autouse=True)
def _in_force(installation: Settings) -> Iterator[None]:
    """Apply the installation's settings to this process during a test of this folder."""
    with in_force(installation):
        yield


@pytest.fixture(scope="session")
def server(installation: Settings) -> Iterator[Server]:
    with serving(environment(installation)) as running:
        yield running


@pytest.fixture(scope="session")
def token(installation: Settings) -> Callable[..., str]:
    def make(tenant_id: str = "acme", *scopes: str, subject: str = "anna") -> str:
        return issue(installation, tenant_id, scopes=scopes or ("ask", "ingest"), subject=subject, ttl_seconds=3_600)

    return make


@pytest.fixture(scope="session")
def anybody(server: Server) -> Iterator[httpx.Client]:
    """A client without a token."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def ingest(anybody: httpx.Client, token: Callable[..., str]) -> Callable[..., httpx.Response]:
    def send(tenant_id: str, documents: list[dict[str, object]]) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token(tenant_id, 'ingest')}"}
        return anybody.post("/ingest/run", json={"documents": documents}, headers=headers)

    return send


@pytest.fixture(scope="session")
def acme(server: Server, token: Callable[..., str], ingest: Callable[..., httpx.Response]) -> Iterator[httpx.Client]:
    """A client of the tenant `acme`, whose knowledge base is in place."""
    assert ingest("acme", ARTICLES).status_code == 200
    headers = {"Authorization": f"Bearer {token('acme')}"}
    with httpx.Client(base_url=server.url, timeout=60, headers=headers) as client:
        yield client
