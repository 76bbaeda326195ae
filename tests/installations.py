"""Installations for tests: a data folder each, with an empty database in it."""

import asyncio
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
def installed(folder: Path) -> Iterator[Settings]:
    """Set up this process's installation in `folder` until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opora.db").write_bytes(_empty_database())
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
