"""Where the files of a job are, and what is kept about them once it is over."""

from pathlib import Path
from typing import Protocol

from pipelines.ingest.folder import Changes, FolderChange
from pipelines.ingest.run import Run
from pipelines.ingest.usecase import Ingest
from tenants.core import context
from tenants.core.errors import NotFound
from tenants.knowledge import watched
from tenants.work import uploads
from tenants.work.jobs import Job


class Source(Protocol):
    """The files of one job."""

    def run(self, ingest: Ingest) -> Run:
        """Return the run over them, yet to be done. Raises `CallerError` when they are not there."""

    def save_state(self, run: Run, *, completed: bool) -> None:
        """Store the state that the next job needs.

        :param completed: whether the run was completed.
        """

    def tidy(self) -> None:
        """Remove files that are no longer needed after the job."""


def source_of(job: Job, watch_dir: Path | None) -> Source:
    """Return the files of a job of the tenant in context."""
    if job.kind == "upload":
        return _Upload(job)
    if job.kind == "site":
        return _Site(job)
    if watch_dir is None:
        # The setting was taken away while jobs waited.
        raise NotFound("folder_missing")
    return _Watched(job, watch_dir / context.current().tenant_id)


class _Upload:
    def __init__(self, job: Job) -> None:
        self._job = job

    def run(self, ingest: Ingest) -> Run:
        folder = uploads.fetched(self._job.job_id)
        return ingest.start_files(folder, self._job.files, documents_before={})

    def save_state(self, run: Run, *, completed: bool) -> None:
        """Do nothing: an upload is stored only as documents."""

    def tidy(self) -> None:
        uploads.remove(self._job.job_id)


class _Site:
    def __init__(self, job: Job) -> None:
        (self._url,) = job.files

    def run(self, ingest: Ingest) -> Run:
        return ingest.start_site(self._url)

    def save_state(self, run: Run, *, completed: bool) -> None:
        """Do nothing: a website is stored only as documents."""

    def tidy(self) -> None:
        """Do nothing: pages are not stored as files."""


class _Watched:
    def __init__(self, job: Job, folder: Path) -> None:
        self._gone = job.gone
        self._change = FolderChange(folder, Changes(job.files, job.gone), watched.all())

    def run(self, ingest: Ingest) -> Run:
        return self._change.run(ingest)

    def save_state(self, run: Run, *, completed: bool) -> None:
        watched.put(self._change.updated_files(run, completed=completed), gone=self._gone)

    def tidy(self) -> None:
        """Do nothing: the files belong to the company."""
