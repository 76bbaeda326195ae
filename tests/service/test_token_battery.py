"""Every way to come with a wrong token ends in 401 with a stable code, in front of every closed route."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from time import time

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from settings import Settings
from tenants.keys import signing_key
from tests.service.serving import RSA_KID, problem

ROUTES = ("/ask/run", "/ingest/run")


@pytest.fixture
def claims(installation: Settings) -> dict[str, object]:
    return {
        "iss": installation.token_issuer,
        "aud": installation.token_audience,
        "sub": "anna",
        "tenant": "acme",
        "scope": "ask ingest",
        "iat": int(time()),
        "exp": int(time()) + 600,
    }


@pytest.fixture
def sign(installation: Settings) -> Callable[..., str]:
    key = signing_key(installation)

    def make(claims: dict[str, object], **headers: object) -> str:
        assert isinstance(key.material, bytes)
        return jwt.encode(claims, key.material, "HS256", headers={"kid": key.kid, **headers})

    return make


def refuse(client: httpx.Client, raw: str, code: str) -> None:
    for route in ROUTES:
        response = client.post(route, json={"question": "q"}, headers={"Authorization": f"Bearer {raw}"})
        problem(response, 401, code)
        assert response.headers["www-authenticate"].startswith("Bearer")


def forged(header: dict[str, object], claims: dict[str, object], secret: bytes) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims)]
    signature = hmac.new(secret, ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=").decode()])


def test_the_battery_starts_from_a_good_token(
    acme: httpx.Client, claims: dict[str, object], sign: Callable[..., str]
) -> None:
    headers = {"Authorization": f"Bearer {sign(claims)}"}
    assert acme.post("/ask/run", json={"question": "Что значит E20?"}, headers=headers).status_code == 200


def test_a_provider_key_is_good_too(acme: httpx.Client, claims: dict[str, object], provider_key: RSAPrivateKey) -> None:
    raw = jwt.encode(claims, provider_key, "RS256", headers={"kid": RSA_KID})
    response = acme.post("/ask/run", json={"question": "Что значит E20?"}, headers={"Authorization": f"Bearer {raw}"})
    assert response.status_code == 200


@pytest.mark.parametrize("headers", [{}, {"Authorization": ""}, {"Authorization": "Basic YTpi"}])
def test_no_token(anybody: httpx.Client, headers: dict[str, str]) -> None:
    for route in ROUTES:
        problem(anybody.post(route, json={"question": "q"}, headers=headers), 401, "token_missing")


def test_a_wrong_key(anybody: httpx.Client, installation: Settings, claims: dict[str, object]) -> None:
    kid = signing_key(installation).kid
    refuse(anybody, jwt.encode(claims, "x" * 32, "HS256", headers={"kid": kid}), "token_invalid")


def test_no_algorithm(anybody: httpx.Client, installation: Settings, claims: dict[str, object]) -> None:
    kid = signing_key(installation).kid
    refuse(anybody, jwt.encode(claims, "", "none", headers={"kid": kid}), "token_invalid")
    for spelling in ("None", "NONE", "nOnE", ""):
        refuse(anybody, forged({"alg": spelling, "kid": kid, "typ": "JWT"}, claims, b""), "token_invalid")


def test_a_public_key_as_a_secret(
    anybody: httpx.Client, claims: dict[str, object], provider_key: RSAPrivateKey
) -> None:
    public = provider_key.public_key()
    for secret in (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    ):
        refuse(anybody, forged({"alg": "HS256", "kid": RSA_KID, "typ": "JWT"}, claims, secret), "token_invalid")


def test_our_secret_under_another_algorithm(
    anybody: httpx.Client, installation: Settings, claims: dict[str, object]
) -> None:
    key = signing_key(installation)
    assert isinstance(key.material, bytes)
    for algorithm in ("HS512", "HS384"):
        raw = jwt.encode(claims, key.material.ljust(64, b"\0"), algorithm, headers={"kid": key.kid})
        refuse(anybody, raw, "token_invalid")


@pytest.mark.parametrize(
    "kid",
    [
        "unknown",
        "",
        "../../etc/passwd",
        "' OR 1=1 --",
        "http://127.0.0.1/key",
        "\x00",
        "k" * 5_000,
        "ключ",
        7,
        None,
        {},
    ],
)
def test_an_unknown_or_hostile_key_id(
    anybody: httpx.Client, installation: Settings, claims: dict[str, object], kid: object
) -> None:
    key = signing_key(installation)
    assert isinstance(key.material, bytes)
    refuse(anybody, forged({"alg": "HS256", "typ": "JWT", "kid": kid}, claims, key.material), "token_invalid")


@pytest.mark.parametrize("field", ["iss", "aud", "sub", "tenant", "exp"])
def test_a_missing_claim(
    anybody: httpx.Client, claims: dict[str, object], sign: Callable[..., str], field: str
) -> None:
    refuse(anybody, sign({name: value for name, value in claims.items() if name != field}), "token_invalid")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("aud", "somebody-else"),
        ("iss", "somebody-else"),
        ("tenant", ""),
        ("tenant", "a\nb"),
        ("tenant", "x" * 256),
        ("sub", ""),
        ("nbf", 4_000_000_000),
        ("iat", 4_000_000_000),
    ],
)
def test_a_wrong_claim(
    anybody: httpx.Client, claims: dict[str, object], sign: Callable[..., str], field: str, value: object
) -> None:
    refuse(anybody, sign({**claims, field: value}), "token_invalid")


def test_an_expired_token(anybody: httpx.Client, claims: dict[str, object], sign: Callable[..., str]) -> None:
    refuse(anybody, sign({**claims, "exp": int(time()) - 61}), "token_expired")


def test_a_minute_of_clock_skew_is_accepted(
    acme: httpx.Client, claims: dict[str, object], sign: Callable[..., str]
) -> None:
    headers = {"Authorization": f"Bearer {sign({**claims, 'exp': int(time()) - 30})}"}
    assert acme.post("/ask/run", json={"question": "Что значит E20?"}, headers=headers).status_code == 200


def test_a_huge_token(anybody: httpx.Client, claims: dict[str, object], sign: Callable[..., str]) -> None:
    refuse(anybody, sign({**claims, "more": "x" * 8_192}), "token_too_large")


@pytest.mark.parametrize("raw", ["x", "a.b.c", "..", "eyJ.eyJ.", "%00", "a b", "я".encode().decode("latin-1")])
def test_malformed_tokens_are_refused(anybody: httpx.Client, raw: str) -> None:
    for route in ROUTES:
        headers = {b"Authorization": f"Bearer {raw}".encode("latin-1")}
        problem(anybody.post(route, json={"question": "q"}, headers=headers), 401, "token_invalid")


def test_a_revoked_token_is_refused_at_every_route(
    anybody: httpx.Client, token: Callable[..., str], claims: dict[str, object], sign: Callable[..., str]
) -> None:
    raw = sign({**claims, "jti": "stolen", "sub": "careless"})
    admin = {"Authorization": f"Bearer {token('acme', 'admin')}"}
    answer = anybody.post("/tokens/revocations", json={"token": raw}, headers=admin)
    assert (answer.status_code, answer.json().get("value")) == (200, "stolen"), answer.text
    refuse(anybody, raw, "token_revoked")
    problem(anybody.post("/tokens/revocations", json={"token": token("globex")}, headers=admin), 422, "token_foreign")
    assert anybody.post("/tokens/revocations", json={}, headers=admin).status_code == 422
    listed = anybody.get("/tokens/revocations", headers=admin).json()["revocations"]
    assert ("token", "stolen") in {(one["kind"], one["value"]) for one in listed}
