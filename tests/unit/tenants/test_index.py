"""Opening one tenant's collection keeps no other tenant waiting."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Event

import pytest

from settings import Settings
from tenants import index
from tenants.accounts.registry import Placement, Registry
from tenants.core.context import Tenant, acting_as
from tenants.index import Collection
from tenants.index.qdrant_edge import EdgeCollection, EdgeFolder

PATIENCE_SECONDS = 30


class SlowFolder:
    """`EdgeFolder.open` that takes as long as a test wants for the tenant `slow`, and counts its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.may_end = Event(), Event()
        self.opened: list[str] = []
        usual = EdgeFolder.open

        def open_slowly(
            folder: EdgeFolder, placement: Placement, tenant_id: str, encoder: str, dimensions: int = 0
        ) -> EdgeCollection:
            self.opened.append(tenant_id)
            if tenant_id == "slow":
                self.began.set()
                assert self.may_end.wait(PATIENCE_SECONDS)
            return usual(folder, placement, tenant_id, encoder, dimensions)

        monkeypatch.setattr(EdgeFolder, "open", open_slowly)


@pytest.fixture
def slow_folder(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> SlowFolder:
    for tenant_id in ("slow", "quick"):
        Registry(installation).add(tenant_id)
        with acting_as(Tenant(tenant_id, "tests")):
            index.open_collection(create=True)
    index.close_all()
    return SlowFolder(monkeypatch)


def opened(tenant_id: str) -> Collection:
    with acting_as(Tenant(tenant_id, "tests")):
        return index.open_collection()


def test_a_slowly_opening_collection_delays_no_other(slow_folder: SlowFolder) -> None:
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(copy_context().run, opened, "slow")
        assert slow_folder.began.wait(PATIENCE_SECONDS)
        quick = pool.submit(copy_context().run, opened, "quick")
        try:
            assert quick.result(PATIENCE_SECONDS).count() == 0
            assert not slow.done()
        finally:
            slow_folder.may_end.set()
        assert slow.result(PATIENCE_SECONDS).count() == 0


def test_a_collection_is_opened_once_however_many_ask_for_it(slow_folder: SlowFolder) -> None:
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(copy_context().run, opened, "slow") for _ in range(4)]
        assert slow_folder.began.wait(PATIENCE_SECONDS)
        slow_folder.may_end.set()
        assert len({id(item.result(PATIENCE_SECONDS)) for item in waiting}) == 1
    assert slow_folder.opened == ["slow"]
