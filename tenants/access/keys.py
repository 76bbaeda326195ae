"""Keys that sign and check tokens. Each key has one algorithm, so a token cannot choose how it is checked.

Own keys (HS256) come from the environment, for replicas, or from a file under the data folder that only its owner can
read. Public keys of an identity provider (RS256, ES256) come from a JWKS file. Both files are reloaded when they
change.
"""

import base64
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import monotonic, time
from typing import Literal, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError
from pydantic import ValidationError

from settings import Settings
from tenants.core.errors import CallerError, InternalFault
from tenants.core.validation import FrozenModel
from tenants.storage.sealed import create_once, write_draft

Algorithm: TypeAlias = Literal["HS256", "RS256", "ES256"]
RELOAD_SECONDS = 1.0
"""Interval between checks for a changed key file. Each check costs a system call, which releases the interpreter."""
_SECRET_BYTES = 32
_MIN_RSA_BITS = 2048
_GIVEN_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class Key:
    """A key bound to one algorithm. `until` (epoch seconds) ends the overlap after a rotation."""

    kid: str
    algorithm: Algorithm
    material: bytes | RSAPublicKey | EllipticCurvePublicKey
    until: float | None = None


class OwnKey(FrozenModel):
    """An HS256 key as stored. `secret` is base64url."""

    kid: str
    secret: str
    until: float | None = None

    def key(self) -> Key:
        """Return the key, ready for use."""
        return Key(self.kid, "HS256", base64.urlsafe_b64decode(self.secret), self.until)


class _OwnKeys(FrozenModel):
    keys: tuple[OwnKey, ...]


def own_keys_file(settings: Settings) -> Path:
    """Return the file of this installation's own keys."""
    return settings.data_dir / "keys" / "tokens.json"


def signing_key(settings: Settings) -> Key:
    """Return the newest own key; create the first one if needed."""
    if given := given_keys(settings):
        return given[0]
    path = own_keys_file(settings)
    if not path.exists():
        create_once(path, _written((_new_key(),)))
    return _read_own(path)[-1].key()


def given_keys(settings: Settings) -> tuple[Key, ...]:
    """Return the keys from the environment, newest first. Raises `CallerError` with the code `token_keys_short`."""
    given = [secret.strip() for secret in settings.token_keys.get_secret_value().split(",") if secret.strip()]
    if any(len(secret) < _GIVEN_CHARACTERS for secret in given):
        raise CallerError("token_keys_short", characters=_GIVEN_CHARACTERS)
    digests = [sha256(secret.encode()).digest() for secret in given]
    return tuple(Key(sha256(b"kid" + digest).hexdigest()[:16], "HS256", digest) for digest in digests)


def rotate(settings: Settings, *, overlap_seconds: int) -> str:
    """Sign with a new key from now on; earlier keys are accepted for `overlap_seconds` more. Returns the new `kid`.

    Make the overlap as long as the longest token still in use lives. Raises `CallerError` with the code
    `token_keys_given`, where the keys are the environment's.
    """
    if given_keys(settings):
        raise CallerError("token_keys_given")
    signing_key(settings)
    path = own_keys_file(settings)
    now = time()
    remaining = tuple(
        key if key.until is not None else key.model_copy(update={"until": now + overlap_seconds})
        for key in _read_own(path)
        if key.until is None or key.until > now
    )
    new = _new_key()
    write_draft(path, _written((*remaining, new))).replace(path)
    return new.kid


class KeyRing:
    """Every key that a token may be checked with, by `kid`.

    :param clock: seconds from any start, never going back.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = monotonic) -> None:
        self._files = own_keys_file(settings), settings.token_jwks_file
        self._given = given_keys(settings)
        self._clock = clock
        self._lock = Lock()
        self._checked_at = float("-inf")
        self._versions: tuple[tuple[int, int, int] | None, ...] | None = None
        self._keys: Mapping[str, Key] = {}

    def current(self) -> Mapping[str, Key]:
        """Return the keys in force: the same object until a file changes. Files are checked once a second at most."""
        if self._clock() - self._checked_at >= RELOAD_SECONDS:
            self._reload()
        return self._keys

    def get(self, kid: str) -> Key | None:
        """Return the key with this name unless its overlap is over. Looked up in memory only: `kid` is untrusted."""
        if kid not in self.current():
            # A key that has just been created must work at once.
            self._reload()
        key = self._keys.get(kid)
        return None if key is None or (key.until is not None and key.until <= time()) else key

    def _reload(self) -> None:
        own_file, jwks_file = self._files
        with self._lock:
            versions = tuple(_version(path) for path in self._files if path is not None)
            if versions != self._versions:
                own = [key.key() for key in _read_own(own_file)] if own_file.exists() else []
                loaded = list(self._given) or own
                loaded += read_jwks(jwks_file) if jwks_file is not None else []
                keys = {key.kid: key for key in loaded}
                if len(keys) != len(loaded):
                    raise InternalFault("keys_ambiguous")
                self._keys, self._versions = keys, versions
            self._checked_at = self._clock()


def read_jwks(path: Path) -> list[Key]:
    """Return the public signing keys of a JWKS file. Raises `InternalFault` on a forbidden key.

    Forbidden: symmetric keys (every reader of the file could sign), private keys, RSA under 2,048 bits, curves other
    than P-256, keys without `kid`. Encryption keys are skipped.
    """
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["keys"]
        return [public_key(entry) for entry in listed if entry.get("use", "sig") == "sig"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, PyJWTError) as fault:
        raise InternalFault("jwks_unreadable") from fault


def public_key(entry: Mapping[str, object]) -> Key:
    """Parse a public signing key of a JWKS. Raises `ValueError` and other errors for a forbidden key."""
    kid = entry["kid"]
    if not isinstance(kid, str) or "d" in entry:
        raise ValueError("a JWKS key needs a kid and must be public")
    material = PyJWK(dict(entry)).key
    algorithm: Algorithm
    if isinstance(material, RSAPublicKey) and material.key_size >= _MIN_RSA_BITS:
        algorithm = "RS256"
    elif isinstance(material, EllipticCurvePublicKey) and isinstance(material.curve, SECP256R1):
        algorithm = "ES256"
    else:
        raise ValueError("a JWKS key must be RSA of 2048 bits or more, or EC P-256")
    if entry.get("alg", algorithm) != algorithm:
        raise ValueError("a JWKS key must be for RS256 or ES256")
    return Key(kid, algorithm, material)


def _new_key() -> OwnKey:
    return OwnKey(
        kid=secrets.token_hex(8), secret=base64.urlsafe_b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
    )


def _read_own(path: Path) -> tuple[OwnKey, ...]:
    with InternalFault("keys_unreadable").instead_of(OSError, ValidationError):
        return _OwnKeys.model_validate_json(path.read_bytes()).keys


def _written(keys: tuple[OwnKey, ...]) -> str:
    return _OwnKeys(keys=keys).model_dump_json()


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
