"""Tokens: who asks, proven. The only place where a tenant id enters from outside.

Threats and answers: a token that names its own algorithm (each key has one, `none` has none); an RSA public key used
as an HMAC secret (the same); a `kid` that is a path or a query (looked up in memory only, and bounded); a token for
another service (`iss` and `aud` are required); one that never ends (`exp` is required and bounded); a huge one (8 kB,
before any parsing). Every refusal is one of four stable codes and says no more.
"""

import re
from collections.abc import Iterable
from time import time

import jwt

from settings import Settings
from tenants.context import SCOPES, Tenant
from tenants.errors import Invalid, Unauthenticated
from tenants.keys import Key, KeyRing, signing_key
from tenants.names import check_subject, check_tenant_id

MAX_TOKEN_BYTES = 8192
MAX_TTL_SECONDS = 366 * 24 * 3600
"""Longest life of a token, ours or a provider's."""
_REQUIRED = ["exp", "aud", "iss", "sub", "tenant"]
_KID = re.compile(r"[A-Za-z0-9._~+/=:-]{1,128}")


class TokenVerifier:
    """Checks bearer tokens. Thread-safe; rotated keys are picked up without a restart.

    :param settings: issuer, audience, skew, and where the keys are.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ring = KeyRing(settings)

    def verify(self, raw: str) -> Tenant:
        """Whom the token speaks for.

        Raises `Unauthenticated` with `token_missing`, `token_too_large`, `token_expired` or `token_invalid`.
        Whether the tenant is registered is the registry's to say. Scopes that Opora does not know are dropped.
        """
        if not raw:
            raise Unauthenticated("token_missing")
        if len(raw) > MAX_TOKEN_BYTES:
            raise Unauthenticated("token_too_large")
        try:
            return _tenant(self._claims(raw, self._key(raw)))
        except jwt.ExpiredSignatureError as expired:
            raise Unauthenticated("token_expired") from expired
        # Beside its own errors, PyJWT lets through what parsing hostile claims raises underneath.
        except (jwt.PyJWTError, Invalid, ValueError, TypeError, OverflowError, RecursionError) as refused:
            raise Unauthenticated("token_invalid") from refused

    def _key(self, raw: str) -> Key:
        kid = jwt.get_unverified_header(raw).get("kid")
        key = self._ring.get(kid) if isinstance(kid, str) and _KID.fullmatch(kid) else None
        if key is None:
            raise Unauthenticated("token_invalid")
        return key

    def _claims(self, raw: str, key: Key) -> dict[str, object]:
        claims: dict[str, object] = jwt.decode(
            raw,
            key.material,
            algorithms=[key.algorithm],
            audience=self._settings.token_audience,
            issuer=self._settings.token_issuer,
            leeway=self._settings.token_skew_seconds,
            options={"require": _REQUIRED},
        )
        return claims


def issue(settings: Settings, tenant_id: str, *, scopes: Iterable[str], subject: str, ttl_seconds: int) -> str:
    """A token signed with our own newest key.

    Raises `Invalid`: `tenant_id_invalid`, `scope_unknown`, `subject_invalid`, `ttl_invalid`.

    :param subject: the person or system that will use it; bounded as tenant ids are.
    :param ttl_seconds: 1 second to 366 days.
    """
    granted = sorted(set(scopes))
    if not granted or not SCOPES.issuperset(granted):
        raise Invalid("scope_unknown")
    if not 1 <= ttl_seconds <= MAX_TTL_SECONDS:
        raise Invalid("ttl_invalid")
    key = signing_key(settings)
    assert isinstance(key.material, bytes)  # noqa: S101 - own keys are secrets
    now = int(time())
    claims = {
        "iss": settings.token_issuer,
        "aud": settings.token_audience,
        "sub": check_subject(subject),
        "tenant": check_tenant_id(tenant_id),
        "scope": " ".join(granted),
        "iat": now,
        "exp": now + ttl_seconds,
    }
    return jwt.encode(claims, key.material, algorithm=key.algorithm, headers={"kid": key.kid})


def _tenant(claims: dict[str, object]) -> Tenant:
    tenant_id, subject, scope, exp = claims["tenant"], claims["sub"], claims.get("scope", ""), claims["exp"]
    if not isinstance(tenant_id, str) or not isinstance(subject, str) or not isinstance(scope, str):
        raise Unauthenticated("token_invalid")
    if not isinstance(exp, int | float) or exp > time() + MAX_TTL_SECONDS:
        raise Unauthenticated("token_invalid")
    return Tenant(check_tenant_id(tenant_id), check_subject(subject), SCOPES.intersection(scope.split()))
