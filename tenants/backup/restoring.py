"""Restore of an installation from a backup, all or nothing."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from pydantic import ValidationError
from sqlalchemy import delete

from settings import Settings
from tenants.audit.recorder import Recorder
from tenants.backup import envelope, rows
from tenants.backup.envelope import FORMAT, MANIFEST, Manifest
from tenants.backup.taking import FILES
from tenants.core.errors import CallerError, InternalFault
from tenants.knowledge.tables import GenerationRow
from tenants.privacy import erasures, persons, removal
from tenants.privacy.erasures import Erasure
from tenants.storage import database, files, sealed

_MARK = "restoring"
_RECORDS = "opora.db"
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of a restore: the backup's manifest, and the number of later erasures that were repeated."""

    manifest: Manifest
    erasures: int


def check_finished(settings: Settings) -> None:
    """Raise `CallerError` with the code `restore_unfinished` after an interrupted restore."""
    if (settings.data_dir / _MARK).exists():
        raise CallerError("restore_unfinished", path=str(settings.data_dir))


def restore(path: Path, settings: Settings, journals: Sequence[Path] = ()) -> Restored:
    """Set up an empty installation, without its index.

    :param journals: of erasures (`tenants.privacy.erasures`); those made after the backup are repeated.
    :raises CallerError: `backup_key_missing`, `path_missing`, `backup_key_wrong`, `backup_damaged`, `backup_newer`,
        `data_key_wrong`, `restore_not_empty`, `journal_unreadable`.
    """
    key = settings.backup_key.get_secret_value()
    if not key:
        raise CallerError("backup_key_missing")
    noted = [erasure for journal in journals for erasure in erasures.read(journal)]
    _check_empty(settings)
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with envelope.opened(path, key, settings.data_dir) as parts:
        manifest = _checked(parts, path)
        with _all_or_nothing(settings):
            for name in manifest.checksums:
                if not name.startswith(rows.FOLDER):
                    _unpack(parts, name, settings.data_dir)
            _check_data_key(manifest)
            with database.filling(manifest.revision, settings) as connection:
                rows.fill(connection, parts)
            _forget_lost_generations(settings)
    done = _erase_again(noted, manifest.started_at, settings)
    (settings.data_dir / _MARK).unlink()
    return Restored(manifest, done)


def _check_empty(settings: Settings) -> None:
    at = [settings.data_dir / name for name in (*FILES, "index", _RECORDS, _MARK)]
    for place in at:
        if place.is_file() or (place.is_dir() and any(place.iterdir())):
            raise CallerError("restore_not_empty", place=str(place))
    if not files.is_empty(settings):
        raise CallerError("restore_not_empty", place=settings.files_url or str(settings.data_dir))


def _checked(parts: ZipFile, path: Path) -> Manifest:
    """Return the manifest of a backup after verifying the checksum of every part."""
    with CallerError("backup_damaged", path=str(path)).instead_of(KeyError, ValidationError):
        manifest = Manifest.model_validate_json(parts.read(MANIFEST))
    if manifest.format > FORMAT or manifest.revision > database.HEAD:
        raise CallerError("backup_newer", version=manifest.opora)
    if {*parts.namelist()} != {MANIFEST, *manifest.checksums}:
        raise CallerError("backup_damaged", path=str(path))
    for name, digest in manifest.checksums.items():
        if envelope.checksum(parts, name) != digest:
            raise CallerError("backup_damaged", path=str(path))
    return manifest


@contextmanager
def _all_or_nothing(settings: Settings) -> Iterator[None]:
    """Undo everything if the block fails: the installation was empty before."""
    mark = settings.data_dir / _MARK
    mark.touch(mode=_MODE)
    try:
        yield
    except BaseException:
        database.close_all()
        for name in FILES:
            shutil.rmtree(settings.data_dir / name, ignore_errors=True)
        files.clear(settings)
        for leftover in settings.data_dir.glob(f"{_RECORDS}*"):
            leftover.unlink()
        sealed.forget_keys()
        mark.unlink()
        raise


def _unpack(parts: ZipFile, name: str, data_dir: Path) -> None:
    path = PurePosixPath(name)
    if len(path.parts) < 2 or ".." in path.parts or path.parts[0] not in {*FILES, *files.KINDS}:
        raise CallerError("backup_damaged", path=name)
    if path.parts[0] in files.KINDS:
        with parts.open(name) as stored:
            files.unpack(name, stored)
        return
    target = data_dir / path
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with parts.open(name) as part, os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT, _MODE), "wb") as file:
        shutil.copyfileobj(part, file)
        file.flush()
        os.fsync(file.fileno())


def _check_data_key(manifest: Manifest) -> None:
    sealed.forget_keys()
    with CallerError("data_key_wrong").instead_of(InternalFault):
        sealed.unseal(manifest.sealed)


def _forget_lost_generations(settings: Settings) -> None:
    """Delete the records of other generations: the backup has no index, and the current generation is rebuilt."""
    with database.across_tenants(settings, write=True) as session:
        session.execute(delete(GenerationRow).where(GenerationRow.state != "in_force"))


def _erase_again(noted: Sequence[Erasure], since: datetime, settings: Settings) -> int:
    # Store spooled records first, so that the erasures cover them.
    Recorder(settings).collect()
    later = [erasure for erasure in noted if erasure.at >= since]
    for erasure in later:
        if erasure.of_tenant:
            removal.remove_again(erasure)
        else:
            persons.erase_again(erasure)
    return len(later)
