"""The process in which files are read. `components.ingest.sandbox` starts it.

A request is a file, by its name and its bytes. Its answer is JSON: the fields of `Parsed`, or `error` with the kind,
code and params of a `CallerError`, and the `cause` where a reader failed as it should not.
"""

import json
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from components.ingest import formats
from components.ingest.formats.archive import check_archive
from components.ingest.worker import serve
from tenants.errors import CallerError, Invalid, TooLarge

_MAX_TEXT_LENGTH = 5_000_000
_FRAMES = 6


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    serve(guarded(_read))


def guarded(read: Callable[[str, bytes], Mapping[str, object]]) -> Callable[[str, bytes, int], bytes]:
    """What `read` makes of a file as JSON, or the error with which it failed."""

    def answer(name: str, data: bytes, memory: int) -> bytes:
        cause = ""
        try:
            return _encoded(read(name, data))
        except CallerError as error:
            refused = error
        except MemoryError:
            refused = TooLarge("file_too_demanding", megabytes=memory // 10**6)
        except RecursionError:
            refused = Invalid("file_too_deep")
        except Exception as failure:
            # Readers raise whatever their libraries do, and to a person it all means the same.
            refused = Invalid("file_damaged")
            cause = _place(failure)
        fault = {"kind": type(refused).__name__, "code": refused.code, "params": refused.params}
        return _encoded({"error": fault, "cause": cause})

    return answer


def _place(failure: Exception) -> str:
    """Where a reader failed. Its message stays out: it can quote the file."""
    frames = traceback.extract_tb(failure.__traceback__)[-_FRAMES:]
    where = " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    return re.sub(r"[^\w.:> ]", "_", f"{type(failure).__name__} at {where}")[:500]


def _read(name: str, data: bytes) -> dict[str, object]:
    check_archive(data)
    parsed = formats.read(name, data)
    if len(parsed.text) > _MAX_TEXT_LENGTH:
        raise Invalid("text_too_long", limit=_MAX_TEXT_LENGTH)
    return asdict(parsed)


def _encoded(answer: Mapping[str, object]) -> bytes:
    return json.dumps(answer, ensure_ascii=False).encode(errors="replace")
