"""Files and folders as a stream of unparsed articles: only the current one is in memory."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from components.ingest.document import Refusal
from components.ingest.formats.detect import FORMATS, Format
from components.turn import Frozen
from tenants.core.errors import CallerError, Invalid, NotFound, TooLarge, UnsupportedMedia

MAX_ARTICLE_BYTES = 50_000_000
"""Bytes of one file, or of one line of JSON Lines. A JSON Lines file itself may be of any size."""


@dataclass(frozen=True, slots=True)
class RawArticle(Frozen):
    """The bytes of one article, not yet read.

    :param format: what its file's name promises.
    :param source: its file relative to what is ingested, with forward slashes; of a page of the web, its address.
    :param line: where it starts in its file, 0 when it is the whole file.
    """

    data: bytes
    format: Format
    source: str
    line: int = 0


def raw_articles(path: Path) -> Iterator[RawArticle | Refusal]:
    """Yield the articles of a file, or of all files in a folder in the order of their names.

    Hidden files and folders are skipped. In a folder, an unusable file is refused and the others continue; a single
    unusable file raises: `path_missing`, `file_unreadable`, `file_unsupported`, `file_too_large`, `file_empty`;
    `folder_empty` for a folder without a single file.
    """
    if not path.exists():
        raise NotFound("path_missing", path=str(path))
    if not path.is_dir():
        yield from _articles(path, path.name)
        return
    names = [file.relative_to(path).as_posix() for file in files_in(path)]
    if not names:
        raise Invalid("folder_empty", path=str(path))
    yield from chosen_articles(path, names)


def chosen_articles(folder: Path, names: Sequence[str]) -> Iterator[RawArticle | Refusal]:
    """Yield the articles of some files of a folder, named by their paths in it. An unusable one is refused."""
    for source in names:
        try:
            yield from _articles(folder / source, source)
        except CallerError as error:
            yield Refusal(error, source)


def count_articles(path: Path, names: Sequence[str] | None = None) -> int:
    """Estimate the number of articles for the progress display. Lines of JSON Lines are counted unparsed.

    :param names: chosen files of a folder; all if None.
    """
    if names is not None:
        files = iter([path / name for name in names])
    else:
        files = files_in(path) if path.is_dir() else iter([path])
    return sum(_lines(file) if FORMATS.get(file.suffix.lower()) == "json_lines" else 1 for file in files)


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders in the order of their names, except hidden ones."""
    # Links are not followed: they lead out of the folder that was named, or round in circles.
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(at, name)
            if not name.startswith(".") and not file.is_symlink():
                yield file


def _lines(file: Path) -> int:
    try:
        with file.open("rb") as stream:
            return sum(1 for line in stream if not line.isspace())
    except OSError:
        return 0


def _articles(file: Path, source: str) -> Iterator[RawArticle | Refusal]:
    form = FORMATS.get(file.suffix.lower())
    if form is None:
        raise UnsupportedMedia("file_unsupported", path=source, formats=", ".join(FORMATS))
    # A pipe or a device would be read for ever.
    if not file.is_file():
        raise Invalid("file_unreadable", path=source)
    with Invalid("file_unreadable", path=source).instead_of(OSError), file.open("rb") as stream:
        if form == "json_lines":
            yield from _lines_of(stream, source)
        else:
            yield _read_file(stream, form, source)


def _read_file(stream: BinaryIO, form: Format, source: str) -> RawArticle:
    data = stream.read(MAX_ARTICLE_BYTES + 1)
    if len(data) > MAX_ARTICLE_BYTES:
        raise TooLarge("file_too_large", path=source, limit=MAX_ARTICLE_BYTES)
    if not data.strip():
        raise Invalid("file_empty", path=source)
    return RawArticle(data, form, source)


def _lines_of(stream: BinaryIO, source: str) -> Iterator[RawArticle | Refusal]:
    number = 0
    empty = True
    while data := stream.readline(MAX_ARTICLE_BYTES + 1):
        number += 1
        if len(data) > MAX_ARTICLE_BYTES:
            yield Refusal(TooLarge("line_too_large", path=source, limit=MAX_ARTICLE_BYTES, line=number), source, number)
            while data and not data.endswith(b"\n"):
                data = stream.readline(MAX_ARTICLE_BYTES)
            empty = False
        elif data.strip(b"\xef\xbb\xbf \t\r\n"):
            yield RawArticle(data, "json_lines", source, number)
            empty = False
    if empty:
        raise Invalid("file_empty", path=source)
