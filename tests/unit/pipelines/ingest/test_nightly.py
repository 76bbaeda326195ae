"""The nightly check: schedule, tenants, and limits."""

import logging
from contextvars import Context
from itertools import count
from threading import Event

import pytest

from components.ingest.reconcile import Findings
from pipelines.ingest import maintenance
from pipelines.ingest.library import Library
from pipelines.ingest.maintenance import NightlyCheck
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.index import open_collection
from tenants.work import locks
from tests.unit.pipelines.ingest.stored import article, check_consistent, hits


def test_every_tenant_is_put_right(tenant: Tenant, ingest: Ingest, caplog: pytest.LogCaptureFixture) -> None:
    Registry().add("globex")
    Registry().add("empty")
    for tenant_id in ("acme", "globex"):
        with acting_as(Tenant(tenant_id, "tests")):
            ingest.run([article("a")])
            open_collection().delete([hits()[0].id])
    with caplog.at_level(logging.INFO, "opora.maintenance"):
        NightlyCheck(Library(ingest.rewrite)).check_all(Event())
    for tenant_id in ("acme", "globex"):
        with acting_as(Tenant(tenant_id, "tests")):
            check_consistent()
    assert sorted(record.levelname for record in caplog.records) == ["INFO", "WARNING", "WARNING"]


class _Watched(Library):
    """Records the checked tenants, never waits, and fails for one tenant."""

    def __init__(self, ingest: Ingest) -> None:
        super().__init__(ingest.rewrite)
        self.checked: list[str] = []

    def check(self, *, mend: bool = False, patience: float = 0) -> Findings:
        self.checked.append(context.current().tenant_id)
        if self.checked[-1] == "broken":
            raise RuntimeError("secret")
        return super().check(mend=mend, patience=0)


def test_tenants_not_reached_are_checked_first_the_next_night(
    tenant: Tenant, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    Registry().add("globex")
    Registry().add("zeta")
    clock = count()
    monkeypatch.setattr(maintenance, "monotonic", lambda: next(clock))
    library = _Watched(ingest)
    check = NightlyCheck(library, max_seconds=2.5)
    for _ in range(3):
        check.check_all(Event())
    assert library.checked == ["acme", "globex", "zeta", "acme", "globex", "zeta"]


def test_a_tenant_that_is_busy_or_broken_does_not_stop_the_others(
    tenant: Tenant, ingest: Ingest, caplog: pytest.LogCaptureFixture
) -> None:
    Registry().add("broken")
    Registry().add("zeta")

    def during() -> None:
        with acting_as(Tenant("acme", "elsewhere")), locks.ingesting():
            Context().run(NightlyCheck(_Watched(ingest)).check_all, Event())

    with caplog.at_level(logging.INFO, "opora.maintenance"):
        Context().run(during)
    messages = [record.getMessage() for record in caplog.records]
    assert "left for later: documents_busy" in messages[0]
    assert "RuntimeError" in messages[1]
    assert "'zeta': clean" in messages[2]
    assert "secret" not in " ".join(messages)
