"""Watched folders, whose documents follow their files: changes become jobs (`OPORA_WATCH_DIR`).

A file is left alone while it is being written: until its size and its time are the same at two looks in a row. A folder
that is suddenly empty, or gone, removes nothing: it looks the same as a disk that is not there. A file that a full
knowledge base refused is tried again every hour: there may be room meanwhile.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from components.ingest.files import files_in
from components.ingest.write import NO_ROOM
from pipelines.ingest.report import IngestReport, OnProgress
from pipelines.ingest.run import Run
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.knowledge import watched
from tenants.knowledge.watched import WatchedFile
from tenants.work import jobs
from tenants.work.jobs import QueueFull
from tenants.work.uploads import MAX_FILES

log = logging.getLogger("opora.watch")

POLL_SECONDS = 2
_RETRY_SECONDS = 3_600.0

Mark: TypeAlias = tuple[int, int]
"""Size and modification time in nanoseconds; a file with the same values counts as unchanged."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths, relative to the folder, of files that are new or different, and of those that are gone."""

    files: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.gone)


class FolderScanner:
    """Scans a folder again and again for changes since it was ingested.

    :param folder: may be missing for a while.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last_scan: dict[str, Mark] = {}
        self._retry_at = 0.0

    def scan(self, ingested: Mapping[str, WatchedFile]) -> Changes:
        """Return the differences from `ingested` that were the same in the scan before this one."""
        before, self._last_scan = self._last_scan, _marks(self._folder)
        if not self._last_scan:
            return Changes()
        marks = {path: (file.size, abs(file.modified_ns)) for path, file in ingested.items()}
        changed = [
            path for path, mark in self._last_scan.items() if marks.get(path) != mark and before.get(path) == mark
        ]
        refused = [
            path for path, mark in self._last_scan.items() if marks.get(path) == mark and ingested[path].modified_ns < 0
        ]
        if (changed or refused) and monotonic() >= self._retry_at:
            self._retry_at = monotonic() + _RETRY_SECONDS
            changed += refused
        gone = [path for path in ingested if path not in self._last_scan and path not in before]
        return Changes(tuple(changed[:MAX_FILES]), tuple(gone[:MAX_FILES]) if before else ())


class FolderChange:
    """Brings documents in line with changed files, whose state is recorded before they are read.

    :param ingested: what was ingested from the folder before.
    """

    def __init__(self, folder: Path, changes: Changes, ingested: Mapping[str, WatchedFile]) -> None:
        self._folder = folder
        self._changes = changes
        self._marks = {path: _mark(folder / path) or (0, 0) for path in changes.files}
        changed_paths = {*changes.files, *changes.gone}
        elsewhere = {doc_id for path, file in ingested.items() if path not in changed_paths for doc_id in file.doc_ids}
        # A document that has moved to another file belongs to that file now.
        self._documents = {
            path: tuple(doc_id for doc_id in file.doc_ids if doc_id not in elsewhere)
            for path, file in ingested.items()
            if path in changed_paths
        }

    def run(self, ingest: Ingest) -> Run:
        return ingest.start_files(self._folder, self._changes.files, documents_before=self._documents)

    def save(self, run: Run, *, completed: bool) -> None:
        """Store the state of the files after the run, for the next scan by the tenant in context."""
        watched.put(self.updated_files(run, completed=completed), gone=self._changes.gone)

    def updated_files(self, run: Run, *, completed: bool) -> Mapping[str, WatchedFile]:
        """Return the records of the changed files after the run.

        :param completed: whether the run was completed; if not, files also keep the documents that they had.
        """
        holdings = run.holdings()
        refused = {refusal.source for refusal in run.report.errors if refusal.error.code in NO_ROOM}
        files: dict[str, WatchedFile] = {}
        for path, (size, modified_ns) in self._marks.items():
            earlier = () if completed else self._documents.get(path, ())
            doc_ids = tuple(dict.fromkeys([*holdings.get(path, ()), *earlier]))
            files[path] = WatchedFile(size, -modified_ns if path in refused else modified_ns, doc_ids)
        return files


def _marks(folder: Path) -> dict[str, Mark]:
    marks = ((file.relative_to(folder).as_posix(), _mark(file)) for file in files_in(folder))
    return {path: mark for path, mark in marks if mark is not None}


def _mark(file: Path) -> Mark | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


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
