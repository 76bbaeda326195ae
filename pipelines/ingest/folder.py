"""A folder whose documents follow its files.

A file is left alone while it is being written: until its size and its time are the same at two looks in a row. A folder
that is suddenly empty, or gone, removes nothing: it looks the same as a disk that is not there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from components.ingest.files import files_in
from pipelines.ingest.run import Run
from pipelines.ingest.usecase import Ingest
from tenants.knowledge import watched
from tenants.knowledge.watched import WatchedFile
from tenants.work.uploads import MAX_FILES

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

    def scan(self, ingested: Mapping[str, WatchedFile]) -> Changes:
        """Return the differences from `ingested` that were the same in the scan before this one."""
        before, self._last_scan = self._last_scan, _marks(self._folder)
        if not self._last_scan:
            return Changes()
        marks = {path: (file.size, file.modified_ns) for path, file in ingested.items()}
        changed = [
            path for path, mark in self._last_scan.items() if marks.get(path) != mark and before.get(path) == mark
        ]
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
        """Return a run over the changed files, not yet started."""
        return ingest.start_files(self._folder, self._changes.files, documents_before=self._documents)

    def save(self, run: Run, *, completed: bool) -> None:
        """Store the state of the files after the run, for the next scan by the tenant in context."""
        watched.put(self.updated_files(run, completed=completed), gone=self._changes.gone)

    def updated_files(self, run: Run, *, completed: bool) -> Mapping[str, WatchedFile]:
        """Return the records of the changed files after the run.

        :param completed: whether the run was completed; if not, files also keep the documents that they had.
        """
        holdings = run.holdings()
        files: dict[str, WatchedFile] = {}
        for path, (size, modified_ns) in self._marks.items():
            earlier = () if completed else self._documents.get(path, ())
            files[path] = WatchedFile(size, modified_ns, tuple(dict.fromkeys([*holdings.get(path, ()), *earlier])))
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
