"""The store of files: paths of tenants, unknown kinds of stores, and replicas with different folders."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from settings import Settings, get_settings
from tenants.access import installation as replicas
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import CallerError, InternalFault
from tenants.storage import database, files


@pytest.fixture(autouse=True)
def _acme(installation: Settings) -> Iterator[None]:
    with acting_as(Tenant("acme", "anna")):
        yield


@pytest.mark.parametrize("name", ["..", "../globex/a", "a/../b", "/etc/passwd", "a//b", "", ".", "a\\b", "a\0b"])
def test_a_path_out_of_the_tenants_folder_is_refused(name: str) -> None:
    with pytest.raises(InternalFault, match="file_path_invalid"):
        files.path("uploads", name)


def test_tenants_have_different_folders_even_by_careless_names() -> None:
    folders = set()
    for tenant_id in ("acme", "ACME", "ёлка", "елка", "..", "a/b"):
        with acting_as(Tenant(tenant_id, "anna")):
            folders.add(files.path("uploads"))
    assert {str(Path(folder).parent) for folder in folders} == {str(get_settings().data_dir.resolve() / "uploads")}
    assert len(folders) == 6


def test_an_unknown_store_is_refused_at_the_start(installation: Settings) -> None:
    with pytest.raises(CallerError, match="files_url_invalid"):
        files.check(installation.model_copy(update={"files_url": "s4://bucket"}))


def test_replicas_with_different_folders_are_refused(
    installation: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "is_shared", lambda _settings=None: True)
    shared = {"database_url": installation.database, "data_keys": SecretStr("k" * 32)}
    first, second = (
        installation.model_copy(update={**shared, "data_dir": tmp_path / name}) for name in ("first", "second")
    )
    replicas.check_files(first)
    replicas.check_files(first)
    with pytest.raises(CallerError, match="files_differ"):
        replicas.check_files(second)
    for replica in (second, first):
        replicas.check_files(replica.model_copy(update={"files_url": f"file://{tmp_path}/both"}))
