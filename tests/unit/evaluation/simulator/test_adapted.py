"""Profiles with models, adapted to a simulator."""

from pathlib import Path

import pytest
import yaml

from components.answer.generative import GenerativeAnswerer
from evaluation.simulator.adapted import adapt
from pipelines.ask.engine import AskEngine
from settings import ROOT


@pytest.mark.parametrize("profile", ["ollama", "openai"])
def test_an_adapted_profile_changes_only_its_models(profile: str, tmp_path: Path) -> None:
    adapted_path = adapt(tmp_path, "http://127.0.0.1:9", profile, timeout=2) / "ask" / "profiles" / f"{profile}.yaml"
    shipped_path = ROOT / "pipelines" / "ask" / "profiles" / adapted_path.name

    changed, original = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in (adapted_path, shipped_path))
    assert changed.keys() == original.keys()
    assert changed["components"].keys() == original["components"].keys()
    answerer = AskEngine(adapted_path).pipeline.get_component("answer")
    assert isinstance(answerer, GenerativeAnswerer)
    models = answerer.models
    assert models.strong is not None
    assert (models.timeout, models.fast.model, models.strong.model) == (2, "simulated", "simulated-strong")
    assert "127.0.0.1:9" in str(models.to_dict())
    assert "11434" not in adapted_path.read_text(encoding="utf-8")
