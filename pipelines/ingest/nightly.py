"""Nightly maintenance: check and repair each tenant's records, index and lexicon, and find contradictions."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from time import monotonic

from components.ingest.comparison import compare_some
from pipelines.ingest.library import Library
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, TryAgain, trail
from tenants.work import claims

log = logging.getLogger("opora.nightly")

NEVER = -1
_GRACE_SECONDS = 10.0
MAX_SECONDS = 3_600.0
"""Time limit of one night's work. Skipped tenants come first the next night."""


class NightlyCheck:
    """Waits for the hour, checks, waits again.

    :param hour: of the day in UTC; `NEVER` for not at all.
    """

    def __init__(self, library: Library, hour: int, *, max_seconds: float = MAX_SECONDS) -> None:
        self._library = library
        self._hour = hour
        self._max_seconds = max_seconds
        self._reached = ""
        self._closing = Event()
        self._thread = Thread(target=self._run, name="nightly", daemon=True)

    def warm_up(self) -> None:
        """Begin to wait."""
        if self._hour != NEVER:
            self._thread.start()

    def close(self) -> None:
        """Finish the current tenant, or leave a large one: the next run finds unfinished work."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(_GRACE_SECONDS)

    def check_all(self) -> None:
        """Check one tenant after the other until all are done or the time is up."""
        until = monotonic() + self._max_seconds
        ids = [tenant.tenant_id for tenant in Registry().list()]
        for tenant_id in [tenant for tenant in ids if tenant > self._reached] + [
            tenant for tenant in ids if tenant <= self._reached
        ]:
            if self._closing.is_set() or monotonic() >= until:
                return
            self._check(tenant_id)
            self._reached = tenant_id

    def _run(self) -> None:
        while not self._closing.wait(seconds_until(self._hour)):
            try:
                with claims.holding("~nightly", patience=0):
                    self.check_all()
            except Busy:
                log.info("another process makes the nightly check")
            except Exception as error:
                # The database may be away; the next night is another chance.
                log.error("nightly check: %s", trail(error))

    def _check(self, tenant_id: str) -> None:
        try:
            with acting_as(Tenant(tenant_id, "nightly")):
                findings = self._library.check(mend=True)
                compare_some()
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
