"""The worker process that reads what strangers wrote: files, attachments of customers, texts.

It answers requests one after the other, from standard input to standard output, each a name and bytes after their
lengths. A name is a verb and, for a file, the file's name; an answer is JSON: `result`, or `error` with the kind, code
and params of a `CallerError`. `components.ingest.sandbox` starts it and defines the answers.
"""

import gc
import json
import os
import re
import resource
import select
import struct
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any, BinaryIO

from tenants.core.errors import CallerError, Invalid, TooLarge, UnsupportedMedia

MAX_PIXELS = 60_000_000
"""Maximum pixels of a picture: more than phones take, and its unpacked form fits into a worker's memory."""

_MAX_TEXT_LENGTH = 5_000_000
_FRAMES = 6
_SIZE = struct.Struct("!Q")
_NICENESS = 10
_IDLE_SECONDS = 60.0
_GROWN = 0.5
"""Share of its memory that a worker may retain and still serve another request."""
_BETWEEN_COLLECTIONS = 100_000
"""A text becomes many small objects with its lifetime; searching them for cycles takes a tenth of the time."""
_PICTURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif"}
_PACKED = frozenset({"pdf", "docx", "xlsx"})
_WRITTEN = frozenset({"plain", "markdown", "csv"})


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    gc.freeze()
    gc.set_threshold(_BETWEEN_COLLECTIONS)
    serve(answer)


def answer(request: str, data: bytes, memory: int) -> bytes:
    """Return the answer to a request as JSON; report any exception in it."""
    verb, _, name = request.partition(" ")
    cause = ""
    refused: CallerError
    try:
        return _encoded({"result": _VERBS[verb](name, data)})
    except CallerError as error:
        refused = error
    except MemoryError:
        refused = TooLarge("file_too_demanding", megabytes=memory // 10**6)
    except RecursionError:
        refused = Invalid("file_too_deep")
    except Exception as failure:
        # Readers raise any error of their libraries; for users they all mean the same.
        refused = Invalid("file_damaged")
        cause = _place(failure)
    fault = {"kind": type(refused).__name__, "code": refused.code, "params": refused.params}
    return _encoded({"error": fault, "cause": cause})


def _encoded(reply: Mapping[str, object]) -> bytes:
    return json.dumps(reply, ensure_ascii=False).encode(errors="replace")


def _place(failure: Exception) -> str:
    """Return where a reader failed. Its message is left out, because it can quote the file."""
    frames = traceback.extract_tb(failure.__traceback__)[-_FRAMES:]
    where = " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    return re.sub(r"[^\w.:> ]", "_", f"{type(failure).__name__} at {where}")[:500]


def _read(name: str, data: bytes) -> dict[str, object]:
    """Read a file as a document."""
    from components.ingest import formats
    from components.ingest.formats.archive import check_archive

    check_archive(data)
    parsed = formats.read(name, data)
    if len(parsed.text) > _MAX_TEXT_LENGTH:
        raise Invalid("text_too_long", limit=_MAX_TEXT_LENGTH)
    return asdict(parsed)


def _table(name: str, data: bytes) -> list[dict[str, object]]:
    """Read the rows of a spreadsheet."""
    from components.ingest.formats.archive import check_archive
    from components.ingest.formats.tables import rows_of

    check_archive(data)
    return [{"number": number, "cells": cells} for number, cells in rows_of(name, data)]


def _scan(name: str, data: bytes) -> dict[str, object]:
    """Find out the format of an attachment, by reading all of it."""
    from components.ingest import formats
    from components.ingest.formats.archive import check_archive
    from components.ingest.formats.detect import format_of
    from components.ingest.formats.encoding import decoded

    picture = next((form for start, form in _PICTURES.items() if data.startswith(start)), "")
    if picture or (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        return {"format": _checked_picture(picture or "webp", data)}
    check_archive(data)
    # There is no reader for logs, which are plain text.
    name = f"{name}.txt" if name.lower().endswith(".log") else name
    form = format_of(name, data)
    if form in _PACKED:
        formats.read(name, data)
        return {"format": form}
    if form not in _WRITTEN:
        raise UnsupportedMedia("attachment_unsupported")
    if not decoded(data).strip():
        raise Invalid("file_empty")
    return {"format": "csv" if form == "csv" else "plain"}


def _checked_picture(form: str, data: bytes) -> str:
    from PIL import Image

    with Image.open(BytesIO(data), formats=(form.upper(),)) as image:
        if image.width * image.height > MAX_PIXELS:
            raise TooLarge("attachment_unreadable")
        # A picture that a viewer would fail on fails here.
        image.load()
    return form


def _cut(_name: str, data: bytes) -> list[dict[str, object]]:
    """Cut documents into chunks."""
    from components.ingest.cut import cut_all
    from components.ingest.document import SourceDocument
    from components.ingest.pack import Sizes

    request = json.loads(data)
    documents = [SourceDocument(**fields) for fields in request["documents"]]
    return [asdict(cut) for cut in cut_all(documents, Sizes(**request["sizes"]))]


_VERBS: dict[str, Callable[[str, bytes], Any]] = {
    "read": _read,
    "table": _table,
    "scan": _scan,
    "cut": _cut,
}


def serve(reply: Callable[[str, bytes, int], bytes]) -> None:
    """Serve until the input ends, a minute passes without a request, or a request has made this process grow.

    :param reply: to the name and the bytes of a request, given the bytes of memory that this process may take.
    """
    seconds, memory = float(sys.argv[2]), int(sys.argv[3])
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # Output of a library must not be taken for an answer.
    sys.stdout = sys.stderr
    os.nice(_NICENESS)
    _confine(memory)
    while select.select([source], [], [], _IDLE_SECONDS)[0] and (name := _part(source)) is not None:
        data = _part(source) or b""
        _grant(seconds)
        answered = reply(name.decode(), data, memory)
        sink.write(_SIZE.pack(len(answered)) + answered)
        sink.flush()
        if _size() > _GROWN * memory:
            return


def _confine(memory: int) -> None:
    """Let the kernel refuse more memory, written files, other processes and core dumps."""
    for kind, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 32),
    ):
        resource.setrlimit(kind, (limit, limit))


def _grant(seconds: float) -> None:
    """Grant processor time for one more request. The parent limits wall time; this holds when the parent is gone."""
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(time.process_time() + seconds) + 1, resource.RLIM_INFINITY))


def _size() -> int:
    """Return the address space in use, where the system tells. The highest ever would count our parent's as well."""
    status = Path("/proc/self/statm")
    return int(status.read_text(encoding="ascii").split()[0]) * resource.getpagesize() if status.exists() else 0


def _part(source: BinaryIO) -> bytes | None:
    header = source.read(_SIZE.size)
    return source.read(_SIZE.unpack(header)[0]) if len(header) == _SIZE.size else None
