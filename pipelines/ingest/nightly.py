"""Nightly maintenance of each tenant: check and repair records, index and lexicon, find contradictions, tidy up the
files of chats, and move tenants whose size asks for another collection (`OPORA_PLACEMENT=tiered`)."""

import logging
from threading import Event
from time import monotonic

from components.ingest.comparison import compare_some
from pipelines.ingest.library import Library
from tenants.accounts.registry import Registry
from tenants.chats import files
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain, trail
from tenants.knowledge import generations
from tenants.work import jobs

log = logging.getLogger("opora.nightly")

NEVER = -1
"""Hour of no nightly check."""
MAX_SECONDS = 3_600.0
"""Time limit of one night's work. Skipped tenants come first the next night."""


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
        for tenant_id in [tenant for tenant in ids if tenant > self._reached] + [
            tenant for tenant in ids if tenant <= self._reached
        ]:
            if closing.is_set() or monotonic() >= until:
                return
            self._check(tenant_id)
            self._reached = tenant_id

    def _check(self, tenant_id: str) -> None:
        try:
            with acting_as(Tenant(tenant_id, "nightly")):
                findings = self._library.check(mend=True)
                compare_some()
                files.tidy()
                if generations.move_due() and not jobs.open_jobs():
                    jobs.add(jobs.new_id(), "rebuild", ())
        except TryAgain as busy:
            log.info("nightly check of %r left out: %s", tenant_id, busy.code)
        except Exception as error:
            log.error("nightly check of %r: %s", tenant_id, trail(error))
        else:
            differences = {name: len(ids) for name in _LISTS if (ids := getattr(findings, name))}
            level = logging.INFO if findings.clean else logging.WARNING
            log.log(level, "nightly check of %r: %s", tenant_id, differences or "clean")


_LISTS = ("orphans", "incomplete", "misdescribed", "uploads")
