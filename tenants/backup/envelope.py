"""File format of a backup: a zip of parts, encrypted by age (https://age-encryption.org/v1).

Threat: a backup is stolen or modified. age encrypts and authenticates. The content is encrypted to a key of the
backup, and that key to the operator's: a passphrase, or an age key pair. The public key, `age1…`, can take backups
but not read them; the secret key, `AGE-SECRET-KEY-1…`, can do both.
Without this program: unzip, `age -d key.age > key` (with `-i` for a pair), `age -d -i key content.age > content.zip`.
"""

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from pydantic import BaseModel, ConfigDict
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

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FORMAT = 1
MANIFEST = "manifest.json"
"""Part that lists the others. It is written last, so a truncated backup has none."""

_KEY, _CONTENT = "key.age", "content.age"
_BLOCK = 1 << 20
_PUBLIC, _SECRET = "age1", "AGE-SECRET-KEY-1"

Part: TypeAlias = tuple[str, Iterable[bytes]]
"""A part's name, and its content piece by piece."""


class Manifest(BaseModel):
    """The contents of a backup.

    :param format: of the file; a newer one cannot be read here.
    :param opora: the version that took it.
    :param revision: of the database's schema.
    :param started_at: everything acknowledged before is in it, and so is every erasure.
    :param rows: how many, by table.
    :param checksums: SHA-256 of each part, by name.
    :param sealed: a text under the key that encrypts columns, to tell whether an installation has that key.
    """

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    opora: str = version("opora")
    revision: str
    started_at: datetime
    rows: dict[str, int]
    checksums: dict[str, str]
    sealed: str


def write(path: Path, key: str, parts: Iterable[Part], last: Callable[[Mapping[str, str]], Part]) -> None:
    """Write the file: it appears whole, or not at all.

    :param last: makes the last part from the SHA-256 of those before.
    :raises CallerError: `backup_exists`, `backup_unwritable`.
    """
    if path.exists():
        raise CallerError("backup_exists", path=str(path))
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
            _encrypt(file, key, _zipped(parts, last))
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except OSError as failed:
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
    with CallerError("backup_damaged", path=name).instead_of(BadZipFile, KeyError, EOFError), parts.open(name) as part:
        while block := part.read(_BLOCK):
            digest.update(block)
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
    with CallerError("backup_key_wrong").instead_of(IdentityError, RecipientError):
        if _is_secret(key):
            sealed = encrypt(content, [x25519.Identity.from_str(key).to_public()])
        elif key.startswith(_PUBLIC):
            sealed = encrypt(content, [x25519.Recipient.from_str(key)])
        else:
            sealed = passphrase.encrypt(content, key)
    return bytes(sealed)


def _is_secret(key: str) -> bool:
    return key.startswith(_SECRET)


def _encrypt(file: io.BufferedRandom, key: str, pieces: Iterator[bytes]) -> None:
    identity, source = x25519.Identity.generate(), _Source(pieces)
    with ZipFile(file, "w", ZIP_STORED) as outer:
        outer.writestr(_KEY, _sealed(identity, key))
        with outer.open(_CONTENT, "w", force_zip64=True) as sink:
            try:
                encrypt_io(source, sink, [identity.to_public()])
            except EncryptError as failed:
                raise source.fault or OSError(str(failed)) from failed


def _zipped(parts: Iterable[Part], last: Callable[[Mapping[str, str]], Part]) -> Iterator[bytes]:
    sink, checksums = _Sink(), dict[str, str]()
    with ZipFile(sink, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts:
            digest = sha256()
            with archive.open(name, "w", force_zip64=True) as member:
                for piece in content:
                    member.write(piece)
                    digest.update(piece)
                    yield sink.take()
            checksums[name] = digest.hexdigest()
        name, content = last(checksums)
        archive.writestr(name, b"".join(content))
    yield sink.take()


class _Sink(io.RawIOBase):
    """Buffers written bytes until `take`."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: "bytes | bytearray | memoryview", /) -> int:  # type: ignore[override]  # zipfile writes these
        self._written += data
        return len(data)

    def take(self) -> bytes:
        taken, self._written = bytes(self._written), bytearray()
        return taken


class _Source(io.RawIOBase):
    """Pieces as a file. age says only that reading failed, so why is kept in `fault`."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.fault: Exception | None = None
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        target = memoryview(buffer).cast("B")
        try:
            while not self._rest:
                self._rest = memoryview(next(self._pieces))
        except StopIteration:
            return 0
        except Exception as fault:
            self.fault = fault
            raise
        size = min(len(target), len(self._rest))
        target[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
