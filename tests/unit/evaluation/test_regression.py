"""Planted regressions are caught on the demo shop, noise is not; the full size is `evaluation/bench_regression.py`."""

from collections.abc import Iterator

import pytest

from evaluation import workspace
from evaluation.bench_regression import Bench, told
from evaluation.compare import compare
from evaluation.fixture import fixture
from evaluation.runs import Run
from settings import get_settings
from tenants import database, index

NAMES = ("DATA_DIR", "DATABASE_URL", "QDRANT_URL", "RATE_LIMIT_PER_MINUTE", "RATE_LIMIT_PER_DAY")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            patch.setenv(f"OPORA_{name}", "1")  # remembered, so that what `enter` sets is undone
        patch.setenv("OPORA_DATA_DIR", str(folder))
        get_settings.cache_clear()
        workspace.enter(folder)
        yield Bench([fixture()])
        index.close_all()
        database.close_all()
    get_settings.cache_clear()


@pytest.fixture(scope="module")
def base(bench: Bench) -> Run:
    return bench.measured()


def test_every_plant_is_caught_and_no_noise_is(bench: Bench, base: Run) -> None:
    # These cannot show here: the shop's questions are answered surely, and quotes are true.
    unseen = {"relevance threshold 0.9", "relevance threshold 0.2", "judge agrees to all"}
    trials = [trial for trial in bench.trials() if trial.name not in unseen]
    found = [told(trial.name, trial.kind, compare(base, trial.run())) for trial in trials]
    assert {one.kind for one in found} == {"plant", "noise"}
    assert {one.name for one in found if not one.right} == set()


def test_another_threshold_is_caught_and_named(bench: Bench, base: Run) -> None:
    comparison = compare(base, bench.changed("evaluate_retrieval", {"threshold": 0.995}))
    assert comparison.regressed
    assert [line[:2] for line in comparison.parameters] == [("evaluate_retrieval", "threshold")]
    assert comparison.broken["fixture"]


def test_the_same_state_differs_by_nothing(bench: Bench, base: Run) -> None:
    comparison = compare(base, bench.measured())
    assert comparison.identical
    assert {one.change for one in comparison.differences} == {0.0}
