"""One real server process for all service tests, with a few tenants, and knowledge bases sent to it over HTTP."""

import json
from collections.abc import Callable, Iterator

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jwt.algorithms import RSAAlgorithm

from evaluation.simulator.adapted import adapt
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from settings import Settings
from tenants import database, policy
from tenants.audit import store
from tenants.context import Tenant, acting_as
from tenants.registry import Registry
from tenants.tokens import issue
from tests.service.serving import (
    ARTICLES,
    RSA_KID,
    TENANTS,
    Server,
    dead_delivery,
    environment,
    finished_job,
    in_force,
    kept_tool,
    recorded,
    serving,
    stored_article,
    stored_chat,
    stored_file,
    stored_operator,
    stored_settings,
)

POLICIES: dict[str, dict[str, object]] = {
    "hurried": {"rate_limit_per_minute": 3},
    "written": {"profile": "ollama"},
}


@pytest.fixture(scope="session")
def provider_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


@pytest.fixture(scope="session")
def simulated_models() -> Iterator[tuple[Simulator, str]]:
    """The model server of the tenant `written`, and its URL."""
    with simulator_thread() as simulator:
        yield simulator


@pytest.fixture(scope="session")
def installation(
    tmp_path_factory: pytest.TempPathFactory, provider_key: RSAPrivateKey, simulated_models: tuple[Simulator, str]
) -> Settings:
    """A data folder with registered tenants, before any server runs on it."""
    folder = tmp_path_factory.mktemp("service")
    pipelines = adapt(folder / "pipelines", simulated_models[1])
    jwks = folder / "jwks.json"
    public = json.loads(RSAAlgorithm.to_jwk(provider_key.public_key()))
    jwks.write_text(json.dumps({"keys": [{**public, "kid": RSA_KID, "alg": "RS256", "use": "sig"}]}))
    settings = Settings(
        data_dir=folder,
        pipelines_dir=pipelines,
        token_jwks_file=jwks,
        rate_limit_per_minute=0,
        rate_limit_per_day=0,
        default_locale="ru",
        chat_messages_per_minute=0,
        visitor_sessions_per_minute=0,
    )
    registry = Registry(settings)
    for tenant_id, locale in TENANTS.items():
        registry.add(tenant_id, locale=locale)
    with in_force(settings):
        for tenant_id, fields in POLICIES.items():
            with acting_as(Tenant(tenant_id, "admin")):
                policy.change(**fields)
        for tenant_id in ("acme", "globex"):
            store.append([recorded(tenant_id)], settings)
            with database.writing(settings) as session:
                session.add(finished_job(tenant_id))
                session.add(kept_tool(tenant_id))
                session.add(stored_chat(tenant_id))
                session.flush()
                session.add(stored_file(tenant_id))
                session.add(stored_operator(tenant_id))
                session.add_all([stored_article(tenant_id), stored_article(tenant_id, "spare")])
                session.add_all(stored_settings(tenant_id))
                session.flush()
                session.add(dead_delivery(tenant_id))
    return settings


@pytest.fixture(autouse=True)
def _in_force(installation: Settings) -> Iterator[None]:
    """The installation's settings are this process's too, for as long as a test of this folder runs."""
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
