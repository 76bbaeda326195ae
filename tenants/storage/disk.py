"""Free disk space: writes are refused before the disk is full, because the embedded index cannot handle that.

Threat: the engine maps its files into memory, and a page without a disk block ends the process by SIGBUS, for every
tenant at once. So everything that grows stops at a reserve, while reading, answering, recording and deleting
continue.
"""

import shutil
from pathlib import Path

from settings import get_settings
from tenants.core.errors import TryAgain


def check(size: int = 0) -> None:
    """Raise `TryAgain` with the code `storage_full` when `size` more bytes would use up the reserve."""
    settings = get_settings()
    folder = settings.data_dir.resolve()
    while not folder.exists():
        folder = folder.parent
    if free(folder) - size < settings.disk_reserve_bytes:
        raise TryAgain("storage_full")


def free(folder: Path) -> int:
    """Return the free bytes."""
    return shutil.disk_usage(folder).free
