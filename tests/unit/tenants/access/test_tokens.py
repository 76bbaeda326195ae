"""Requirements on a token. Any other token is refused with one of four codes."""

import base64
import hashlib
import hmac
import json
from pathlib import Path
from time import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr

from settings import Settings
from tenants.access.keys import RELOAD_SECONDS, own_keys_file, read_jwks, rotate, signing_key
from tenants.access.tokens import MAX_TOKEN_BYTES, REMEMBERED_SECONDS, TokenVerifier, issue
from tenants.core.context import Tenant
from tenants.core.errors import CallerError, InternalFault, Invalid, Unauthenticated
from tests.clocks import Clock

RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    jwks = tmp_path / "jwks.json"
    jwks.write_text(json.dumps({"keys": [public(RSA_KEY, kid="rsa"), public(EC_KEY, kid="ec")]}))
    return Settings.model_validate({"data_dir": tmp_path, "token_jwks_file": jwks})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def verifier(settings: Settings, clock: Clock) -> TokenVerifier:
    return TokenVerifier(settings, clock)


def public(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, **more: str) -> dict[str, object]:
    if isinstance(key, rsa.RSAPrivateKey):
        shown = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        shown = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    # Some versions list `key_ops`, which PyJWK does not need.
    return {name: value for name, value in shown.items() if name != "key_ops"} | {"use": "sig", **more}


def claims(**changed: object) -> dict[str, object]:
    now = int(time())
    return {
        "iss": "opora",
        "aud": "opora",
        "sub": "anna",
        "tenant": "acme",
        "scope": "ask",
        "iat": now,
        "exp": now + 60,
    } | changed


def signed(settings: Settings, body: dict[str, object], **header: object) -> str:
    key = signing_key(settings)
    assert isinstance(key.material, bytes)
    return forged({"alg": "HS256", "typ": "JWT", "kid": key.kid} | header, body, key.material)


def forged(header: dict[str, object], body: object, secret: bytes) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, body)]
    signature = hmac.new(secret, ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=").decode()])


def refusal(verifier: TokenVerifier, raw: str) -> str:
    with pytest.raises(Unauthenticated) as refused:
        verifier.verify(raw)
    assert refused.value.status == 401
    assert not refused.value.params
    return refused.value.code


def test_an_issued_token_speaks_for_its_tenant(settings: Settings, verifier: TokenVerifier) -> None:
    raw = issue(settings, "ёлка", scopes=["ingest", "ask"], subject="Анна", ttl_seconds=60)
    assert verifier.verify(raw) == Tenant("ёлка", "Анна", frozenset({"ask", "ingest"}))


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(RSA_KEY, "RS256", "rsa"), (EC_KEY, "ES256", "ec")])
def test_a_providers_token_speaks_for_its_tenant(
    verifier: TokenVerifier, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, algorithm: str, kid: str
) -> None:
    raw = jwt.encode(claims(scope="ask superuser"), key, algorithm, headers={"kid": kid})
    assert verifier.verify(raw) == Tenant("acme", "anna", frozenset({"ask"}))


def test_a_missing_and_a_huge_token(verifier: TokenVerifier) -> None:
    assert refusal(verifier, "") == "token_missing"
    assert refusal(verifier, "x" * (MAX_TOKEN_BYTES + 1)) == "token_too_large"
    assert refusal(verifier, "x" * MAX_TOKEN_BYTES) == "token_invalid"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", "HS384", "HS512", "RS256", "ES256", 5, None])
def test_a_token_does_not_choose_its_algorithm(settings: Settings, verifier: TokenVerifier, algorithm: object) -> None:
    assert refusal(verifier, signed(settings, claims(), alg=algorithm)) == "token_invalid"


def test_an_unsigned_token(settings: Settings, verifier: TokenVerifier) -> None:
    header, body, _ = signed(settings, claims(), alg="none").split(".")
    assert refusal(verifier, f"{header}.{body}.") == "token_invalid"
    own = {"kid": signing_key(settings).kid}
    assert refusal(verifier, forged({"alg": "none", **own}, claims(), b"")) == "token_invalid"
    assert refusal(verifier, forged({"alg": "HS256", **own}, claims(), b"")) == "token_invalid"


def test_another_secret_or_algorithm_under_our_key_id(settings: Settings, verifier: TokenVerifier) -> None:
    key = signing_key(settings)
    assert isinstance(key.material, bytes)
    assert refusal(verifier, jwt.encode(claims(), b"x" * 32, "HS256", headers={"kid": key.kid})) == "token_invalid"
    for algorithm in ("HS384", "HS512"):
        raw = jwt.encode(claims(), key.material.ljust(64, b"\0"), algorithm, headers={"kid": key.kid})
        assert refusal(verifier, raw) == "token_invalid"


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
def test_a_public_key_is_no_secret(verifier: TokenVerifier, encoding: Encoding) -> None:
    secret = RSA_KEY.public_key().public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
    assert refusal(verifier, forged({"alg": "HS256", "kid": "rsa"}, claims(), secret)) == "token_invalid"


def test_one_providers_key_does_not_check_anothers_algorithm(verifier: TokenVerifier) -> None:
    assert refusal(verifier, jwt.encode(claims(), RSA_KEY, "RS256", headers={"kid": "ec"})) == "token_invalid"
    assert refusal(verifier, jwt.encode(claims(), RSA_KEY, "PS256", headers={"kid": "rsa"})) == "token_invalid"


@pytest.mark.parametrize(
    "kid",
    [
        "",
        "nobody",
        "http://127.0.0.1/key",
        "\0",
        "../../tokens.json",
        "a\0b",
        "' OR 1=1 --",
        "ключ",
        "k" * 5_000,
        None,
        1,
        ["rsa"],
        {"a": 1},
    ],
)
def test_a_hostile_key_id(settings: Settings, verifier: TokenVerifier, kid: object) -> None:
    assert refusal(verifier, signed(settings, claims(), kid=kid)) == "token_invalid"


def test_a_token_without_key_id(settings: Settings, verifier: TokenVerifier) -> None:
    key = signing_key(settings)
    assert isinstance(key.material, bytes)
    assert refusal(verifier, forged({"alg": "HS256"}, claims(), key.material)) == "token_invalid"


@pytest.mark.parametrize("claim", ["exp", "aud", "iss", "sub", "tenant"])
def test_every_required_claim(settings: Settings, verifier: TokenVerifier, claim: str) -> None:
    body = {name: value for name, value in claims().items() if name != claim}
    assert refusal(verifier, signed(settings, body)) == "token_invalid"
    assert refusal(verifier, signed(settings, claims(**{claim: None}))) == "token_invalid"


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "another"},
        {"iss": ["opora"]},
        {"aud": "another"},
        {"aud": []},
        {"sub": ""},
        {"sub": 7},
        {"sub": "a\0b"},
        {"sub": "s" * 256},
        {"sub": "\ud800"},
        {"tenant": ""},
        {"tenant": ["acme"]},
        {"tenant": "a\nb"},
        {"tenant": "t" * 256},
        {"scope": ["ask"]},
        {"exp": "soon"},
        {"exp": 1e400},
        {"exp": 10**400},
        {"exp": True},
        {"nbf": int(time()) + 3_600},
        {"iat": int(time()) + 3_600},
    ],
)
def test_a_claim_of_another_kind(settings: Settings, verifier: TokenVerifier, changed: dict[str, object]) -> None:
    assert refusal(verifier, signed(settings, claims(**changed))) in {"token_invalid", "token_expired"}


def test_expiry_allows_the_skew_and_no_more(settings: Settings, verifier: TokenVerifier) -> None:
    now, skew = int(time()), settings.token_skew_seconds
    assert verifier.verify(signed(settings, claims(exp=now - skew + 30))).tenant_id == "acme"
    assert refusal(verifier, signed(settings, claims(exp=now - skew - 1))) == "token_expired"


def test_a_token_without_scopes_may_do_nothing(settings: Settings, verifier: TokenVerifier) -> None:
    body = {name: value for name, value in claims().items() if name != "scope"}
    assert verifier.verify(signed(settings, body)).scopes == frozenset()


@example("x")
@example("a.b.c")
@example("..")
@example("eyJ.eyJ.")
@example("%00")
@example("a b")
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: base64.urlsafe_b64encode(raw).decode() + "."))
def test_noise(raw: str) -> None:
    verifier = TokenVerifier(Settings.model_validate({"data_dir": Path("/nonexistent")}))
    assert refusal(verifier, raw) in {"token_missing", "token_invalid"}


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=4))
def test_noise_in_the_header(header: dict[str, object]) -> None:
    verifier = TokenVerifier(Settings.model_validate({"data_dir": Path("/nonexistent")}))
    assert refusal(verifier, forged(header, claims(), b"x" * 32)) == "token_invalid"


def test_rotation_overlaps_and_ends(settings: Settings, verifier: TokenVerifier, clock: Clock) -> None:
    old = issue(settings, "acme", scopes=["ask"], subject="anna", ttl_seconds=60)
    assert verifier.verify(old).subject == "anna"
    rotate(settings, overlap_seconds=600)
    new = issue(settings, "acme", scopes=["ask"], subject="anna", ttl_seconds=60)
    assert jwt.get_unverified_header(old)["kid"] != jwt.get_unverified_header(new)["kid"]
    # No time has passed: a new key works at once, and a key that is gone is noticed within a second.
    assert verifier.verify(old) == verifier.verify(new)
    rotate(settings, overlap_seconds=0)
    clock.now += RELOAD_SECONDS
    assert refusal(verifier, new) == "token_invalid"
    assert verifier.verify(old).subject == "anna"  # its own overlap has not ended


def test_a_token_that_passed_is_not_checked_again(
    settings: Settings, verifier: TokenVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, other = (issue(settings, "acme", scopes=["ask"], subject=name, ttl_seconds=60) for name in ("anna", "boris"))
    assert verifier.verify(raw).subject == "anna"
    monkeypatch.setattr(jwt, "decode", lambda *_, **__: pytest.fail("checked again"))
    assert verifier.verify(raw) == Tenant("acme", "anna", frozenset({"ask"}))
    with pytest.raises(pytest.fail.Exception):
        verifier.verify(other)
    with pytest.raises(pytest.fail.Exception):
        verifier.verify(raw[:-2] + ("AA" if raw[-2:] != "AA" else "BB"))


@pytest.mark.parametrize("seconds", [REMEMBERED_SECONDS - 1, REMEMBERED_SECONDS + 1, 119, 121])
def test_a_remembered_token_ends_when_it_says(
    settings: Settings, verifier: TokenVerifier, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    ages = {name: settings.token_skew_seconds - 5 - name for name in (0, 50)}
    now = time()
    raws = {name: signed(settings, claims(exp=int(now) - age)) for name, age in ages.items()}
    assert all(verifier.verify(raw).tenant_id == "acme" for raw in raws.values())
    monkeypatch.setattr("tenants.access.tokens.time", lambda: now + seconds)
    checked: list[str] = []
    decode = jwt.decode

    def count(raw: str, *rest: object, **options: object) -> object:
        checked.append(raw)
        return decode(raw, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(jwt, "decode", count)
    for raw in raws.values():
        verifier.verify(raw)
    assert raws[0] in checked
    assert (raws[50] in checked) == (seconds > REMEMBERED_SECONDS)


def test_a_changed_key_file_forgets_the_tokens(settings: Settings, verifier: TokenVerifier, clock: Clock) -> None:
    raw = jwt.encode(claims(), RSA_KEY, "RS256", headers={"kid": "rsa"})
    assert verifier.verify(raw).tenant_id == "acme"
    assert settings.token_jwks_file is not None
    settings.token_jwks_file.write_text(json.dumps({"keys": [public(EC_KEY, kid="ec")]}))
    clock.now += RELOAD_SECONDS
    assert refusal(verifier, raw) == "token_invalid"


def test_own_keys_are_their_owners_alone(settings: Settings) -> None:
    signing_key(settings)
    rotate(settings, overlap_seconds=60)
    path = own_keys_file(settings)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_damaged_key_file_is_our_fault(settings: Settings, verifier: TokenVerifier) -> None:
    raw = issue(settings, "acme", scopes=["ask"], subject="anna", ttl_seconds=60)
    own_keys_file(settings).write_text("{}")
    with pytest.raises(InternalFault):
        verifier.verify(raw)


@pytest.mark.parametrize(
    "entry",
    [
        {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U", "kid": "a", "alg": "HS256"},
        {name: value for name, value in public(RSA_KEY).items() if name != "kid"},
        public(RSA_KEY, kid="a", d="AQAB"),
        public(RSA_KEY, kid="a", alg="RS512"),
        public(rsa.generate_private_key(65537, 1024), kid="a"),
        public(ec.generate_private_key(ec.SECP384R1()), kid="a"),
        {"kid": "a"},
        "key",
    ],
)
def test_a_key_that_must_not_be_in_a_jwks_file(tmp_path: Path, entry: object) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [entry]}))
    with pytest.raises(InternalFault) as refused:
        read_jwks(path)
    assert refused.value.code == "jwks_unreadable"


def test_an_encryption_key_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [public(RSA_KEY, kid="a") | {"use": "enc"}, public(EC_KEY, kid="b")]}))
    assert [key.kid for key in read_jwks(path)] == ["b"]


def test_two_keys_of_one_name_are_refused(settings: Settings, verifier: TokenVerifier) -> None:
    assert settings.token_jwks_file is not None
    listed = {"keys": [public(RSA_KEY, kid="same"), public(EC_KEY, kid="same")]}
    settings.token_jwks_file.write_text(json.dumps(listed))
    with pytest.raises(InternalFault):
        verifier.verify(issue(settings, "acme", scopes=["ask"], subject="anna", ttl_seconds=60))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"scopes": []}, "scope_unknown"),
        ({"scopes": ["root"]}, "scope_unknown"),
        ({"subject": ""}, "subject_invalid"),
        ({"tenant_id": "a\0"}, "tenant_id_invalid"),
        ({"ttl_seconds": 0}, "ttl_invalid"),
        ({"ttl_seconds": 10**9}, "ttl_invalid"),
    ],
)
def test_tokens_that_are_never_issued(settings: Settings, changed: dict[str, object], code: str) -> None:
    arguments = {"tenant_id": "acme", "scopes": ["ask"], "subject": "anna", "ttl_seconds": 60} | changed
    tenant_id, scopes, subject, ttl = (arguments[name] for name in ("tenant_id", "scopes", "subject", "ttl_seconds"))
    assert isinstance(tenant_id, str)
    assert isinstance(scopes, list)
    assert isinstance(subject, str)
    assert isinstance(ttl, int)
    with pytest.raises(Invalid) as refused:
        issue(settings, tenant_id, scopes=scopes, subject=subject, ttl_seconds=ttl)
    assert refused.value.code == code


def test_keys_of_the_environment_are_the_only_own_ones_and_long_enough(settings: Settings, clock: Clock) -> None:
    newer, older = "n" * 32, "o" * 32

    def settings_with(keys: str) -> Settings:
        return settings.model_copy(update={"token_keys": SecretStr(keys)})

    own = issue(settings, "acme", scopes=("ask",), subject="anna", ttl_seconds=60)
    earlier = issue(settings_with(older), "acme", scopes=("ask",), subject="anna", ttl_seconds=60)
    both = settings_with(f" {newer}, {older} ,")
    raw = issue(both, "acme", scopes=("ask",), subject="anna", ttl_seconds=60)
    assert jwt.get_unverified_header(raw)["kid"] == signing_key(settings_with(newer)).kid
    verifier = TokenVerifier(both, clock)
    assert [verifier.verify(one).tenant_id for one in (raw, earlier)] == ["acme", "acme"]
    for refusing, refused in ((verifier, own), (TokenVerifier(settings_with(newer), clock), earlier)):
        with pytest.raises(Unauthenticated):
            refusing.verify(refused)
    with pytest.raises(CallerError, match="token_keys_given"):
        rotate(both, overlap_seconds=60)
    for short in ("x" * 31, f"{newer},x"):
        with pytest.raises(CallerError, match="token_keys_short"):
            signing_key(settings_with(short))
