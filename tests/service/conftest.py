"""One real server process for all service tests, with a few tenants, and knowledge bases sent to it over HTTP."""

import json
from collections.abc import Callable, Iterator

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jwt.algorithms import RSAAlgorithm

from settings import Settings, get_settings
from tenants import database, policy
from tenants.context import Tenant, acting_as
from tenants.registry import Registry
from tenants.tokens import issue
from tests.service.serving import ARTICLES, RSA_KID, TENANTS, Server


@pytest.fixture(scope="session")
def provider_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory, provider_key: RSAPrivateKey) -> Iterator[Settings]:
    """A data folder with registered tenants, before any server runs on it."""
    folder = tmp_path_factory.mktemp("service")
    jwks = folder / "jwks.json"
    public = json.loads(RSAAlgorithm.to_jwk(provider_key.public_key()))
    jwks.write_text(json.dumps({"keys": [{**public, "kid": RSA_KID, "alg": "RS256", "use": "sig"}]}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPORA_DATA_DIR", str(folder))
        patch.setenv("OPORA_TOKEN_JWKS_FILE", str(jwks))
        patch.setenv("OPORA_RATE_LIMIT_PER_MINUTE", "0")
        patch.setenv("OPORA_RATE_LIMIT_PER_DAY", "0")
        get_settings.cache_clear()
        settings = get_settings()
        for tenant_id, locale in TENANTS.items():
            Registry(settings).add(tenant_id, locale=locale)
        with acting_as(Tenant("hurried", "setup")):
            policy.change(rate_limit_per_minute=3)
        yield settings
        database.close_all()
        get_settings.cache_clear()


@pytest.fixture(scope="session")
def server(installation: Settings) -> Iterator[Server]:
    running = Server({})
    try:
        running.wait_until_up()
        yield running
    finally:
        running.stop()


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
