"""Uploads that wait in the database: whole, in order, their tenant's alone, and not for ever."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.work import upload_pieces
from tenants.work.upload_pieces import ABANDONED, Pieces

NAMES = ("а.md", "папка/б.md")


@pytest.fixture(autouse=True)
def _acme(installation: Settings) -> Iterator[None]:
    for tenant_id in ("acme", "rival"):
        Registry(installation).add(tenant_id)
    with acting_as(Tenant("acme", "anna")):
        arriving = Pieces("job-1")
        for data in (b"1", b"2", b"3"):
            for name in NAMES:
                arriving.add(name, data)
        yield


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_come_whole_in_place_of_what_another_attempt_left(tmp_path: Path) -> None:
    folder = tmp_path / "job-1"
    folder.mkdir()
    (folder / "а.md").write_bytes(b"half of it")
    for _ in range(2):
        upload_pieces.fetch("job-1", folder)
        assert files(folder) == dict.fromkeys(NAMES, b"123")


def test_what_is_not_in_the_database_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "job-1"
    folder.mkdir()
    (folder / "а.md").write_bytes(b"here")
    upload_pieces.fetch("job-2", folder)
    with acting_as(Tenant("rival", "boris")):
        upload_pieces.fetch("job-1", folder)
        upload_pieces.remove("job-1")
    assert files(folder) == {"а.md": b"here"}
    upload_pieces.fetch("job-1", folder)
    assert files(folder) == dict.fromkeys(NAMES, b"123")


def test_an_upload_of_which_nothing_comes_any_more_is_known(tmp_path: Path) -> None:
    later = datetime.now(UTC) + ABANDONED
    assert list(upload_pieces.silent(later - timedelta(minutes=1))) == []
    assert list(upload_pieces.silent(later + timedelta(minutes=1))) == ["job-1"]
    upload_pieces.remove("job-1")
    assert list(upload_pieces.silent(later + timedelta(minutes=1))) == []
    upload_pieces.fetch("job-1", tmp_path / "job-1")
    assert not (tmp_path / "job-1").exists()
