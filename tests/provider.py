"""A small OpenID Connect provider on this machine: discovery, keys that rotate, codes that work once, PKCE."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from secrets import token_urlsafe
from time import time
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from jwt.algorithms import RSAAlgorithm

from tests.servers import Quiet, http

CLIENT, SECRET = "desk", "hush / hush"


@dataclass
class IdentityProvider:
    """An identity provider. `person` holds the claims of the user, `changed` wrong claims of a token."""

    issuer: str = ""
    person: dict[str, object] = field(default_factory=dict)
    changed: dict[str, object] = field(default_factory=dict)
    says: dict[str, object] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    keys: list[tuple[str, RSAPrivateKey]] = field(default_factory=list)
    signs_with: RSAPrivateKey | None = None

    def rotate(self) -> None:
        """Sign with a new key; the previous one is removed."""
        self.keys = [(f"key-{token_urlsafe(4)}", generate_private_key(65537, 2048))]

    def authorize(self, query: str) -> str:
        """Return the redirect address after a successful sign-in."""
        given = dict(parse_qsl(query))
        code = token_urlsafe(16)
        self.codes[code] = given
        joint = "&" if "?" in given["redirect_uri"] else "?"
        return f"{given['redirect_uri']}{joint}{urlencode({'code': code, 'state': given['state']})}"

    def token(self, authorization: str, form: dict[str, str]) -> dict[str, str] | None:
        """Return the response for a code, which works once; None: refused."""
        given = self.codes.pop(form.get("code", ""), None)
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        challenge = base64.urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=")
        fits = given is not None and (unquote(client), unquote(secret)) == (CLIENT, SECRET)
        if not fits or given is None or given["code_challenge"] != challenge.decode():
            return None
        if given["redirect_uri"] != form.get("redirect_uri"):
            return None
        kid, key = self.keys[-1]
        now = int(time())
        claims: dict[str, object] = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "person-1",
            "iat": now,
            "exp": now + 300,
            "nonce": given["nonce"],
            **self.person,
            **self.changed,
        }
        signed = jwt.encode(claims, self.signs_with or key, algorithm="RS256", headers={"kid": kid})
        return {"access_token": "x", "token_type": "Bearer", "id_token": signed}

    def document(self, path: str) -> object:
        """Return a public document of the provider."""
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                **self.says,
            }
        public = [(kid, json.loads(RSAAlgorithm.to_jwk(key.public_key()))) for kid, key in self.keys]
        return {"keys": [{**key, "kid": kid, "use": "sig", "alg": "RS256"} for kid, key in public]}


@contextmanager
def providing() -> Iterator[IdentityProvider]:
    """Run a provider while the block lasts."""
    provider = IdentityProvider()
    provider.rotate()

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(parts.query))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self._answer(200, provider.document(parts.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            answer = provider.token(self.headers.get("Authorization", ""), form)
            self._answer(200 if answer else 400, answer or {"error": "invalid_grant"})

        def _answer(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with http(Handler) as provider.issuer:
        yield provider
