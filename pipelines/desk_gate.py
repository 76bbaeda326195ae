"""Pages of the desk at the gate: the cookie of a session, what it allows, and what browsers must not do.

Threats: another site that sends a form or a request in an operator's name (the browser says where a request comes from,
and every change carries a token that only a page of the same session knows), a page in a foreign frame, a script
in a text that a customer wrote (no script but our own file, no markup from strings but through one named policy), a
page in a shared cache, and a cookie planted by a neighbouring host (the prefix `__Host-`).

Browsers take loopback addresses for secure, so the same cookie works there over plain HTTP; Safari does not, and needs
TLS for development too.
"""

import hmac
import re
from collections.abc import Mapping
from urllib.parse import parse_qs, quote, unquote, urlsplit

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from pipelines.connections import address_of
from tenants.core.errors import Forbidden, Invalid
from tenants.desk import operator_sessions
from tenants.desk.operator_sessions import LONGEST, SignedIn
from tenants.desk.operators import Operator

COOKIE = "__Host-opora-desk"
COMPANY = "__Host-opora-company"
"""The cookie with the tenant that this browser has signed in to."""
_COMPANY_SECONDS = 365 * 86_400
SIGN_IN = "/desk/sign-in"
CSRF_FIELD = "csrf"
MAX_FIELDS = 100
"""Maximum number of fields in a form, to limit the work of its handlers."""
CSRF_HEADER = "x-csrf-token"
FIRST_FIELD_BYTES = 1_000
"""Size of the beginning of a form with files that contains its first field."""
SIGNED_IN = "signed_in"
"""The scope of pages for all operators who have signed in."""
INSTALLATION = "installation"
"""The scope of pages for admins of the installation. No token can carry either of the two."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types opora-desk",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store, no-transform",
}


def cookie_of(headers: Headers, name: str) -> str:
    """Return the value of a cookie; empty if missing.

    Threat: another host of the domain sets a cookie named `\\xa0__Host-…`. Browsers do not see the prefix, but parsers
    that strip more than spaces and tabs do.
    """
    for pair in headers.get("cookie", "").split(";"):
        given, _, value = pair.strip(" \t").partition("=")
        if given == name:
            return value.strip('"')
    return ""


def presented(headers: Headers) -> str:
    return cookie_of(headers, COOKIE)


def may(operator: Operator, scope: str) -> bool:
    if scope == SIGNED_IN:
        return True
    if scope == INSTALLATION:
        return operator.role == INSTALLATION
    tenant = operator.acting()
    return tenant is not None and scope in tenant.scopes


def check_source(headers: Headers) -> None:
    """Raise `Forbidden` unless a page of this service sent the request. A browser that does not say so is refused."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin", "")
    same_origin = site == "same-origin" if site else bool(origin) and urlsplit(origin).netloc == headers.get("host", "")
    if not same_origin:
        raise Forbidden("foreign_request")


def check_csrf(signed_in: SignedIn, headers: Headers, form: bytes = b"") -> None:
    """Raise `Forbidden` unless the request carries its session's token, in a header or in a field of the form."""
    given = headers.get(CSRF_HEADER, "")
    if not given:
        with Invalid("form_too_long", limit=MAX_FIELDS).instead_of(ValueError):
            [given] = parse_qs(form.decode("utf-8", "replace"), max_num_fields=MAX_FIELDS).get(CSRF_FIELD, [""])[:1]
    if not hmac.compare_digest(given.encode(), signed_in.csrf.encode()):
        raise Forbidden("form_expired")


def check_first_field(signed_in: SignedIn, content_type: str, head: bytes) -> None:
    """Raise `Forbidden` unless a form with files begins with its session's token, written as browsers write a field."""
    _, options = parse_options_header(content_type)
    border = re.escape(b"--" + options.get(b"boundary", b""))
    field = rb'%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n([0-9a-f]+)\r\n%s\r\n'
    given = re.match(field % (border, CSRF_FIELD.encode(), border), head)
    if given is None or not hmac.compare_digest(given[1], signed_in.csrf.encode()):
        raise Forbidden("form_expired")


def to_sign_in(path: str, query: str) -> Response:
    """Sends a browser to the sign-in page, which knows where to go afterwards."""
    wanted = f"{path}?{query}" if query else path
    return RedirectResponse(f"{SIGN_IN}?next={quote(wanted, safe='')}", 303)


def signed_in(response: Response, request: Request, operator: Operator) -> Response:
    secret = operator_sessions.begin(
        operator, address=address_of(request), browser=request.headers.get("user-agent", "")
    )
    seconds = int(LONGEST.total_seconds())
    response.set_cookie(COOKIE, secret, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax")
    if operator.tenant_id is not None:
        company = quote(operator.tenant_id, safe="")
        response.set_cookie(
            COMPANY, company, max_age=_COMPANY_SECONDS, path="/", secure=True, httponly=True, samesite="lax"
        )
    return response


def company_of(headers: Headers) -> str:
    return unquote(cookie_of(headers, COMPANY))


def without_session(response: Response) -> Response:
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")
    return response


def local(path: str, otherwise: str) -> str:
    """Return `path` if it is a safe path of the desk, else `otherwise`. It prevents open redirects."""
    plain = path.startswith("/desk") and not any(ord(character) <= 32 or character == "\\" for character in path)
    parts = urlsplit(path) if plain else urlsplit("")
    return path if plain and not parts.netloc and not parts.scheme and "//" not in parts.path else otherwise
