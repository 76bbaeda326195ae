"""Nightly maintenance of each tenant: check and repair records, index and lexicon, find contradictions, tidy up the
files of chats, and move tenants whose size asks for another collection (`OPORA_PLACEMENT=tiered`)."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic

from components.ingest.comparison import compare_some
from pipelines.ingest.library import Library
from pipelines.worker import Worker
from tenants.accounts.registry import Registry
from tenants.chats import files
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, TryAgain, trail
from tenants.knowledge import generations
from tenants.work import claims, jobs

log = logging.getLogger("opora.nightly")

NEVER = -1
MAX_SECONDS = 3_600.0
"""Time limit of one night's work. Skipped tenants come first the next night."""


class NightlyCheck(Worker):
    """Waits for the hour, checks, waits again.

    :param hour: of the day in UTC; `NEVER` for not at all.
    """

    def __init__(self, library: Library, hour: int, *, max_seconds: float = MAX_SECONDS) -> None:
        super().__init__("nightly", 0.0)
        self._library = library
        self._hour = hour
        self._max_seconds = max_seconds
        self._reached = ""

    def warm_up(self) -> None:
        """Begin to wait."""
        if self._hour != NEVER:
            super().warm_up()

    def pause(self) -> float:
        """Return the seconds until the hour."""
        return seconds_until(self._hour)

    def check_all(self) -> None:
        """Check one tenant after the other until all are done or the time is up."""
        until = monotonic() + self._max_seconds
        ids = [tenant.tenant_id for tenant in Registry().list()]
        for tenant_id in [tenant for tenant in ids if tenant > self._reached] + [
            tenant for tenant in ids if tenant <= self._reached
        ]:
            if self.closing.is_set() or monotonic() >= until:
                return
            self._check(tenant_id)
            self._reached = tenant_id

    def work(self) -> None:
        try:
            with claims.holding("~nightly", patience=0):
                self.check_all()
        except Busy:
            log.info("another process makes the nightly check")

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


def seconds_until(hour: int, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float:
    """Return the seconds until the next full hour `hour`: more than 0, 24 hours at most."""
    moment = now()
    strikes = moment.replace(hour=hour, minute=0, second=0, microsecond=0)
    if strikes <= moment:
        strikes += timedelta(days=1)
    return (strikes - moment).total_seconds()
