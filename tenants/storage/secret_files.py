"""Files that hold secrets of an installation: only their owner reads them, and none is ever half written."""

import os
from pathlib import Path
from uuid import uuid4


def write_draft(path: Path, content: str) -> Path:
    """Write the content to a new file beside `path`, synced to disk; the caller moves it into place."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{uuid4().hex}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft


def create_once(path: Path, content: str) -> None:
    """Write a file that is not there. Of several processes that do so at once the first one's stays."""
    draft = write_draft(path, content)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
