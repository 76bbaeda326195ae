"""Visitors of a site, identified by a token that is valid for fifteen minutes.

Threats and answers: a page that uses another site's key (its `Origin` is not on the site's list); a token that names
its own algorithm or another tenant's key (the algorithm is fixed, the key is the site's own, and the tenant is the
site's, whatever the token says); a visitor who claims to be another person (an identity is signed by the tenant's own
server, for an hour at most); a stolen token (it expires soon, and gives access to one visitor's chats only).
"""

from dataclasses import dataclass
from datetime import timedelta
from secrets import token_hex
from time import time
from urllib.parse import urlsplit

import jwt

from settings import Settings
from tenants.access.tokens import MAX_TOKEN_BYTES
from tenants.chats import sites
from tenants.chats.sites import ANY_ORIGIN, Site
from tenants.core.context import Tenant
from tenants.core.errors import Forbidden, Invalid, NotFound, Unauthenticated
from tenants.core.names import check_subject

TOKEN_SECONDS = 900
RETURN_SECONDS = round(timedelta(days=30).total_seconds())
"""Time after its expiry for which a token still identifies a returning visitor."""
IDENTITY_SECONDS = 3_600
MAX_IDENTITY_BYTES = 4_096
SCOPE = "visit"
KID = "site:"
"""Prefix of the `kid` of a visitor token; the key of its site follows."""

ANONYMOUS, IDENTIFIED = "v:", "u:"
_ALGORITHM = "HS256"
_AUDIENCE = "opora-visit"
_REQUIRED = ["exp", "iat", "sub", "aud", "iss", "tenant"]


@dataclass(frozen=True, slots=True)
class VisitorToken:
    """A token and its subject."""

    token: str
    subject: str


class Visitors:
    """Issues and verifies visitor tokens.

    :param settings: token issuer and allowed clock skew.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def begin(self, site: Site, *, identity: str | None, visitor: str | None) -> VisitorToken:
        """Issue a token for a visitor of a site.

        :param identity: a JWT signed by the tenant's own server.
        :param visitor: an earlier token; its holder stays the same visitor.
        :raises Unauthenticated: `identity_required`, `identity_invalid`.
        """
        if identity:
            subject = IDENTIFIED + self._identified(site, identity)
        elif site.identity_required:
            raise Unauthenticated("identity_required")
        else:
            subject = self._returning(site, visitor) or ANONYMOUS + token_hex(16)
        now = int(time())
        claims = {
            "iss": self._settings.token_issuer,
            "aud": _AUDIENCE,
            "sub": subject,
            "tenant": site.tenant_id,
            "scope": SCOPE,
            "iat": now,
            "exp": now + TOKEN_SECONDS,
        }
        signed = jwt.encode(claims, site.secrets[0], algorithm=_ALGORITHM, headers={"kid": KID + site.key})
        return VisitorToken(signed, subject)

    async def verify(self, raw: str) -> Tenant:
        """Return the visitor of a token, whatever page sent it. Raises `Unauthenticated`."""
        with Unauthenticated("token_invalid").instead_of(jwt.PyJWTError, Invalid, NotFound, ValueError):
            kid = str(jwt.get_unverified_header(raw).get("kid"))
            site = await sites.load(check_subject(kid.removeprefix(KID)))
        subject = self._subject(site, raw, self._settings.token_skew_seconds)
        if site.identity_required and not subject.startswith(IDENTIFIED):
            raise Unauthenticated("identity_required")
        return Tenant(site.tenant_id, subject, frozenset({SCOPE}), site=site.key)

    def _returning(self, site: Site, raw: str | None) -> str:
        """Return the anonymous visitor of an earlier token; empty if it is invalid."""
        if not raw or len(raw) > MAX_IDENTITY_BYTES:
            return ""
        try:
            subject = self._subject(site, raw, RETURN_SECONDS)
        except Unauthenticated:
            return ""
        return subject if subject.startswith(ANONYMOUS) else ""

    def _subject(self, site: Site, raw: str, leeway: int) -> str:
        claims = self._claims(site, raw, leeway)
        subject, tenant_id = claims["sub"], claims["tenant"]
        if tenant_id != site.tenant_id or not isinstance(subject, str):
            raise Unauthenticated("token_invalid")
        return subject

    def _claims(self, site: Site, raw: str, leeway: int) -> dict[str, object]:
        expired = False
        for secret in site.secrets:
            try:
                claims: dict[str, object] = jwt.decode(
                    raw,
                    secret,
                    algorithms=[_ALGORITHM],
                    audience=_AUDIENCE,
                    issuer=self._settings.token_issuer,
                    leeway=leeway,
                    options={"require": _REQUIRED},
                )
                return claims
            except jwt.ExpiredSignatureError:
                expired = True
            except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
                continue
        raise Unauthenticated("token_expired" if expired else "token_invalid")

    def _identified(self, site: Site, raw: str) -> str:
        """Return the `sub` of an identity token."""
        if site.identity_secret is None or len(raw) > MAX_IDENTITY_BYTES:
            raise Unauthenticated("identity_invalid")
        skew = self._settings.token_skew_seconds
        try:
            claims: dict[str, object] = jwt.decode(
                raw,
                site.identity_secret,
                algorithms=[_ALGORITHM],
                audience=self._settings.token_audience,
                leeway=skew,
                options={"require": ["exp", "sub", "aud"]},
            )
            subject, ends = claims["sub"], claims["exp"]
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as refused:
            raise Unauthenticated("identity_invalid") from refused
        if not isinstance(subject, str) or not isinstance(ends, int | float):
            raise Unauthenticated("identity_invalid")
        if not subject or len(subject) > 200 or ends > time() + IDENTITY_SECONDS + skew:
            raise Unauthenticated("identity_invalid")
        return check_subject(subject)


def is_site_token(token: str) -> bool:
    """Return whether a token says that it is a visitor's. It proves nothing yet."""
    if len(token) > MAX_TOKEN_BYTES:
        return False
    try:
        return str(jwt.get_unverified_header(token).get("kid")).startswith(KID)
    except (jwt.PyJWTError, ValueError, RecursionError):
        return False


def check_origin(site: Site, origin: str, host: str) -> None:
    """Whether a page may show the site's widget.

    :param origin: of the browser's request; empty without a browser, or for a page of the service itself.
    :param host: the service's host name.
    :raises Forbidden: `origin_forbidden`.
    """
    if not origin and ANY_ORIGIN not in site.origins:
        raise Forbidden("origin_forbidden", origin="-")
    if origin and not site.allows_origin(origin) and not is_own(origin, host):
        raise Forbidden("origin_forbidden", origin=origin[:200])


def is_own(origin: str, host: str) -> bool:
    """Whether a page is one of the service's own, such as the full page of a site."""
    return bool(host) and urlsplit(origin).netloc == host.lower()
