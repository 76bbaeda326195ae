"""Verification of bearer tokens. A tenant id enters the system only here.

Threats and answers: a token that names its own algorithm (each key has one, `none` has none); an RSA public key used
as an HMAC secret (the same); a `kid` that is a path or a query (looked up in memory only, and bounded); a token for
another service (`iss` and `aud` are required); one without expiry (`exp` is required and bounded); a huge one (8 kB,
checked before any parsing). Every refusal has one of four stable codes and reveals no more.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex
from threading import Lock
from time import monotonic, time

import jwt
from cachetools import LRUCache

from settings import Settings
from tenants.access.keys import Key, KeyRing, signing_key
from tenants.access.revocations import token_id
from tenants.core.context import SCOPES, Tenant
from tenants.core.errors import Invalid, Unauthenticated
from tenants.core.names import check_subject, check_tenant_id

MAX_TOKEN_BYTES = 8192
MAX_TTL_SECONDS = 366 * 24 * 3600
"""Maximum lifetime of a token, ours or a provider's."""
REMEMBERED_TOKENS = 4_096
REMEMBERED_SECONDS = 30.0
"""Cache time of a verified token; less if the token or its key expires sooner."""
_REQUIRED = ["exp", "iat", "aud", "iss", "sub", "tenant"]
_KID = re.compile(r"[A-Za-z0-9._~+/=:-]{1,128}")


@dataclass(frozen=True, slots=True)
class _Verified:
    """Claims of a verified token, and the time (epoch seconds) of the next check."""

    tenant: Tenant
    until: float


class TokenVerifier:
    """Checks bearer tokens. Thread-safe; rotated keys are picked up without a restart.

    Tokens that have passed are remembered by digest for a while, since checking one costs as much as a step of the
    pipeline; a change of the keys forgets them all. Refusals are never remembered.

    :param settings: issuer, audience, skew, and where the keys are.
    :param clock: seconds from any start, never going back; paces looking at the key files.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._ring = KeyRing(settings, clock)
        self._lock = Lock()
        self._keys: Mapping[str, Key] = {}
        self._verified: LRUCache[bytes, _Verified] = LRUCache(REMEMBERED_TOKENS)

    def verify(self, raw: str) -> Tenant:
        """Return the tenant that the token authenticates.

        Raises `Unauthenticated` with `token_missing`, `token_too_large`, `token_expired` or `token_invalid`.
        Whether the tenant is registered is the registry's to say. Scopes that Opora does not know are dropped.
        """
        if not raw:
            raise Unauthenticated("token_missing")
        if len(raw) > MAX_TOKEN_BYTES:
            raise Unauthenticated("token_too_large")
        keys = self._ring.current()
        digest = sha256(raw.encode("utf-8", "surrogatepass")).digest()
        verified = self._recall(keys, digest)
        if verified is None:
            verified = self._check(raw)
            self._remember(keys, digest, verified)
        return verified.tenant

    def _recall(self, keys: Mapping[str, Key], digest: bytes) -> _Verified | None:
        with self._lock:
            if keys is not self._keys:
                self._keys = keys
                self._verified.clear()
            verified = self._verified.get(digest)
            return None if verified is None or verified.until <= time() else verified

    def _remember(self, keys: Mapping[str, Key], digest: bytes, verified: _Verified) -> None:
        with self._lock:
            # The keys may have changed meanwhile: results of the old ones are not cached.
            if keys is self._keys:
                self._verified[digest] = verified

    def _check(self, raw: str) -> _Verified:
        try:
            key = self._key(raw)
            claims = self._claims(raw, key)
            tenant, exp = _tenant(claims, raw), _expiry(claims)
        except jwt.ExpiredSignatureError as expired:
            raise Unauthenticated("token_expired") from expired
        # Besides its own errors, PyJWT passes on errors of parsing hostile claims.
        except (jwt.PyJWTError, Invalid, ValueError, TypeError, OverflowError, RecursionError) as refused:
            raise Unauthenticated("token_invalid") from refused
        ends = [time() + REMEMBERED_SECONDS, exp + self._settings.token_skew_seconds]
        return _Verified(tenant, min(ends if key.until is None else [*ends, key.until]))

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


def presented(authorization: str) -> str:
    """Return the token of an `Authorization` header. Raises `Unauthenticated`: `token_missing`."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("token_missing")
    return token.strip()


def issue(
    settings: Settings,
    tenant_id: str,
    *,
    scopes: Iterable[str],
    subject: str,
    ttl_seconds: int,
    token_id: str = "",
) -> str:
    """Issue a token signed with our newest own key. `tenants.access.issued_tokens` keeps the record of issued tokens.

    Raises `Invalid`: `tenant_id_invalid`, `scope_unknown`, `subject_invalid`, `ttl_invalid`.

    :param subject: the person or system that will use it; limited like tenant ids.
    :param ttl_seconds: 1 second to 366 days.
    :param token_id: its `jti`; a new one when empty.
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
        "jti": token_id or token_hex(16),
    }
    return jwt.encode(claims, key.material, algorithm=key.algorithm, headers={"kid": key.kid})


def identify(raw: str, settings: Settings) -> tuple[str, str]:
    """Return the tenant and the id of a token. An expired token is accepted, so that it can still be revoked.

    Raises `Unauthenticated` with the code `token_invalid` if neither our keys nor the provider's signed it.
    """
    with Unauthenticated("token_invalid").instead_of(jwt.PyJWTError, ValueError, TypeError, RecursionError):
        kid = jwt.get_unverified_header(raw).get("kid")
        key = KeyRing(settings).get(str(kid)) if len(raw) <= MAX_TOKEN_BYTES else None
        if key is None:
            raise Unauthenticated("token_invalid")
        claims: dict[str, object] = jwt.decode(
            raw, key.material, algorithms=[key.algorithm], options={"verify_exp": False, "verify_aud": False}
        )
    return str(claims.get("tenant")), token_id(raw, claims.get("jti"))


def _tenant(claims: dict[str, object], raw: str) -> Tenant:
    tenant_id, subject, scope = claims["tenant"], claims["sub"], claims.get("scope", "")
    if not isinstance(tenant_id, str) or not isinstance(subject, str) or not isinstance(scope, str):
        raise Unauthenticated("token_invalid")
    issued_at = claims["iat"]
    if not isinstance(issued_at, int | float):
        raise Unauthenticated("token_invalid")
    return Tenant(
        check_tenant_id(tenant_id),
        check_subject(subject),
        SCOPES.intersection(scope.split()),
        token_id=token_id(raw, claims.get("jti")),
        issued_at=float(issued_at),
    )


def _expiry(claims: dict[str, object]) -> float:
    # PyJWT compares the whole number.
    exp = claims["exp"]
    if not isinstance(exp, int | float) or exp > time() + MAX_TTL_SECONDS:
        raise Unauthenticated("token_invalid")
    return float(int(exp))
