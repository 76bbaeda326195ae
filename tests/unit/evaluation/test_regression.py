"""Planted regressions are caught on the demo shop, and noise is not."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from unittest.mock import patch

import pytest
import yaml

from components.language.encoder import encode_query
from components.language.encoder_settings import EncoderSettings
from components.retrieve import retriever
from evaluation import workspace
from evaluation.compare import compare
from evaluation.datasets.fixture import fixture
from evaluation.measurement import Evaluation, Plan, finished
from evaluation.stored_runs import Run
from pipelines.ask.engine import YAML
from settings import get_settings
from tenants import index
from tenants.storage import database
from tenants.work import locks

NAMES = ("DATA_DIR", "DATABASE_URL", "QDRANT_URL", "RATE_LIMIT_PER_MINUTE", "RATE_LIMIT_PER_DAY")
Content = dict[str, object]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Run]]:
    """Measure the fixture with a pipeline, given as a change of the shipped one."""
    folder = tmp_path_factory.mktemp("workspace")

    def measure(change: Callable[[Content], None] = lambda _: None, concurrency: int = 1) -> Run:
        content: Content = yaml.safe_load(YAML.read_text(encoding="utf-8"))
        change(content)
        path = tmp_path_factory.mktemp("pipeline") / YAML.name
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        plan = Plan(pipeline=path, concurrency=concurrency)
        with closing(Evaluation(plan, lambda *_: None)) as evaluation:
            return finished("regression", [evaluation.run(fixture())], plan)

    with pytest.MonkeyPatch.context() as patched:
        for name in NAMES:
            patched.setenv(f"OPORA_{name}", "1")  # remembered, so that what `enter` sets is undone
        patched.setenv("OPORA_DATA_DIR", str(folder))
        get_settings.cache_clear()
        workspace.enter(folder)
        yield measure
        index.close_all()
        locks.close_all()
        database.close_all()
    get_settings.cache_clear()


@pytest.fixture(scope="module")
def base(measured: Callable[..., Run]) -> Run:
    return measured()


def _without_verifier(content: Content) -> None:
    """Bypass the step that checks claims."""
    components, ways = content["components"], content["connections"]
    assert isinstance(components, dict)
    assert isinstance(ways, list)
    del components["verify"]
    before = next(way["sender"] for way in ways if way["receiver"].startswith("verify."))
    after = next(way["receiver"] for way in ways if way["sender"].startswith("verify."))
    others = [way for way in ways if not any(end.startswith("verify.") for end in way.values())]
    content["connections"] = [*others, {"sender": before, "receiver": after}]


@contextmanager
def _broken_encoder() -> Iterator[None]:
    """Replace every term of a question by another one, as after an upgrade of the stemmer."""

    def broken(text: str, settings: EncoderSettings) -> dict[int, float]:
        vector = encode_query(text, settings)
        return {index + 1: weight for index, weight in vector.items()}

    with patch.object(retriever, "encode_query", broken):
        yield


def test_a_dropped_verifier_is_detected(base: Run, measured: Callable[..., Run]) -> None:
    assert compare(base, measured(_without_verifier)).regressed


def test_a_broken_encoder_is_detected(base: Run, measured: Callable[..., Run]) -> None:
    with _broken_encoder():
        assert compare(base, measured()).regressed


def test_the_same_state_differs_by_nothing(base: Run, measured: Callable[..., Run]) -> None:
    comparison = compare(base, measured(concurrency=4))
    assert comparison.identical
    assert {one.change for one in comparison.differences} == {0.0}
