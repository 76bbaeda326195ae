"""Installations for tests: a data folder each, with an empty database in it."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from settings import Settings, get_settings
from tenants import index
from tenants.access import revocations
from tenants.access.tokens import TokenVerifier
from tenants.core.context import acting_as
from tenants.core.errors import Unauthenticated
from tenants.storage import database
from tenants.work import locks


@contextmanager
def installed(folder: Path, filled: Path | None = None) -> Iterator[Settings]:
    """Set up this process's installation in `folder` until the block ends.

    :param filled: a closed installation to begin with, copied: that takes a tenth of the time of ingestion.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if filled is None:
        (folder / "opora.db").write_bytes(_empty_database())
    else:
        shutil.copytree(filled, folder, copy_function=_copy_sparsely, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPORA_DATA_DIR", str(folder))
        get_settings.cache_clear()
        try:
            yield get_settings()
        finally:
            index.close_all()
            locks.close_all()
            database.close_all()
    get_settings.cache_clear()


def _copy_sparsely(source: str, target: str) -> None:
    # Of the 50 MB that the engine reserves for an index, tests use few.
    now = Path(source).stat()
    with Path(target).open("wb") as written:
        for start, block in _blocks(source, now.st_mtime_ns):
            written.seek(start)
            written.write(block)
        written.truncate(now.st_size)
    shutil.copymode(source, target)


@cache
def _blocks(source: str, changed_at: int) -> list[tuple[int, bytes]]:
    # Read once: an installation is copied for each test of a file.
    size = 1 << 16
    with Path(source).open("rb") as read:
        blocks = enumerate(iter(lambda: read.read(size), b""))
        return [(number * size, block) for number, block in blocks if block.strip(b"\0")]


@cache
def _empty_database() -> bytes:
    # Created once: the migration takes a tenth of a second, and hundreds of tests need its result.
    with TemporaryDirectory() as folder:
        settings = Settings.model_validate({"data_dir": Path(folder)})
        database.migrate(settings)
        database.close_all()
        return (Path(folder) / "opora.db").read_bytes()


def refused(raw: str, settings: Settings) -> bool:
    """Return whether a token is refused as revoked."""
    caller = TokenVerifier(settings).verify(raw)
    with acting_as(caller):
        try:
            asyncio.run(revocations.check(caller))
        except Unauthenticated as error:
            return error.code == "token_revoked"
    return False
