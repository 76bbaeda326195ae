"""Runs of the evaluation are kept by tenant, the newest first, and no more than a hundred of them."""

from datetime import UTC, datetime, timedelta

import pytest

from tenants.core.context import Tenant, acting_as
from tenants.desk import evaluations
from tenants.desk.evaluations import EvaluationRun
from tenants.privacy import removal

pytestmark = pytest.mark.usefixtures("acme")

BEGIN = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANNA, OTHER = Tenant("acme", "anna"), Tenant("globex", "otto")


def run(number: int) -> EvaluationRun:
    return EvaluationRun(f"run-{number}", BEGIN + timedelta(minutes=number), {"sets": [{"name": "key", "n": number}]})


def test_each_tenant_sees_its_own_runs_the_newest_first() -> None:
    evaluations.add(run(1))
    evaluations.add(run(2))
    with acting_as(OTHER):
        evaluations.add(run(1))
    assert evaluations.newest() == (run(2), run(1))
    with acting_as(OTHER):
        assert evaluations.newest() == (run(1),)


def test_the_oldest_goes_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluations, "MOST", 2)
    with acting_as(OTHER):
        evaluations.add(run(0))
    for number in (3, 1, 2):
        evaluations.add(run(number))
    assert evaluations.newest() == (run(3), run(2))
    with acting_as(OTHER):
        assert evaluations.newest() == (run(0),)


def test_runs_go_with_their_tenant() -> None:
    evaluations.add(run(1))
    assert removal.remove("acme").rows["evaluation_runs"] == 1
