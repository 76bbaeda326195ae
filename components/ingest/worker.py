"""The process in which files are read: one after the other, from standard input to standard output.

A file comes as its name and its bytes, each after its length. Its answer is one JSON object after its length: the
fields of `Parsed`, or `error` with the kind, code and params of a `CallerError`. `components.ingest.sandbox` starts it.
"""

import json
import os
import resource
import select
import struct
import sys
import time
from dataclasses import asdict
from math import ceil
from pathlib import Path
from typing import BinaryIO

from components.ingest import formats
from components.ingest.formats.archive import check_archive
from tenants.errors import CallerError, Invalid, TooLarge

_SIZE = struct.Struct("!Q")
_NICENESS = 10
_IDLE_SECONDS = 60.0
_LONGEST_TEXT = 5_000_000
_GROWN = 0.5
"""Share of its memory that a worker may hold on to and still serve another file."""


def main() -> None:
    """Serve files until the input ends, nobody asks for a minute, or a file has made this process grow."""
    seconds, memory = float(sys.argv[2]), int(sys.argv[3])
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # What a library prints must not be taken for an answer.
    sys.stdout = sys.stderr
    os.nice(_NICENESS)
    _confine(memory)
    while select.select([source], [], [], _IDLE_SECONDS)[0] and (name := _part(source)) is not None:
        data = _part(source) or b""
        _grant(seconds)
        answer = _answer(name.decode(), data, memory)
        sink.write(_SIZE.pack(len(answer)) + answer)
        sink.flush()
        if _size() > _GROWN * memory:
            return


def _confine(memory: int) -> None:
    """Whatever a file may bring this process to do: no more memory, no file written, no process, no core dump."""
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 32),
    ):
        resource.setrlimit(kind, (most, most))


def _grant(seconds: float) -> None:
    """Processor time for one more file. Who started us keeps the real time; this ends us when they are gone."""
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(time.process_time() + seconds) + 1, resource.RLIM_INFINITY))


def _size() -> int:
    """Bytes of address space in use, where the system tells. The highest ever would count our parent's as well."""
    told = Path("/proc/self/statm")
    return int(told.read_text(encoding="ascii").split()[0]) * resource.getpagesize() if told.exists() else 0


def _part(source: BinaryIO) -> bytes | None:
    header = source.read(_SIZE.size)
    return source.read(_SIZE.unpack(header)[0]) if len(header) == _SIZE.size else None


def _answer(name: str, data: bytes, memory: int) -> bytes:
    try:
        return _encoded(_read(name, data))
    except CallerError as error:
        refused = error
    except MemoryError:
        refused = TooLarge("file_too_demanding", megabytes=memory // 2**20)
    except RecursionError:
        refused = Invalid("file_too_deep")
    except Exception:
        # Readers raise whatever their libraries do, and to a person it all means the same.
        refused = Invalid("file_damaged")
    return _encoded({"error": {"kind": type(refused).__name__, "code": refused.code, "params": refused.params}})


def _read(name: str, data: bytes) -> dict[str, object]:
    check_archive(data)
    parsed = formats.read(name, data)
    if len(parsed.text) > _LONGEST_TEXT:
        raise Invalid("text_too_long", limit=_LONGEST_TEXT)
    return asdict(parsed)


def _encoded(answer: dict[str, object]) -> bytes:
    return json.dumps(answer, ensure_ascii=False).encode(errors="replace")
