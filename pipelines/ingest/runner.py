"""Processes jobs in one thread, taking turns between tenants batch by batch.

So no tenant waits for another one's bulk load, however many tenants there are. Whatever happens to the process, the
next one begins again with all jobs that have not ended.
"""

import logging
from collections import deque
from pathlib import Path
from time import monotonic

from pipelines.ingest.tenant_jobs import TenantJobs
from pipelines.ingest.usecase import Ingest
from pipelines.worker import Worker
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.privacy import retention
from tenants.work import jobs, uploads

log = logging.getLogger("opora.jobs")

_POLL_SECONDS = 1.0
"""Interval of checks for jobs that another process accepted; jobs of this process start at once."""

_AFTER_FAULT_SECONDS = 5.0
_TIDY_SECONDS = 3_600.0


class JobRunner(Worker):
    """Processes the jobs of all tenants until it is closed.

    :param watch_dir: where watched files are, one folder per tenant.
    """

    def __init__(self, watch_dir: Path | None = None) -> None:
        super().__init__(
            "jobs", _POLL_SECONDS, at_once=True, after_fault=_AFTER_FAULT_SECONDS, grace=None, wake=jobs.arrived
        )
        self._watch_dir = watch_dir
        self._ingest = Ingest()
        self._active: deque[TenantJobs] = deque()
        self._paused: dict[str, float] = {}
        self._tidied = float("-inf")

    def finish(self) -> None:
        """Leave the rest to the next start."""
        for tenant_jobs in self._active:
            tenant_jobs.pause()

    def work(self) -> float | None:
        self._tidy()
        self._admit()
        if not self._active:
            return None
        tenant_jobs = self._active.popleft()
        pause = tenant_jobs.step()
        if pause is None:
            self._active.append(tenant_jobs)
        else:
            self._paused[tenant_jobs.tenant_id] = monotonic() + pause
        return 0.0

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
