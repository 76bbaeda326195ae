"""Each guide of docs/develop/, followed exactly in a copy of the product that runs in a separate process."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import TypeAlias

import pytest

from settings import ROOT
from tests.pages import EXTEND, MODELS, PIPELINES, edits, files

Answers: TypeAlias = Mapping[str, object]

ROOMS = ("components", "pipelines", "tenants")
SECONDS = 120
SCRIPT = """
import json, sys
from pathlib import Path

import app
from starlette.testclient import TestClient

from components.turn import Turn
from pipelines.ask import profiles
from pipelines.ask.engine import AskEngine
from pipelines.ask.steps import record_steps
from pipelines.ingest.usecase import Ingest
from pipelines.lint import deployed, lint_file
from settings import get_settings
from tenants.accounts import policy
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.accounts.registry import Registry
from tenants.access.tokens import issue
from tenants.storage import database

settings, found = get_settings(), {}
database.migrate(settings)
Registry().add("acme")
found["findings"] = [f"{path}: {one.describe('en')}" for path in deployed() for one in lint_file(path)]
with acting_as(Tenant("acme", "anna", SCOPES)):
    Ingest().run_path(Path("articles"))
    engine = AskEngine(profiles.path_of("calm"))
    with record_steps() as steps:
        turn = engine.run(Turn("t", "ГАРАНТИЯ ДЕЙСТВУЕТ ДВА ГОДА?"))
    found["steps"], found["query"] = list(steps.milliseconds), turn.query.search
    found["cited"] = [one.passage.doc_id for one in turn.draft.citations] if turn.draft else []
    policy.change(profile="strict")
    strict = AskEngine(profiles.path_of(profiles.chosen())).pipeline
    found["threshold"] = strict.get_component("evaluate_retrieval").threshold
    found["profiles"] = settings.profiles
    answer = AskEngine(profiles.path_of("vllm")).pipeline.get_component("answer")
    found["model"] = answer.models.fast.model
    policy.change(profile="")
token = issue(settings, "acme", scopes=("ask",), subject="anna", ttl_seconds=600)
with TestClient(app.create_app(settings)) as client:
    asked = {"question": "гарантия"}
    found["without_token"] = client.post("/articles/run", json=asked).status_code
    ours = {"Authorization": f"Bearer {token}"}
    found["articles"] = client.post("/articles/run", json=asked, headers=ours).json()
    found["unreadable"] = client.post("/articles/run", json={"question": ""}, headers=ours).status_code
Path("found.json").write_text(json.dumps(found), encoding="utf-8")
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Return the product's answers after all guides were followed."""
    copy = tmp_path_factory.mktemp("copy")
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room)  # with the bytecode, which is valid for the copies
    for name in ("app.py", "settings.py"):
        shutil.copy(ROOT / name, copy / name)
    for path, text in files(PIPELINES, MODELS, EXTEND).items():
        (copy / path).parent.mkdir(exist_ok=True)
        (copy / path).write_text(text, encoding="utf-8")
    for path, way, old, new in edits(PIPELINES, MODELS, EXTEND):
        source = (copy / path).read_text(encoding="utf-8")
        assert source.count(f"{old}\n") == 1, f"{path}: {old}"
        put = new if way == "instead of" else f"{new}{old}\n"
        (copy / path).write_text(source.replace(f"{old}\n", put), encoding="utf-8")
    (copy / "articles").mkdir()
    (copy / "articles" / "warranty.rst").write_text(
        "Гарантия\n========\n\nГарантия действует два года со дня покупки.\n", encoding="utf-8"
    )
    (copy / "articles" / "returns.md").write_text("# Возврат\n\nТовар возвращают за 14 дней.\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copy), "OPORA_DATA_DIR": str(copy / "data"), "VLLM_API_KEY": "none"}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    answers: Answers = json.loads((copy / "found.json").read_text(encoding="utf-8"))
    return answers


def test_there_is_a_guide_for_each_kind_of_thing() -> None:
    kinds = ("A step", "A profile", "A provider", "An endpoint", "A file format")
    assert all(f"\n## {kind}\n" in EXTEND for kind in kinds)
    assert set(files(EXTEND)) >= {
        "components/understand/shouting.py",
        "pipelines/ask/profiles/strict.yaml",
        "pipelines/ask/profiles/vllm.yaml",
        "pipelines/articles/pipeline_wrapper.py",
        "components/ingest/formats/added/rst.py",
    }


def test_the_linter_has_no_findings(followed: Answers) -> None:
    assert followed["findings"] == []


def test_the_step_is_taken(followed: Answers) -> None:
    assert isinstance(followed["steps"], list)
    assert "shouting" in followed["steps"]
    assert followed["query"] == "гарантия действует два года?"


def test_the_profiles_are_there_to_choose(followed: Answers) -> None:
    assert isinstance(followed["profiles"], list)
    assert {"embedded", "ollama", "openai", "calm", "strict", "vllm", "hybrid", "builder"} <= set(followed["profiles"])
    assert followed["threshold"] == 0.8
    assert followed["model"] == "Qwen/Qwen3-4B-Instruct-2507"


def test_the_endpoint_is_reached_through_the_gate_alone(followed: Answers) -> None:
    assert followed["without_token"] == 401
    assert isinstance(followed["articles"], dict | list)
    assert "warranty.rst" in str(followed["articles"])
    assert followed["unreadable"] == 422


def test_the_file_format_is_read(followed: Answers) -> None:
    assert followed["cited"] == ["warranty.rst"]
