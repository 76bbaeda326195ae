"""File format of a backup: a zip of parts, encrypted by age (https://age-encryption.org/v1).

Threat: a backup is stolen or modified. age encrypts and authenticates. The content is encrypted to a key of the
backup, and that key to the operator's: a passphrase, or an age key pair. The public key, `age1…`, can take backups
but not read them; the secret key, `AGE-SECRET-KEY-1…`, can do both.
Without this program: unzip, `age -d key.age > key` (with `-i` for a pair), `age -d -i key content.age > content.zip`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TypeAlias
from uuid import uuid4
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from pyrage import (
    DecryptError,
    EncryptError,
    IdentityError,
    RecipientError,
    decrypt,
    decrypt_io,
    encrypt,
    encrypt_io,
    passphrase,
    x25519,
)

from tenants.core.errors import CallerError

_KEY, _CONTENT = "key.age", "content.age"
_BLOCK = 1 << 20
_PUBLIC, _SECRET = "age1", "AGE-SECRET-KEY-1"

Part: TypeAlias = tuple[str, Iterable[bytes]]
"""A part's name, and its content piece by piece."""


def write(path: Path, key: str, parts: Iterable[Part], last: Callable[[Mapping[str, str]], Part], room: Path) -> None:
    """Write the file: it appears whole, or not at all.

    :param last: makes the last part from the SHA-256 of those before.
    :param room: a folder for the content before it is encrypted, in an unnamed file.
    :raises CallerError: `backup_exists`, `backup_unwritable`.
    """
    if path.exists():
        raise CallerError("backup_exists", path=str(path))
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with (
            TemporaryFile(dir=room) as content,
            os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file,
        ):
            _zip(content, parts, last)
            content.seek(0)
            _encrypt(content, file, key)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except (OSError, EncryptError) as failed:
        raise CallerError("backup_unwritable", path=str(path)) from failed
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def opened(path: Path, key: str, room: Path) -> Iterator[ZipFile]:
    """Yield the parts of an intact file that was encrypted with this key.

    :param room: a folder for the decrypted data, in an unnamed file.
    :raises CallerError: `path_missing`, `backup_damaged`, `backup_key_wrong`.
    """
    if not path.is_file():
        raise CallerError("path_missing", path=str(path))
    with ExitStack() as stack:
        content = stack.enter_context(TemporaryFile(dir=room))
        try:
            with ZipFile(path) as outer, outer.open(_CONTENT) as sealed:
                decrypt_io(sealed, content, [_identity(outer.read(_KEY), key)])
            parts = stack.enter_context(ZipFile(content))
        except (BadZipFile, KeyError, DecryptError, OSError, EOFError) as damaged:
            raise CallerError("backup_damaged", path=str(path)) from damaged
        yield parts


def checksum(parts: ZipFile, name: str) -> str:
    """Return the SHA-256 of a part. Raises `CallerError` with the code `backup_damaged`."""
    digest = sha256()
    try:
        with parts.open(name) as part:
            while block := part.read(_BLOCK):
                digest.update(block)
    except (BadZipFile, KeyError, EOFError) as damaged:
        raise CallerError("backup_damaged", path=name) from damaged
    return digest.hexdigest()


def _identity(sealed: bytes, key: str) -> x25519.Identity:
    try:
        opened = (
            decrypt(sealed, [x25519.Identity.from_str(key)]) if _is_secret(key) else passphrase.decrypt(sealed, key)
        )
    except (DecryptError, IdentityError) as refused:
        # The checksum of the zip was correct, so the key is wrong, not the file.
        raise CallerError("backup_key_wrong") from refused
    return x25519.Identity.from_str(opened.decode())


def _sealed(identity: x25519.Identity, key: str) -> bytes:
    content, sealed = str(identity).encode(), b""
    try:
        if _is_secret(key):
            sealed = encrypt(content, [x25519.Identity.from_str(key).to_public()])
        elif key.startswith(_PUBLIC):
            sealed = encrypt(content, [x25519.Recipient.from_str(key)])
        else:
            sealed = passphrase.encrypt(content, key)
    except (IdentityError, RecipientError) as unfit:
        raise CallerError("backup_key_wrong") from unfit
    return bytes(sealed)


def _is_secret(key: str) -> bool:
    return key.startswith(_SECRET)


def _encrypt(content: IO[bytes], file: IO[bytes], key: str) -> None:
    identity = x25519.Identity.generate()
    with ZipFile(file, "w", ZIP_STORED) as outer:
        outer.writestr(_KEY, _sealed(identity, key))
        with outer.open(_CONTENT, "w", force_zip64=True) as sink:
            encrypt_io(content, sink, [identity.to_public()])


def _zip(file: IO[bytes], parts: Iterable[Part], last: Callable[[Mapping[str, str]], Part]) -> None:
    checksums: dict[str, str] = {}
    with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts:
            digest = sha256()
            with archive.open(name, "w", force_zip64=True) as member:
                for piece in content:
                    member.write(piece)
                    digest.update(piece)
            checksums[name] = digest.hexdigest()
        name, content = last(checksums)
        archive.writestr(name, b"".join(content))
