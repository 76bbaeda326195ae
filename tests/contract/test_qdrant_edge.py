"""Features of the embedded engine: exclusive access, and compaction without loss."""

import subprocess
import sys
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import pytest

from settings import Settings, get_settings
from tenants import index
from tenants.accounts.registry import Placement, Registry
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, TryAgain
from tenants.core.points import Point
from tenants.index import open_collection, qdrant_edge
from tenants.storage import disk
from tenants.work import locks
from tests.turns import question_in_work

ACME = Tenant("acme", "anna")
OPENING = """
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy
from tenants.index import open_collection
with acting_as(Tenant("acme", "anna")):
    try:
        print(open_collection().count())
    except Busy as busy:
        print(busy.code)
"""


def points(numbers: range) -> list[Point]:
    return [
        Point(str(uuid5(NAMESPACE_OID, str(number))), {"text-sparse": {1: 1.0, number: 2.0}}, {"content": str(number)})
        for number in numbers
    ]


def opened_elsewhere() -> str:
    done = subprocess.run([sys.executable, "-c", OPENING], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def _acme(installation: Settings) -> None:
    Registry(installation).add("acme")


def test_a_second_process_is_refused_until_the_first_closes() -> None:
    with acting_as(ACME):
        open_collection(create=True).upsert(points(range(5)))
    assert opened_elsewhere() == "data_in_use"
    index.close_all()
    assert opened_elsewhere() == "5"


def test_a_closed_collection_says_try_again() -> None:
    with acting_as(ACME):
        collection = open_collection(create=True)
        index.close_all()
        with pytest.raises(Busy):
            collection.count()
        assert open_collection().count() == 0


def test_compacting_on_close_keeps_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(qdrant_edge, "_COMPACT_KILOBYTES", 1)
    with acting_as(ACME):
        collection = open_collection(create=True)
        collection.upsert(points(range(1_000)))
        collection.delete([point.id for point in points(range(600))])
        before = collection.search({"text-sparse": {1: 1.0, 900: 1.0}}, limit=3)["text-sparse"][0]
        growing = set(tmp_path.rglob("segment.json"))
        index.close_all()
        assert set(tmp_path.rglob("segment.json")) != growing
        again = open_collection()
        assert again.count() == 400
        after = again.search({"text-sparse": {1: 1.0, 900: 1.0}}, limit=3)["text-sparse"][0]
        assert (after.id, after.payload) == (before.id, before.payload)
        assert after.score < before.score  # removed points count in the frequencies until they are compacted away
        assert {hit.payload["content"] for hit in again.scan()} == {str(number) for number in range(600, 1_000)}
        again.upsert(points(range(10)))
        assert again.count() == 410


def test_written_chunks_are_compacted_in_quiet_moments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(qdrant_edge, "_COMPACT_KILOBYTES", 1)
    monkeypatch.setattr(qdrant_edge, "_COMPACT_AFTER", 500)

    def segments() -> int:
        return len(set(tmp_path.rglob("segment.json")))

    with acting_as(ACME):
        collection = open_collection(create=True)
        collection.upsert(points(range(400)))
        growing = segments()
        with question_in_work():
            collection.upsert(points(range(400, 700)))
            assert segments() == growing
        monkeypatch.setattr(fairness, "IDLE_SECONDS", -1.0)
        collection.upsert(points(range(700, 1_000)))
        assert segments() > growing
        assert {hit.payload["content"] for hit in collection.scan()} == {str(number) for number in range(1_000)}


def test_a_journal_that_the_engine_lost_costs_no_write(tmp_path: Path) -> None:
    with acting_as(ACME):
        collection = open_collection(create=True)
        collection.upsert(points(range(10)))
        lost = [*tmp_path.rglob("tracker_journal.dat")]
        assert lost
        for journal in lost:
            journal.write_bytes(b"")
        collection.upsert(points(range(5, 30)))
        assert {hit.payload["content"] for hit in collection.scan()} == {str(number) for number in range(30)}
        index.close_all()
        assert open_collection().count() == 30


def test_losing_the_race_to_create_is_fine(tmp_path: Path) -> None:
    folder = qdrant_edge.EdgeFolder(tmp_path / "shards")
    for _ in range(2):
        folder.create(Placement("acme"), "acme")
    assert [path.name for path in folder.root.iterdir()] == ["acme~g000001"]


def test_a_draft_of_a_collection_is_none(tmp_path: Path) -> None:
    (tmp_path / "shards" / "acme~g000001" / "shard").mkdir(parents=True)
    assert not qdrant_edge.EdgeFolder(tmp_path / "shards").exists(Placement("acme"))


def test_a_full_disk_refuses_writes_and_allows_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    with acting_as(ACME):
        collection = open_collection(create=True)
        collection.upsert(points(range(5)))
        monkeypatch.setattr(disk, "free", lambda folder: get_settings().disk_reserve_bytes - 1)
        with pytest.raises(TryAgain, match="storage_full"):
            collection.upsert(points(range(5, 10)))
        with pytest.raises(TryAgain, match="storage_full"):
            collection.describe({point.id: {} for point in points(range(1))})
        assert len(collection.search({"text-sparse": {1: 1.0}}, limit=10)["text-sparse"]) == 5
        collection.delete([point.id for point in points(range(1))])
        assert collection.count() == 4
        index.close_all()
        assert open_collection().count() == 4


def test_a_second_service_is_refused_until_the_first_ends() -> None:
    look = "from settings import get_settings; from tenants.work import locks; locks.hold_index(get_settings())"
    locks.hold_index(get_settings())
    locks.hold_index(get_settings())
    refused = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=False)
    assert "data_in_use" in refused.stderr
    locks.close_all()
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, check=False).returncode == 0
