"""The default encoder in the folder of models: copied from a ready folder or archive, else made by its converter."""

import json
import logging
import shutil
import subprocess
import sys
import tarfile
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from uuid import uuid4
from zipfile import BadZipFile

import httpx

from settings import ROOT
from tenants.core.errors import TryAgain

log = logging.getLogger("opora.embed")

MODEL = "opora/e5-small"
"""Name of the model for `FastEmbedder`."""

FOLDER = f"models--{MODEL.replace('/', '--')}"
CARD = "card.json"
"""Names the source of the weights, and the SHA-256 of every other file."""

CONVERTER = "evaluation.training.e5_small"
"""Fetches the weights and writes the model's folder. A program, because it takes 500 MB of memory."""

_FAILURES = (OSError, shutil.Error, BadZipFile, tarfile.TarError, httpx.HTTPError, subprocess.SubprocessError)
_CONVERTER_SECONDS = 900.0
_DOWNLOAD_SECONDS = 30.0


class ModelUnavailable(TryAgain):
    """No source is available, or its files are damaged. Search falls back to words."""

    code = "model_unavailable"


@dataclass(frozen=True, slots=True)
class Installed:
    """The model in a folder of models.

    :param source: `official` or `package`: which weights it was made from.
    :param bytes: its size on disk.
    :param new: this call has installed it.
    """

    source: str
    folder: Path
    bytes: int
    new: bool = False


def installed(models: Path) -> Installed | None:
    """Return the model in a folder of models, or None. Its files are not checked."""
    repository = models / FOLDER
    try:
        folder = repository / "snapshots" / (repository / "refs" / "main").read_text(encoding="ascii")
        source = json.loads((folder / CARD).read_text(encoding="utf-8"))["source"]
    except (OSError, ValueError, KeyError):
        return None
    return Installed(source, folder, sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))


def intact(model: Installed) -> bool:
    """Return whether every file has the digest on the card."""
    with suppress(OSError, ValueError, KeyError):
        hashes = json.loads((model.folder / CARD).read_text(encoding="utf-8"))["sha256"]
        return all(digest(model.folder / name) == expected for name, expected in hashes.items())
    return False


def install(models: Path, source: str = "") -> Installed:
    """Install the model into a folder of models, or nothing.

    :param source: a folder of models, or a zip file, wheel or tar file of one, by path or URL; empty: keep the model
        that is installed and intact, else convert the published weights.
    :raises ModelUnavailable: the source is not available or holds no intact model.
    """
    current = installed(models)
    if not source and current is not None and intact(current):
        return current
    models.mkdir(parents=True, exist_ok=True, mode=0o755)
    draft = models / f".{FOLDER}.{uuid4().hex}"
    try:
        if source:
            _unpack(source, draft)
        else:
            _convert(draft)
        made = installed(draft)
        if made is None or not intact(made):
            raise ModelUnavailable
        _replace(draft / FOLDER, models / FOLDER)
    except _FAILURES as failure:
        log.warning("failed to get the encoder: %s", type(failure).__name__)
        raise ModelUnavailable from failure
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    model = installed(models)
    if model is None:
        raise ModelUnavailable
    return replace(model, new=True)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        hashed = sha256()
        while block := file.read(2**20):
            hashed.update(block)
    return hashed.hexdigest()


def _convert(draft: Path) -> None:
    # Use the folder of our modules, because a checkout may not be installed.
    command = [sys.executable, "-m", CONVERTER, str(draft)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=_CONVERTER_SECONDS, capture_output=True)  # noqa: S603 - ours


def _unpack(source: str, draft: Path) -> None:
    with TemporaryDirectory() as workplace:
        path = _downloaded(source, Path(workplace)) if source.startswith(("http://", "https://")) else Path(source)
        if path.is_file():
            unpacked = Path(workplace) / "unpacked"
            if path.suffix in {".whl", ".zip"}:
                shutil.unpack_archive(path, unpacked, "zip")  # ignores names that lead out of the folder
            else:
                shutil.unpack_archive(path, unpacked, filter="data")
            path = unpacked
        found = path if path.name == FOLDER else next(path.rglob(FOLDER), None)
        if found is None:
            raise FileNotFoundError(FOLDER)
        shutil.copytree(found, draft / FOLDER)


def _downloaded(url: str, folder: Path) -> Path:
    path = folder / Path(urlsplit(url).path).name
    with (
        httpx.stream("GET", url, timeout=_DOWNLOAD_SECONDS, follow_redirects=True) as response,
        path.open("wb") as file,
    ):
        response.raise_for_status()
        for block in response.iter_bytes():
            file.write(block)
    return path


def _replace(draft: Path, place: Path) -> None:
    """Move the draft into place. Another process may do the same concurrently, with the same result."""
    old = place.with_name(f".{place.name}.{uuid4().hex}")
    with suppress(FileNotFoundError):
        place.rename(old)
    try:
        draft.rename(place)
    except OSError:
        if not place.exists():
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
