"""A lost or damaged index is noticed, never read as a small one, and rebuilt from the stored texts."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import event

from components.ingest.reconcile import Findings
from pipelines.ingest import rebuild
from pipelines.ingest.library import Library
from pipelines.ingest.maintenance import Mender
from pipelines.ingest.usecase import Ingest
from settings import Settings, get_settings
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import CallerError, IndexDamaged, InternalFault, NotFound, TryAgain
from tenants.index import open_collection
from tenants.index.qdrant_edge import EdgeCollection
from tenants.storage import database
from tests.installations import installed
from tests.unit.pipelines.ingest.stored import article, check_consistent, hits

ACME = Tenant("acme", "tests")


def _lose(folder: Path) -> None:
    shutil.rmtree(folder)


def _lose_mark(folder: Path) -> None:
    (folder / "tenant.json").unlink()


def _garble_mark(folder: Path) -> None:
    (folder / "tenant.json").write_bytes(b"\x00\xff")


def _garble_segments(folder: Path) -> None:
    for file in folder.rglob("segment.json"):
        file.write_bytes(b"\x00" * 100)


def _empty_files(folder: Path) -> None:
    for file in folder.rglob("*.dat"):
        file.write_bytes(b"")


def _lose_segments(folder: Path) -> None:
    shutil.rmtree(folder / "shard" / "segments")


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "lost": (_lose, "missing"),
    "mark_lost": (_lose_mark, "missing"),
    "mark_garbled": (_garble_mark, "unreadable"),
    "segments_garbled": (_garble_segments, "unreadable"),
    "files_emptied": (_empty_files, "unreadable"),
    "segments_lost": (_lose_segments, "incomplete"),
}


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory, ingest: Ingest) -> Path:
    """A closed installation: a tenant with two articles."""
    folder = tmp_path_factory.mktemp("stocked")
    with installed(folder):
        Registry().add(ACME.tenant_id)
        with acting_as(ACME):
            ingest.run([article("a"), article("b")])
    return folder


@pytest.fixture
def installation(stocked: Path, tmp_path: Path) -> Iterator[Settings]:
    """A copy of the stocked installation."""
    with installed(tmp_path / "data", stocked) as settings:
        yield settings


@pytest.fixture
def library(installation: Settings, ingest: Ingest) -> Iterator[Library]:
    with acting_as(ACME):
        yield Library(ingest.rewrite)


@pytest.fixture(params=DAMAGE)
def damage(request: pytest.FixtureRequest, library: Library, installation: Settings) -> str:
    """Damage the tenant's index in each way; return the name of the damage."""
    inflict, word = DAMAGE[request.param]
    index.close_all()
    inflict(installation.data_dir / "index" / "acme~g000001")
    return word


def test_a_damaged_index_is_refused_and_written_anew(damage: str, library: Library) -> None:
    for _ in range(2):
        with pytest.raises(IndexDamaged):
            open_collection()
    assert (index.damage(), index.damaged()) == (damage, 1)
    assert library.check() == Findings(damage=damage)
    with pytest.raises(IndexDamaged):
        open_collection()
    assert library.check(mend=True).damage == damage
    assert index.damaged() == 0
    check_consistent()
    assert library.check().clean


@pytest.mark.parametrize("damage", ["lost", "segments_garbled"], indirect=True)
def test_whoever_writes_next_repairs_first(damage: str, ingest: Ingest) -> None:
    assert ingest.run([article("c")]).healed
    check_consistent()
    assert {hit.payload["meta"]["doc_id"] for hit in hits()} == {"a", "b", "c"}  # type: ignore[index, call-overload]


def test_the_service_repairs_by_itself_whoever_is_damaged(
    library: Library, ingest: Ingest, installation: Settings
) -> None:
    Registry().add("globex")
    with acting_as(Tenant("globex", "tests")):
        ingest.run([article("d")])
    index.close_all()
    _lose(installation.data_dir / "index" / "acme~g000001")
    mender = Mender(library)
    assert mender.mend_all(Event())
    check_consistent()
    with acting_as(Tenant("globex", "tests")):
        check_consistent()
    # While it is open: the files live on for who has them, and are gone at the next start.
    _lose(installation.data_dir / "index" / "acme~g000001")
    assert mender.mend_all(Event())
    index.close_all()
    check_consistent()


def test_a_look_at_intact_indexes_costs_two_statements(library: Library, ingest: Ingest) -> None:
    for tenant_id in ("globex", "initech", "without-articles"):
        Registry().add(tenant_id)
        if tenant_id != "without-articles":
            with acting_as(Tenant(tenant_id, "tests")):
                ingest.run([article(tenant_id)])
    index.close_all()
    statements: list[str] = []
    event.listen(database.engine(), "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    assert Mender(library).mend_all(Event())
    # The tenants, and their generations and chunks.
    assert len([statement for statement in statements if statement.startswith("SELECT")]) == 2, statements
    assert all(index.is_open(tenant) for tenant in Registry().list() if tenant.tenant_id != "without-articles")


def test_a_repair_that_is_cut_off_is_taken_up(library: Library, ingest: Ingest, installation: Settings) -> None:
    index.close_all()
    _lose(installation.data_dir / "index" / "acme~g000001")

    def cut_off(revisions: object) -> None:
        del revisions
        raise InternalFault

    with pytest.raises(InternalFault):
        Library(cut_off).check(mend=True)
    with pytest.raises(IndexDamaged):
        open_collection()
    index.close_all()
    with pytest.raises(IndexDamaged):
        open_collection()
    assert ingest.run([]).healed
    check_consistent()


def test_an_engine_that_panics_while_it_serves_is_not_asked_again(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicException(BaseException):
        """As PyO3 raises it."""

    class Shard:
        def count(self, _request: object) -> int:
            raise PanicException

        def close(self) -> None:
            raise PanicException

    collection = open_collection()
    assert isinstance(collection, EdgeCollection)
    working = collection._shard
    monkeypatch.setattr(collection, "_shard", Shard())
    with pytest.raises(InternalFault, match="index_failed"):
        collection.count()
    with pytest.raises(IndexDamaged):
        open_collection()
    working.close()
    library.check(mend=True)
    check_consistent()


def test_going_back_to_a_damaged_generation_is_refused(library: Library, ingest: Ingest) -> None:
    ingest.rebuild().finish()
    index.close_all()
    _garble_segments(get_settings().data_dir / "index" / "acme~g000001")
    with pytest.raises(NotFound, match="generation_not_kept"):
        ingest.rollback().finish()
    assert [row["number"] for row in rebuild.generations_json(ingest.encoder)["generations"]] == [2]
    check_consistent()


def test_an_index_without_its_database_is_no_new_installation(library: Library, installation: Settings) -> None:
    index.close_all()
    database.close_all()
    file = installation.data_dir / "opora.db"
    content = file.read_bytes()
    file.unlink()
    with pytest.raises(CallerError, match="database_missing"):
        database.engine()
    assert not file.exists()
    with pytest.raises(CallerError, match="database_missing"):
        database.migrate()
    file.write_bytes(content)
    check_consistent()


def test_a_database_that_disappears_takes_no_more_records(library: Library, installation: Settings) -> None:
    database.check()  # it is open
    file = installation.data_dir / "opora.db"
    file.rename(file.with_suffix(".elsewhere"))
    with pytest.raises(TryAgain, match="database_missing"):
        database.check()
    with pytest.raises(TryAgain, match="database_missing"), database.writing():
        pytest.fail("nothing may be written")
    file.with_suffix(".elsewhere").rename(file)
    database.check()


def test_a_damaged_database_is_noticed(library: Library, installation: Settings) -> None:
    database.verify()
    index.close_all()
    database.close_all()
    file = installation.data_dir / "opora.db"
    with closing(sqlite3.connect(file)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'documents'").fetchone()
    with file.open("r+b") as pages:
        # A page that is not read when the database is opened.
        pages.seek((root - 1) * size)
        pages.write(b"\x55" * size)
    with pytest.raises(TryAgain, match="database_corrupt"):
        database.verify()
    with pytest.raises(TryAgain, match="database_corrupt"):
        database.check()
    database.close_all()
    file.write_bytes(b"\x55" * 100_000)
    with pytest.raises(CallerError, match="database_corrupt"):
        database.engine()
