"""A profile's pipeline file as an author would edit it to be answered by a simulator."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import yaml

from settings import ROOT

_Block: TypeAlias = dict[str, object]
_TIERS = {"fast": "simulated", "strong": "simulated-strong", "fallback": "simulated-fallback"}
_ADDRESSES = {"OllamaChatGenerator": "url", "OpenAIChatGenerator": "api_base_url"}


def adapt(folder: Path, url: str, profile: str = "ollama", **bounds: float) -> Path:
    """Copy the pipelines to `folder`, and let the models of a profile be those of the simulator at `url`.

    :param bounds: arguments of `ChatModels`, such as `timeout` or `concurrent`.
    :returns: `folder`, for `OPORA_PIPELINES_DIR`.
    """
    shutil.copytree(ROOT / "pipelines", folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    path = folder / "ask" / f"ask.{profile}.yaml"
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    for models in _found(whole, "ChatModels"):
        models.update(bounds)
        for tier, model in _TIERS.items():
            for kind, address in _ADDRESSES.items():
                for generator in _found(models.get(tier), kind):
                    generator["model"] = model
                    generator[address] = f"{url}/v1" if address == "api_base_url" else url
    path.write_text(yaml.safe_dump(whole, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return folder


def _found(node: object, kind: str) -> Iterator[_Block]:
    """The `init_parameters` of every component of this class below `node`."""
    if isinstance(node, dict):
        if str(node.get("type", "")).rpartition(".")[2] == kind:
            yield node["init_parameters"]
        for inner in node.values():
            yield from _found(inner, kind)
    elif isinstance(node, list):
        for inner in node:
            yield from _found(inner, kind)
