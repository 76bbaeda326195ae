"""Watched folders: added, changed and removed files become jobs (`OPORA_WATCH_DIR`)."""

import logging
from pathlib import Path

from pipelines.ingest.folder import FolderChange, FolderScanner
from pipelines.ingest.report import IngestReport, OnProgress
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.knowledge import watched
from tenants.work import jobs
from tenants.work.jobs import QueueFull

log = logging.getLogger("opora.watch")

POLL_SECONDS = 2


class Watcher:
    """Turns changes in the tenants' folders into jobs.

    :param folder: has one folder per tenant, named by the tenant's id.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scanners: dict[str, FolderScanner] = {}

    def look(self) -> None:
        """Scan all folders once. A folder whose name is no tenant's id is ignored."""
        # Names are read from the disk, because an id may hold anything, such as `..`.
        names = {entry.name for entry in self._folder.iterdir() if entry.is_dir()} if self._folder.is_dir() else set()
        for tenant in Registry().list():
            if tenant.tenant_id in names:
                folder = self._folder / tenant.tenant_id
                scanner = self._scanners.setdefault(tenant.tenant_id, FolderScanner(folder))
                with acting_as(Tenant(tenant.tenant_id, "watch")):
                    _submit(scanner)


def catch_up(folder: Path, ingest: Ingest, progress: OnProgress | None = None) -> IngestReport | None:
    """Ingest what has changed in the folder of the tenant in context while no service watched it.

    :returns: a report; None if nothing has changed.
    """
    scanner, known = FolderScanner(folder), watched.all()
    scanner.scan(known)  # a change counts from the second look on
    changes = scanner.scan(known)
    if not changes:
        return None
    work = FolderChange(folder, changes, known)
    run = work.run(ingest)
    report = run.finish(progress)
    work.save(run, completed=True)
    return report


def _submit(scanner: FolderScanner) -> None:
    """Submit one job at a time: the resulting state of the folder is known only when the job has ended."""
    if any(job.kind == "watch" for job in jobs.open_jobs()):
        return
    changes = scanner.scan(watched.all())
    if not changes:
        return
    try:
        jobs.add(jobs.new_id(), "watch", changes.files, gone=changes.gone)
    except QueueFull:
        log.warning("a watched folder waits for room among the tenant's jobs")
