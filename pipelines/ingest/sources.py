"""Where the files of a job are, and what is kept about them once it is over."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pipelines.ingest.run import Run
from pipelines.ingest.usecase import Ingest
from tenants import context, uploads, watched
from tenants.errors import NotFound
from tenants.jobs import Job
from tenants.watched import WatchedFile


class Source(Protocol):
    """The files of one job."""

    def run(self, ingest: Ingest) -> Run:
        """The run over them, yet to be done. Raises `CallerError` when they are not there."""

    def note(self, run: Run, *, whole: bool) -> None:
        """Keep what the next job has to know.

        :param whole: the run came to its end.
        """

    def tidy(self) -> None:
        """Remove what nobody needs now that the job has ended."""


def source_of(job: Job, watch_dir: Path | None) -> Source:
    """The files of a job of the tenant in context."""
    if job.kind == "upload":
        return _Upload(job)
    if watch_dir is None:
        # The setting was taken away while jobs waited.
        raise NotFound("folder_missing")
    return _Watched(job, watch_dir / context.current().tenant_id)


class _Upload:
    def __init__(self, job: Job) -> None:
        self._job = job

    def run(self, ingest: Ingest) -> Run:
        folder = uploads.folder(self._job.job_id)
        if not folder.is_dir():
            raise NotFound("upload_missing")
        return ingest.start_files(folder, self._job.files, held={})

    def note(self, run: Run, *, whole: bool) -> None:
        """Nothing: the documents are what is kept of an upload."""

    def tidy(self) -> None:
        uploads.remove(self._job.job_id)


class _Watched:
    """Files of a watched folder. They are noted as they were before being read: what changes later is seen later."""

    def __init__(self, job: Job, folder: Path) -> None:
        self._job = job
        self._folder = folder
        self._before = watched.all()
        self._stats = {path: _looked_at(folder / path) for path in job.files}

    def run(self, ingest: Ingest) -> Run:
        return ingest.start_files(self._folder, self._job.files, held=self._held())

    def note(self, run: Run, *, whole: bool) -> None:
        held = self._held()
        found: dict[str, WatchedFile] = {}
        for path, (size, modified_ns) in self._stats.items():
            kept = () if whole else held.get(path, ())
            found[path] = WatchedFile(size, modified_ns, tuple(dict.fromkeys([*run.documents_of(path), *kept])))
        watched.put(found, gone=self._job.gone)

    def tidy(self) -> None:
        """Nothing: the files are the company's own."""

    def _held(self) -> Mapping[str, tuple[str, ...]]:
        """What the job's files held before, but for documents that moved on to another file."""
        ours = {*self._job.files, *self._job.gone}
        elsewhere = {doc_id for path, file in self._before.items() if path not in ours for doc_id in file.doc_ids}
        held = {path: file.doc_ids for path, file in self._before.items() if path in ours}
        return {path: tuple(one for one in doc_ids if one not in elsewhere) for path, doc_ids in held.items()}


def _looked_at(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns
