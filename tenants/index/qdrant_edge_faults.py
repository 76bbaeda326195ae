"""Classification of exceptions of the embedded engine: damaged files, or a file system that refuses writes."""

import errno
import re

_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
_REFUSALS = {
    errno.ENOSPC: "storage_full",
    errno.EDQUOT: "storage_full",
    errno.EROFS: "storage_full",
    errno.EACCES: "unavailable",
    errno.EMFILE: "unavailable",
    errno.ENFILE: "unavailable",
}


def is_damage(fault: BaseException) -> bool:
    """Whether the engine failed on its files: it reports that, or panics with a `BaseException` (PyO3). A full or
    read-only file system damages no file."""
    if refusal(fault) is not None:
        return False
    return "Service runtime error" in str(fault) or type(fault).__name__ == "PanicException"


def refusal(fault: BaseException) -> str | None:
    """Return the code of the answer if the file system as a whole refused; None otherwise."""
    if isinstance(fault, OSError):
        return _REFUSALS.get(fault.errno or 0)
    number = _SYSTEM_ERROR.search(str(fault))
    return _REFUSALS.get(int(number[1])) if number else None
