"""What worker processes have in common: requests one after the other, from standard input to standard output.

A request comes as a name and bytes, each after its length; the answer after its length. `components.ingest.process`
starts them.
"""

import os
import resource
import select
import struct
import sys
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import BinaryIO

_SIZE = struct.Struct("!Q")
_NICENESS = 10
_IDLE_SECONDS = 60.0
_GROWN = 0.5
"""Share of its memory that a worker may hold on to and still serve another request."""


def serve(answer: Callable[[str, bytes, int], bytes]) -> None:
    """Serve until the input ends, a minute passes without a request, or a request has made this process grow.

    :param answer: to the name and the bytes of a request, given the bytes of memory that this process may take.
    """
    seconds, memory = float(sys.argv[2]), int(sys.argv[3])
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # What a library prints must not be taken for an answer.
    sys.stdout = sys.stderr
    os.nice(_NICENESS)
    _confine(memory)
    while select.select([source], [], [], _IDLE_SECONDS)[0] and (name := _part(source)) is not None:
        data = _part(source) or b""
        _grant(seconds)
        reply = answer(name.decode(), data, memory)
        sink.write(_SIZE.pack(len(reply)))
        sink.write(reply)
        sink.flush()
        if _size() > _GROWN * memory:
            return


def _confine(memory: int) -> None:
    """Whatever a request may bring this process to do: no more memory, no file written, no process, no core dump."""
    for kind, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 32),
    ):
        resource.setrlimit(kind, (limit, limit))


def _grant(seconds: float) -> None:
    """Processor time for one more request. The parent limits wall time; this limit holds when the parent is gone."""
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(time.process_time() + seconds) + 1, resource.RLIM_INFINITY))


def _size() -> int:
    """Bytes of address space in use, where the system tells. The highest ever would count our parent's as well."""
    status = Path("/proc/self/statm")
    return int(status.read_text(encoding="ascii").split()[0]) * resource.getpagesize() if status.exists() else 0


def _part(source: BinaryIO) -> bytes | None:
    header = source.read(_SIZE.size)
    return source.read(_SIZE.unpack(header)[0]) if len(header) == _SIZE.size else None
