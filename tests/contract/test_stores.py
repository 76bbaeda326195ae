"""Every store made to fail in every way: each fault has its declared outcome, and nothing acknowledged is lost.

A service that is killed with a store is the bench's (`python -m tests.stores`); in tests, for `sqlite` and `spool`
`test_a_killed_process_loses_no_turn_that_it_answered` and `test_a_full_disk_and_a_kill_lose_no_acknowledged_record`
(`tests/unit/tenants/audit/test_recorder.py`), for `edge` `tests/unit/pipelines/ingest/test_session.py`, for `uploads`
`test_acknowledged_uploads_survive_a_kill` (`tests/service/test_jobs.py`).
"""

from collections.abc import Iterator

import pytest

from tests.pages import PAGES
from tests.store_faults import reachable
from tests.stores import FAULTS, STORES, Fault, Stage, Store, declared, markdown, seen_of, settings_of

CELLS = [
    (store, fault)
    for store in STORES
    for fault in FAULTS
    if fault != "killed" or store in {"postgresql", "redis", "qdrant"}
]


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A service with the store, shared by the tests of one store."""
    store: Store = request.param
    urls: dict[Store, str] = {}
    if store in {"postgresql", "redis"}:
        urls[store] = request.getfixturevalue("postgres_url" if store == "postgresql" else "redis_url")
    with (
        reachable(store, urls) as reached,
        Stage.open(**settings_of(store, reached)) as stage,
    ):
        yield stage


def test_every_store_and_fault_is_declared() -> None:
    assert len(declared()) == len(STORES) * len(FAULTS) == 49
    assert all(cell.words for cell in declared().values())


def test_the_guide_has_the_whole_table() -> None:
    assert markdown() in PAGES["docs/operate/backup.md"], f"put this into docs/operate/backup.md:\n{markdown()}"


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("stage", "store", "fault"),
    [(store, store, fault) for store, fault in CELLS],
    indirect=["stage"],
    scope="module",
)
@pytest.mark.chaos
def test_a_fault_has_its_declared_outcome(stage: Stage, store: Store, fault: Fault) -> None:
    seen = seen_of(store, fault, stage)
    assert seen.outcome == declared()[store, fault].outcome
    assert seen.lost == ()
