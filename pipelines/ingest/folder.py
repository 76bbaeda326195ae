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
from tenants.uploads import MOST_FILES
from tenants.watched import WatchedFile

Mark: TypeAlias = tuple[int, int]
"""Size and time of the last change in nanoseconds: as long as both stay, a file is taken for unchanged."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths, relative to the folder, of files that are new or different, and of those that are gone."""

    files: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.gone)


class Lookout:
    """Compares a folder with what is known of it, time and again.

    :param folder: may be missing for a while.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, Mark] = {}

    def look(self, known: Mapping[str, WatchedFile]) -> Changes:
        """What differs from `known` and was the same at the look before this one."""
        before, self._seen = self._seen, _marks(self._folder)
        if not self._seen:
            return Changes()
        marks = {path: (file.size, file.modified_ns) for path, file in known.items()}
        changed = [path for path, mark in self._seen.items() if marks.get(path) != mark and before.get(path) == mark]
        gone = [path for path in known if path not in self._seen and path not in before]
        return Changes(tuple(changed[:MOST_FILES]), tuple(gone[:MOST_FILES]) if before else ())


class FolderChange:
    """Bringing documents in line with changed files. Files count as they were before they were read.

    :param known: what was ingested from the folder before.
    """

    def __init__(self, folder: Path, changes: Changes, known: Mapping[str, WatchedFile]) -> None:
        self._folder = folder
        self._changes = changes
        self._marks = {path: _mark(folder / path) or (0, 0) for path in changes.files}
        ours = {*changes.files, *changes.gone}
        elsewhere = {doc_id for path, file in known.items() if path not in ours for doc_id in file.doc_ids}
        # A document that moved on to another file is that file's now.
        self._held = {
            path: tuple(doc_id for doc_id in file.doc_ids if doc_id not in elsewhere)
            for path, file in known.items()
            if path in ours
        }

    def run(self, ingest: Ingest) -> Run:
        """The run over the changed files, yet to be done."""
        return ingest.start_files(self._folder, self._changes.files, held=self._held)

    def now_known(self, run: Run, *, whole: bool) -> Mapping[str, WatchedFile]:
        """What is known of the changed files after the run.

        :param whole: it came to its end; otherwise files keep what they held.
        """
        holdings = run.holdings()
        files: dict[str, WatchedFile] = {}
        for path, (size, modified_ns) in self._marks.items():
            earlier = () if whole else self._held.get(path, ())
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
