"""Sign-in through a tenant's identity provider: OpenID Connect, authorization code flow with PKCE.

Threats and defences:

- a callback started by an attacker: state in an encrypted cookie of this browser, valid for ten minutes, and PKCE;
- a token for another client or time: signature by the provider's own keys, `iss`, `aud`, `azp`, `exp`, `nonce`;
- someone else's e-mail address: it must be verified, of an allowed domain or added in advance, and spelled as the login
  except for ASCII case: to the provider, an address with a full-width letter may belong to another person;
- a login of another tenant: accounts of different tenants never share anything;
- a provider in our own network: every address is checked like those of tools;
- a provider that names another provider's endpoints: the issuer must be the configured one;
- a code of another provider (mix-up): `iss` of the callback must be the provider, if it sends one (RFC 9207);
- a server that does not respond: a circuit breaker per address.
"""

import hmac
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from secrets import token_urlsafe
from string import ascii_lowercase, ascii_uppercase
from threading import Lock
from time import time
from typing import TypeAlias
from urllib.parse import quote, urlencode, urlsplit

import jwt
from cachetools import TTLCache

from components.ingest.fetch import Fetcher, is_permitted
from components.models.breaker import upstream
from components.models.failures import ModelFailed
from tenants.access.keys import Key, public_key
from tenants.core import context
from tenants.core.errors import Forbidden, InternalFault, Invalid, OporaError, TooLarge, TryAgain
from tenants.desk import operators
from tenants.desk.operators import TENANT_ROLES, Operator, TenantRole
from tenants.desk.sso_providers import Provider
from tenants.storage.sealed import seal, unseal

SECONDS_TO_SIGN_IN = 600
_FRESH_SECONDS = 600.0
_SKEW_SECONDS = 60
_SECONDS = 5.0
_FAILURES, _PAUSE_SECONDS = 3, 30.0
_DOCUMENTS_OF_TENANT = 4
"""Cached documents of a tenant, so that one whose addresses change all the time does not fill the memory."""
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)

_Document: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Sign-in attempt in progress, stored encrypted in the browser only. `until` is in epoch seconds."""

    tenant_id: str
    state: str
    nonce: str
    verifier: str
    next: str
    until: float

    def sealed(self) -> str:
        return seal(json.dumps(asdict(self)))


def opened(cookie: str, tenant_id: str, state: str) -> Attempt:
    """Return the attempt that a tenant's callback belongs to. Raises `Forbidden`: `sso_expired`."""
    with Forbidden("sso_expired").instead_of(InternalFault, ValueError, TypeError):
        attempt = Attempt(**json.loads(unseal(cookie)))
    own = hmac.compare_digest(attempt.state.encode(), state.encode("utf-8", "replace"))
    if not own or attempt.tenant_id != tenant_id or attempt.until < time():
        raise Forbidden("sso_expired")
    return attempt


class SignIn:
    """Client of the providers. Caches their metadata and keys for a while."""

    def __init__(self) -> None:
        self._fetcher = Fetcher(permitted=is_permitted, seconds=_SECONDS, largest=500_000)
        self._lock = Lock()
        self._documents: dict[str, TTLCache[str, _Document]] = {}

    def begin(self, provider: Provider, redirect_uri: str, next: str) -> tuple[str, Attempt]:
        """Return the address to redirect the browser to, and the attempt that it must return with."""
        endpoint = self._endpoint(provider, "authorization_endpoint")
        attempt = Attempt(
            context.current().tenant_id,
            token_urlsafe(24),
            token_urlsafe(24),
            token_urlsafe(48),
            next,
            time() + SECONDS_TO_SIGN_IN,
        )
        challenge = urlsafe_b64encode(sha256(attempt.verifier.encode()).digest()).rstrip(b"=").decode()
        query = urlencode(
            {
                "response_type": "code",
                "client_id": provider.client_id,
                "redirect_uri": redirect_uri,
                "scope": "openid email profile",
                "state": attempt.state,
                "nonce": attempt.nonce,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            }
        )
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{query}", attempt

    def finish(
        self, provider: Provider, attempt: Attempt, code: str, redirect_uri: str, issuer: str | None
    ) -> Operator:
        """Return the operator who signed in at the provider.

        :param issuer: `iss` of the callback; None if it has none.
        :raises Forbidden: `sso_invalid`, `sso_refused`.
        :raises TryAgain: `sso_unreachable`.
        """
        names_itself = self._discovered(provider).get("authorization_response_iss_parameter_supported") is True
        if issuer != provider.issuer and (names_itself or issuer is not None):
            raise Forbidden("sso_invalid")
        return admitted(provider, self._claims(provider, attempt, self._token(provider, attempt, code, redirect_uri)))

    def _token(self, provider: Provider, attempt: Attempt, code: str, redirect_uri: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
        }
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        methods = self._discovered(provider).get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if isinstance(methods, list) and "client_secret_basic" not in methods:
            form |= {"client_id": provider.client_id, "client_secret": provider.secret}
        else:
            pair = f"{quote(provider.client_id, safe='')}:{quote(provider.secret, safe='')}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        endpoint = self._endpoint(provider, "token_endpoint")
        with _reaching(endpoint):
            answer = self._fetcher.post(endpoint, urlencode(form).encode(), headers)
        if answer.status != 200:
            raise Forbidden("sso_invalid")
        token = _document(answer.data).get("id_token")
        if not isinstance(token, str):
            raise Forbidden("sso_invalid")
        return token

    def _claims(self, provider: Provider, attempt: Attempt, token: str) -> _Document:
        try:
            key = self._key(provider, jwt.get_unverified_header(token).get("kid"))
            claims: dict[str, object] = jwt.decode(
                token,
                key.material,
                algorithms=[key.algorithm],
                audience=provider.client_id,
                issuer=provider.issuer,
                leeway=_SKEW_SECONDS,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        # Besides its own errors, PyJWT lets exceptions through from parsing hostile claims.
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as refused:
            raise Forbidden("sso_invalid") from refused
        audience, party = claims["aud"], claims.get("azp")
        several = isinstance(audience, list) and len(audience) > 1
        if (several or party is not None) and party != provider.client_id:
            raise Forbidden("sso_invalid")
        nonce = claims.get("nonce")
        if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), attempt.nonce.encode()):
            raise Forbidden("sso_invalid")
        return claims

    def _key(self, provider: Provider, kid: object) -> Key:
        # The provider may have rotated its keys since the last download.
        for fresh in (False, True):
            listed = self._fetched(self._endpoint(provider, "jwks_uri"), provider, fresh=fresh).get("keys")
            for entry in listed if isinstance(listed, list) else ():
                try:
                    # Only the key that is needed is parsed: a provider may list thousands.
                    if entry["kid"] == kid and entry.get("use", "sig") == "sig":
                        return public_key(entry)
                except (ValueError, KeyError, TypeError, AttributeError, jwt.PyJWTError):
                    continue  # The provider has keys of other types for other clients.
        raise Forbidden("sso_invalid")

    def _endpoint(self, provider: Provider, name: str) -> str:
        """Return an endpoint of the provider, at least as secure as the provider itself."""
        address = self._discovered(provider).get(name)
        if not isinstance(address, str) or urlsplit(address).scheme != urlsplit(provider.issuer).scheme:
            raise Forbidden("sso_invalid")
        return address

    def _discovered(self, provider: Provider) -> _Document:
        document = self._fetched(f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration", provider)
        if document.get("issuer") != provider.issuer:
            raise Forbidden("sso_invalid")
        return document

    def _fetched(self, url: str, provider: Provider, *, fresh: bool = False) -> _Document:
        tenant_id = context.current().tenant_id
        with self._lock:
            own = self._documents.setdefault(tenant_id, TTLCache(_DOCUMENTS_OF_TENANT, _FRESH_SECONDS))
            known = own.get(url)
        if known is not None and not fresh:
            return known
        with _reaching(url):
            answer = self._fetcher.fetch(url, site=provider.issuer if url.startswith(provider.issuer) else url)
        if answer.status != 200:
            raise TryAgain("sso_unreachable")
        document = _document(answer.data)
        with self._lock:
            own[url] = document
        return document


@contextmanager
def _reaching(url: str) -> Iterator[None]:
    """Guard a request to a provider with the circuit breaker of its address.

    :raises TryAgain: `sso_unreachable`.
    """
    key = "sso", context.current().tenant_id, urlsplit(url).netloc
    shared = upstream(key, failures=_FAILURES, pause=_PAUSE_SECONDS, concurrent=1)
    with TryAgain("sso_unreachable").instead_of(Invalid, TooLarge, ModelFailed), shared.breaker.call():
        yield


def admitted(provider: Provider, claims: _Document) -> Operator:
    """Return the operator for a person authenticated by the provider. Raises `Forbidden`: `sso_refused`."""
    email, verified = claims.get("email"), claims.get("email_verified")
    # Apple and Amazon Cognito may send the word instead of the value.
    is_verified = verified is True or verified == "true"
    if not isinstance(email, str) or not is_verified or email.count("@") != 1:
        raise Forbidden("sso_refused")
    login = operators.normal_login(email)
    if login != email.translate(_LOWER):
        raise Forbidden("sso_refused")
    name = claims.get("name")
    of_domain = login.rpartition("@")[2] in provider.domains
    with Forbidden("sso_refused").instead_of(OporaError):
        return operators.admit(
            email,
            role=_role(provider, claims),
            default_role=provider.default_role if of_domain else None,
            name=name if isinstance(name, str) else "",
        )


def _role(provider: Provider, claims: _Document) -> TenantRole | None:
    """Return the role named by the token: the most privileged one if there are several."""
    value = claims.get(provider.role_claim) if provider.role_claim else None
    values = value if isinstance(value, list) else [value]
    named = {provider.roles[one] for one in values if isinstance(one, str) and one in provider.roles}
    return max(named, key=TENANT_ROLES.index, default=None)


def _document(data: bytes) -> _Document:
    with Forbidden("sso_invalid").instead_of(ValueError, RecursionError):
        document = json.loads(data)
    if not isinstance(document, dict):
        raise Forbidden("sso_invalid")
    return document
