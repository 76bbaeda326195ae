"""Checks of this machine: Python, the data folder, the disk, secrets and the clock."""

import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from shlex import quote
from time import time

from packaging.requirements import Requirement

from settings import ROOT, Settings
from tenants.access.keys import KeyRing
from tenants.backup import restoring
from tenants.core.errors import InternalFault, OporaError
from tenants.storage import database, diagnosis, disk, sealed
from ui.doctor.finding import SECONDS, Finding, of_error, ok, problem, warning

_PYTHON = (3, 11)
_OTHERS = 0o077
_INSTALL = "make setup" if (ROOT / "Makefile").exists() else "pip install --force-reinstall opora"
_GENERATE = 'export {name}="$(openssl rand -base64 32)"'
_AMPLE = 2


def check_python(settings: Settings) -> Iterator[Finding]:  # noqa: ARG001 - all checks take the settings
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _PYTHON:
        yield problem("python", "python_old", version=version, needed=".".join(map(str, _PYTHON)))
        return
    wrong = sorted(_unfit_packages())
    if wrong:
        yield problem("python", "packages_unfit", _INSTALL, packages=", ".join(wrong))
    else:
        yield ok("python", "python", version=version)


def check_folder(settings: Settings) -> Iterator[Finding]:
    folder = settings.data_dir.resolve()
    if not folder.exists():
        if os.access(_existing(folder), os.W_OK | os.X_OK):
            yield ok("folder", "folder_absent", folder=str(folder))
        else:
            yield problem("folder", "folder_unwritable", _owned(folder), folder=str(folder))
    elif not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield problem("folder", "folder_unwritable", _owned(folder), folder=str(folder))
    elif folder.stat().st_mode & _OTHERS:
        yield warning("folder", "folder_open", f"chmod 700 {quote(str(folder))}", folder=str(folder))
    else:
        yield ok("folder", "folder", folder=str(folder))
    try:
        restoring.check_finished(settings)
    except OporaError as unfinished:
        yield of_error("folder", unfinished)


def check_disk(settings: Settings) -> Iterator[Finding]:
    free, reserve = disk.free(_existing(settings.data_dir.resolve())), settings.disk_reserve_bytes
    gigabytes, kept = free / 1e9, reserve / 1e9
    if free < reserve:
        yield problem("disk", "disk_full", free=gigabytes, reserve=kept)
    elif free < _AMPLE * reserve:
        yield warning("disk", "disk_low", free=gigabytes, reserve=kept)
    else:
        yield ok("disk", "disk", free=gigabytes)


def check_secrets(settings: Settings) -> Iterator[Finding]:
    sound = True
    for check in (sealed.check_given, lambda given: KeyRing(given).current()):
        try:
            check(settings)
        except InternalFault as unreadable:
            sound = False
            yield problem("secrets", unreadable.code, file=str(settings.token_jwks_file or settings.data_dir / "keys"))
        except OporaError as weak:
            sound = False
            name = "OPORA_DATA_KEYS" if weak.code.startswith("data") else "OPORA_TOKEN_KEYS"
            yield of_error("secrets", weak, _GENERATE.format(name=name))
    folder = settings.data_dir.resolve() / "keys"
    if folder.is_dir() and any(path.stat().st_mode & _OTHERS for path in folder.iterdir()):
        sound = False
        yield problem("secrets", "keys_open", f"chmod -R go= {quote(str(folder))}", folder=str(folder))
    if database.is_shared(settings) and not settings.data_keys.get_secret_value():
        sound = False
        yield warning("secrets", "data_keys_own", _GENERATE.format(name="OPORA_DATA_KEYS"))
    if sound:
        yield ok("secrets", "secrets")


def check_clock(settings: Settings) -> Iterator[Finding]:
    """Compare the clock with those of the database and Redis; without servers, with the last change of the records."""
    ahead = {name: state.ahead_seconds for name, state in _clocks(settings) if state.ahead_seconds is not None}
    records = settings.data_dir / "opora.db"
    if not ahead and records.exists() and (future := records.stat().st_mtime - time()) > 0:
        ahead = {records.name: future}
    off = {name: seconds for name, seconds in ahead.items() if abs(seconds) > settings.token_skew_seconds}
    for name, seconds in off.items():
        yield problem("clock", "clock_off", "sudo timedatectl set-ntp true", name=name, seconds=round(abs(seconds)))
    if not off:
        yield ok("clock", "clock" if ahead else "clock_alone", names=", ".join(ahead))


def _clocks(settings: Settings) -> Iterator[tuple[str, diagnosis.StoreState]]:
    if database.is_shared(settings):
        yield "PostgreSQL", diagnosis.database_state(settings, SECONDS)
    if url := settings.redis_url.get_secret_value():
        yield "Redis", diagnosis.redis_state(url, SECONDS)


def _unfit_packages() -> Iterator[str]:
    try:
        required = metadata.requires("opora") or ()
    except metadata.PackageNotFoundError:  # run from a checkout
        return
    for requirement in map(Requirement, required):
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            found = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            found = ""
        if not found or not requirement.specifier.contains(found, prereleases=True):
            yield f"{requirement.name}{requirement.specifier}"


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _owned(folder: Path) -> str:
    place = quote(str(folder))
    return f'sudo mkdir -p {place} && sudo chown "$(id -u):$(id -g)" {place}'
