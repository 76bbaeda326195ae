"""A wrong token ends in 401 with a stable code, in front of every closed route.

`tests/unit/tenants/access/test_tokens.py` has the ways in which a token can be wrong.
"""

from collections.abc import Callable
from time import time

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from settings import Settings
from tests.service.route_cases import SCOPED
from tests.service.serving import ALL_SCOPES, RSA_KID, problem
from tests.service.test_routes import named


@pytest.fixture
def claims(installation: Settings) -> dict[str, object]:
    return {
        "iss": installation.token_issuer,
        "aud": installation.token_audience,
        "sub": "anna",
        "tenant": "acme",
        "scope": " ".join(ALL_SCOPES),
        "jti": "of-the-provider",
        "iat": int(time()),
        "exp": int(time()) + 600,
    }


def refuse(client: httpx.Client, raw: str, code: str, subtests: pytest.Subtests) -> None:
    """Send a token to every closed route, none where it is empty."""
    headers = {"Authorization": f"Bearer {raw}"} if raw else {}
    for route, case in SCOPED.items():
        with subtests.test(route=route):
            response = client.request(route[0], named(route[1], case.own), json=case.body, headers=headers)
            problem(response, 401, code)
            assert response.headers["www-authenticate"].startswith("Bearer")


def test_a_providers_token_is_good(acme: httpx.Client, claims: dict[str, object], provider_key: RSAPrivateKey) -> None:
    raw = jwt.encode(claims, provider_key, "RS256", headers={"kid": RSA_KID})
    response = acme.post("/ask/run", json={"question": "Что значит E20?"}, headers={"Authorization": f"Bearer {raw}"})
    assert response.status_code == 200


def test_no_route_is_opened_without_a_token(anybody: httpx.Client, subtests: pytest.Subtests) -> None:
    refuse(anybody, "", "token_missing", subtests)


def test_a_revoked_token_is_refused_at_every_route(
    anybody: httpx.Client,
    token: Callable[..., str],
    claims: dict[str, object],
    provider_key: RSAPrivateKey,
    subtests: pytest.Subtests,
) -> None:
    stolen = {**claims, "jti": "stolen", "sub": "careless"}
    raw = jwt.encode(stolen, provider_key, "RS256", headers={"kid": RSA_KID})
    admin = {"Authorization": f"Bearer {token('acme', 'admin')}"}
    answer = anybody.post("/tokens/revocations", json={"token": raw}, headers=admin)
    assert (answer.status_code, answer.json().get("value")) == (200, "stolen"), answer.text
    refuse(anybody, raw, "token_revoked", subtests)
    problem(anybody.post("/tokens/revocations", json={"token": token("globex")}, headers=admin), 422, "token_foreign")
    assert anybody.post("/tokens/revocations", json={}, headers=admin).status_code == 422
    listed = anybody.get("/tokens/revocations", headers=admin).json()["revocations"]
    assert ("token", "stolen") in {(one["kind"], one["value"]) for one in listed}
