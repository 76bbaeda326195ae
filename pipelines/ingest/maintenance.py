"""Maintenance of all tenants: damaged indexes are written anew from the kept texts, and every night is checked.

At night: check and repair records, index and lexicon, find contradictions, tidy up the files of chats, and move tenants
whose size asks for another collection (`OPORA_PLACEMENT=tiered`).
"""

import logging
from collections.abc import Callable
from functools import partial
from threading import Event
from time import monotonic

from components.ingest.comparison import compare_some
from pipelines.ingest.library import Library
from tenants import index
from tenants.accounts.registry import Registry
from tenants.chats import files
from tenants.core import fairness
from tenants.core.batches import batches
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain, trail
from tenants.knowledge import generations
from tenants.knowledge.generations import Current
from tenants.storage import database
from tenants.work import jobs

log = logging.getLogger("opora.maintenance")

NEVER = -1
"""Hour of no nightly check."""
MAX_SECONDS = 3_600.0
"""Time limit of one night's work. Skipped tenants come first the next night."""
_RETRY_SECONDS = 60.0
_LISTS = ("orphans", "incomplete", "misdescribed", "uploads")


class Mender:
    """Looks at every tenant's index, when the service starts and while it serves."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._verified = False

    def mend_all(self, closing: Event) -> bool:
        """Look at every tenant once. Returns whether all indexes are whole now."""
        healthy = True
        for tenants in batches(Registry().list()):
            unseen = [tenant.tenant_id for tenant in tenants if not index.is_open(tenant)]
            known = generations.current_of(unseen) if unseen else {}
            empty = {tenant_id for tenant_id, current in known.items() if current == (None, 0)}
            for tenant_id in (tenant.tenant_id for tenant in tenants if tenant.tenant_id not in empty):
                if closing.is_set():
                    return False
                fairness.yield_to_questions()
                healthy &= _done("mending", tenant_id, partial(self._mend, known.get(tenant_id)))
        return healthy

    def run(self, closing: Event) -> float | None:
        """Look at every tenant, and verify the records the first time.

        :returns: the seconds until the next look, if it is due earlier because an index is still damaged.
        """
        if not self._verified:
            self._verified = True
            try:
                database.verify()
            except Exception as error:
                log.error("the records: %s", trail(error))
        return None if self.mend_all(closing) else _RETRY_SECONDS

    def _mend(self, known: Current | None, tenant_id: str) -> None:
        damage = index.damage(known)
        if damage is not None:
            chunks = self._library.check(mend=True).chunks
            log.warning("the index of %r was %s and holds %d chunks again", tenant_id, damage, chunks)


class NightlyCheck:
    """Checks the tenants one after the other, and goes on with the others the next night."""

    def __init__(self, library: Library, *, max_seconds: float = MAX_SECONDS) -> None:
        self._library = library
        self._max_seconds = max_seconds
        self._reached = ""

    def check_all(self, closing: Event) -> None:
        """Check one tenant after the other until all are done, the time is up, or the process stops."""
        until = monotonic() + self._max_seconds
        ids = [tenant.tenant_id for tenant in Registry().list()]
        # Those that were not reached the last night come first.
        for tenant_id in sorted(ids, key=lambda tenant: tenant <= self._reached):
            if closing.is_set() or monotonic() >= until:
                return
            _done("nightly check", tenant_id, self._check)
            self._reached = tenant_id

    def _check(self, tenant_id: str) -> None:
        findings = self._library.check(mend=True)
        compare_some()
        files.tidy()
        if generations.move_due() and not jobs.open_jobs():
            jobs.add(jobs.new_id(), "rebuild", ())
        differences = {name: len(ids) for name in _LISTS if (ids := getattr(findings, name))}
        level = logging.INFO if findings.clean else logging.WARNING
        log.log(level, "nightly check of %r: %s", tenant_id, differences or "clean")


def _done(task: str, tenant_id: str, work: Callable[[str], None]) -> bool:
    """Do the work as the tenant. A failure is logged, because the others' work goes on: False then."""
    try:
        with acting_as(Tenant(tenant_id, task)):
            work(tenant_id)
    except TryAgain as busy:
        log.warning("%s of %r is left for later: %s", task, tenant_id, busy.code)
        return False
    except Exception as error:
        log.error("%s of %r: %s", task, tenant_id, trail(error))
        return False
    return True
