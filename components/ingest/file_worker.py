"""The process in which files are read. `components.ingest.sandbox` starts it.

A request is a file, by its name and its bytes. Its answer is JSON: the fields of `Parsed`, or `error` with the kind,
code and params of a `CallerError`.
"""

import json
from dataclasses import asdict

from components.ingest import formats
from components.ingest.formats.archive import check_archive
from components.ingest.worker import serve
from tenants.errors import CallerError, Invalid, TooLarge

_LONGEST_TEXT = 5_000_000


def main() -> None:
    """Read files until nobody asks any more."""
    serve(_answer)


def _answer(name: str, data: bytes, memory: int) -> bytes:
    try:
        return _encoded(_read(name, data))
    except CallerError as error:
        refused = error
    except MemoryError:
        refused = TooLarge("file_too_demanding", megabytes=memory // 10**6)
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
