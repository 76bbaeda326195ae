"""Processes jobs in one thread, taking turns between tenants batch by batch.

So no tenant waits for another one's bulk load, however many tenants there are. Whatever happens to the process, the
next one begins again with all jobs that have not ended.
"""

import logging
from collections import deque
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from pipelines.ingest.tenant_jobs import TenantJobs
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import trail
from tenants.privacy import retention
from tenants.work import jobs, uploads

log = logging.getLogger("opora.jobs")

_POLL_SECONDS = 1.0
"""Interval of checks for jobs that another process accepted; jobs of this process start at once."""

_AFTER_FAULT_SECONDS = 5.0
_TIDY_SECONDS = 3_600.0


class JobRunner:
    """Processes the jobs of all tenants until it is closed.

    :param watch_dir: where watched files are, one folder per tenant.
    """

    def __init__(self, watch_dir: Path | None = None) -> None:
        self._watch_dir = watch_dir
        self._ingest = Ingest()
        self._closing = Event()
        self._thread = Thread(target=self._run, name="jobs")
        self._active: deque[TenantJobs] = deque()
        self._paused: dict[str, float] = {}
        self._tidied = float("-inf")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Finish the current batch and leave the rest to the next start."""
        self._closing.set()
        jobs.arrived.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._turn()
            except Exception as error:
                # The database may be away for a while.
                log.error("jobs: %s", trail(error))
                self._closing.wait(_AFTER_FAULT_SECONDS)
        for tenant_jobs in self._active:
            tenant_jobs.pause()

    def _turn(self) -> None:
        self._tidy()
        self._admit()
        if not self._active:
            jobs.arrived.wait(_POLL_SECONDS)
            jobs.arrived.clear()
            return
        tenant_jobs = self._active.popleft()
        pause = tenant_jobs.step()
        if pause is None:
            self._active.append(tenant_jobs)
        else:
            self._paused[tenant_jobs.tenant_id] = monotonic() + pause

    def _admit(self) -> None:
        """Add the tenants that have jobs, after those already in turn."""
        at_work = {tenant_jobs.tenant_id for tenant_jobs in self._active}
        for tenant_id in jobs.tenants_waiting():
            if tenant_id not in at_work and self._paused.get(tenant_id, 0.0) <= monotonic():
                self._active.append(TenantJobs(tenant_id, self._ingest, self._watch_dir))

    def _tidy(self) -> None:
        if monotonic() - self._tidied < _TIDY_SECONDS:
            return
        self._tidied = monotonic()
        retention.prune()
        for tenant in Registry().list():
            with acting_as(Tenant(tenant.tenant_id, "jobs")):
                for job_id in uploads.abandoned():
                    uploads.remove(job_id)
