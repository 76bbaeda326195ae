"""Text encrypted at rest: what is kept whole for an operator or for a repeated request, personal data included.

The threat: a copy of the database (a backup, a dump, a server's disk) in other hands. The key is not in it: it comes
from the environment, or lies beside the keys of tokens in the data folder. Fernet is AES-128-CBC with HMAC-SHA256.
"""

import base64
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy import Dialect, Text, TypeDecorator

from settings import get_settings
from tenants.errors import InternalFault
from tenants.secret_files import create_once


class SealedText(TypeDecorator[str]):
    """A text column that is encrypted in the database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else seal(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else unseal(value)


def seal(text: str) -> str:
    """The text under the newest key."""
    return _box().encrypt(text.encode("utf-8", "surrogatepass")).decode()


def unseal(sealed: str) -> str:
    """The text again. Raises `InternalFault` with the code `data_key_wrong` when none of the keys is its own."""
    try:
        return _box().decrypt(sealed).decode("utf-8", "surrogatepass")
    except InvalidToken as foreign:
        raise InternalFault("data_key_wrong") from foreign


def forget_keys() -> None:
    """Read the keys anew at their next use."""
    _made.cache_clear()


def _box() -> MultiFernet:
    settings = get_settings()
    return _made(settings.data_keys.get_secret_value(), settings.data_dir)


@lru_cache(maxsize=4)
def _made(given: str, data_dir: Path) -> MultiFernet:
    secrets = [secret.strip() for secret in given.split(",") if secret.strip()] or [_own(data_dir)]
    return MultiFernet(Fernet(base64.urlsafe_b64encode(sha256(secret.encode()).digest())) for secret in secrets)


def _own(data_dir: Path) -> str:
    """The installation's own secret, created when there is none."""
    path = data_dir / "keys" / "data.key"
    if not path.exists():
        create_once(path, token_urlsafe(32))
    return path.read_text(encoding="ascii")
