"""Pipeline files as an author would edit them to be served by a simulator."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from pipelines.definition import components_of_type
from settings import ROOT

_TIERS = {"fast": "simulated", "strong": "simulated-strong", "fallback": "simulated-fallback"}
_ADDRESSES = {"OllamaChatGenerator": "url", "OpenAIChatGenerator": "api_base_url"}


def adapt(folder: Path, url: str, profile: str = "ollama", models: Mapping[str, str] = _TIERS, **bounds: float) -> Path:
    """Copy the pipelines to `folder`, and connect the models of a profile to the server at `url`.

    :param bounds: arguments of `ChatModels`, such as `timeout` or `concurrent`. `loading` is 0 unless given: the
        simulator has its models in memory unless its knobs say otherwise.
    :returns: `folder`, for `OPORA_PIPELINES_DIR`.
    """
    shutil.copytree(ROOT / "pipelines", folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    # The encoder stays the default one.
    shutil.rmtree(folder / "ingest" / "profiles")
    with edited(folder / "ask" / "profiles" / f"{profile}.yaml") as profile_yaml:
        for component in components_of_type(profile_yaml, "ChatModels"):
            configured = component["init_parameters"]
            configured.update({"loading": 0, **bounds})
            for tier, model in models.items():
                for kind, address in _ADDRESSES.items():
                    for generator in components_of_type(configured.get(tier), kind):
                        parameters = generator["init_parameters"]
                        parameters["model"] = model
                        parameters["timeout"] = max(bounds.get("timeout", 0), _seconds(parameters.get("timeout")))
                        parameters[address] = f"{url}/v1" if address == "api_base_url" else url
    return folder


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    """Yield the content of a YAML file, and write what the block has made of it."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    yield content
    path.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), encoding="utf-8")


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
