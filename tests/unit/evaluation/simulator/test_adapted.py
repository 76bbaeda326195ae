"""Profiles with models, adapted to a simulator."""

from pathlib import Path

import pytest
import yaml

from components.answer.generative import GenerativeAnswerer
from components.nested import from_description
from evaluation.simulator.adapted import adapt, equip
from evaluation.simulator.embedding import DIMENSIONS
from evaluation.simulator.running import simulator_thread
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


def test_an_equipped_pipeline_embeds_by_the_simulator(tmp_path: Path) -> None:
    with simulator_thread() as (_, url):
        folder = equip(adapt(tmp_path, url), url)
        ingest = yaml.safe_load((folder / "ingest" / "ingest.yaml").read_text(encoding="utf-8"))
        embedder = from_description(ingest["components"]["writer"]["init_parameters"]["embedder"], "embedder")
        (passage,) = embedder.passages(["Гарантия два года."])
        assert passage == pytest.approx(embedder.question("Гарантия два года."))
        assert len(passage) == embedder.dimensions == DIMENSIONS
