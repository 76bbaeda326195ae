"""Secrets at rest: texts encrypted in the database, and files that only their owner reads.

Encrypted are full texts for operators and repeated requests, and secrets of tenants.

Threat: a copy of the database (a backup, a dump, a server's disk) is stolen. It does not contain the key, which comes
from the environment, or from the data folder beside the token keys. Fernet is AES-128-CBC with HMAC-SHA256.
"""

import base64
import json
import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from uuid import uuid4

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy import JSON, Dialect, Text, TypeDecorator

from settings import Settings, get_settings
from tenants.core.errors import CallerError, InternalFault, Invalid

_GIVEN_CHARACTERS = 32
_KEPT = 2
"""Secrets in the installation's own file: after a rotation a process may seal by the one before for a moment."""


class SealedText(TypeDecorator[str]):
    """A text column that is encrypted in the database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else seal(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else unseal(value)


class SealedJson(TypeDecorator[object]):
    """A JSON column that holds one encrypted text."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: object | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else seal(json.dumps(value))

    def process_result_value(self, value: object | None, dialect: Dialect) -> object | None:  # noqa: ARG002
        return None if value is None else json.loads(unseal(str(value)))


def seal(text: str) -> str:
    """Encrypt a text under the newest key."""
    return _box().encrypt(text.encode("utf-8", "surrogatepass")).decode()


def unseal(sealed: str) -> str:
    """Decrypt a text. Raises `InternalFault` with the code `data_key_wrong` if no key fits."""
    with InternalFault("data_key_wrong").instead_of(InvalidToken):
        return _box().decrypt(sealed).decode("utf-8", "surrogatepass")


def seal_anew(sealed: str) -> str:
    """Encrypt a sealed text again under the newest key."""
    with InternalFault("data_key_wrong").instead_of(InvalidToken):
        return _box().rotate(sealed).decode()


def check_given(settings: Settings) -> None:
    """Raise `CallerError` with the code `data_keys_short` for secrets that can be guessed from a copy of the
    database."""
    given = [secret.strip() for secret in settings.data_keys.get_secret_value().split(",") if secret.strip()]
    if any(len(secret) < _GIVEN_CHARACTERS for secret in given):
        raise CallerError("data_keys_short", characters=_GIVEN_CHARACTERS)


def renew_own_key() -> None:
    """Encrypt with a new secret of the installation from now on.

    :raises Invalid: `data_keys_given`, where the environment brings the secrets.
    """
    settings = get_settings()
    if settings.data_keys.get_secret_value():
        raise Invalid("data_keys_given")
    own = _own(settings.data_dir)
    path = _path(settings.data_dir)
    write_draft(path, ",".join([token_urlsafe(32), *own.split(",")][:_KEPT])).replace(path)


def forget_keys() -> None:
    """Reload the keys at their next use."""
    _made.cache_clear()


def _box() -> MultiFernet:
    settings = get_settings()
    given = settings.data_keys.get_secret_value()
    # A rotation by another process counts at once, so the file is looked at each time; it is needed for few requests.
    return _made(given, settings.data_dir, 0 if given else _version(settings.data_dir))


@lru_cache(maxsize=4)
def _made(given: str, data_dir: Path, _: int) -> MultiFernet:
    secrets = [secret.strip() for secret in (given or _own(data_dir)).split(",") if secret.strip()]
    return MultiFernet(Fernet(base64.urlsafe_b64encode(sha256(secret.encode()).digest())) for secret in secrets)


def _own(data_dir: Path) -> str:
    """Return the installation's own secrets, newest first; create the first one if needed."""
    path = _path(data_dir)
    if not path.exists():
        create_once(path, token_urlsafe(32))
    return path.read_text(encoding="ascii")


def _version(data_dir: Path) -> int:
    try:
        return _path(data_dir).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _path(data_dir: Path) -> Path:
    return data_dir / "keys" / "data.key"


def write_draft(path: Path, content: str) -> Path:
    """Write the content to a new file beside `path`, synced to disk; the caller moves it into place."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{uuid4().hex}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft


def create_once(path: Path, content: str) -> None:
    """Write a file that is not there. Of several processes that do so at once the first one's stays."""
    draft = write_draft(path, content)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
