"""What an exception of the embedded engine means: its files are damaged, or the file system takes nothing now."""

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
    """Whether the engine failed on its files: it says so, or panics, which is no `Exception` (PyO3). A file system that
    is full or takes no writes harms no file."""
    if refusal(fault) is not None:
        return False
    return "Service runtime error" in str(fault) or type(fault).__name__ == "PanicException"


def refusal(fault: BaseException) -> str | None:
    """What to answer where the file system, and not a file of it, was the reason."""
    if isinstance(fault, OSError):
        return _REFUSALS.get(fault.errno or 0)
    number = _SYSTEM_ERROR.search(str(fault))
    return _REFUSALS.get(int(number[1])) if number else None
