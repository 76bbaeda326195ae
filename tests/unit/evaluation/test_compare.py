"""Comparison detects losses, not gains or noise, and equal runs are equal."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from evaluation.cases import Case, Record
from evaluation.compare import DROP, compare
from evaluation.stored_runs import Run, SetRun, State
from tenants.core.errors import Invalid

CASES = tuple(Case(str(n), "?", answerable=n % 4 != 0, gold_docs=("a",) if n % 4 else ()) for n in range(600))
PROMISE = replace(CASES[1], outcome="answered")


def run(records: Sequence[Record], threshold: float = 0.5) -> Run:
    state = State("1", "p", "", {"gate": {"threshold": threshold, "judge": "local"}}, {})
    return Run("r", datetime(2026, 1, 1, tzinfo=UTC), state, (SetRun("s", "ru", 1.0, records=tuple(records)),))


def records_of(shown: Sequence[bool]) -> list[Record]:
    """Return records of answerable questions: answered where `shown`, otherwise refused."""
    return [
        Record(case, "answered" if case.answerable and is_shown else "refused", ranked=("a",), checked=True)
        for case, is_shown in zip(CASES, shown, strict=True)
    ]


def test_a_run_is_equal_to_itself() -> None:
    before = run(records_of([True] * 600))
    result = compare(before, before)
    assert result.identical
    assert not result.regressed
    assert result.parameters == ()
    assert {(d.change, d.verdict) for d in result.differences} == {(0.0, "same")}


def test_a_loss_is_detected_and_reversed_it_is_a_gain() -> None:
    good = run(records_of([True] * 600))
    lossy = run(records_of([n % 10 != 1 for n in range(600)]), threshold=0.9)
    lost, won = compare(good, lossy), compare(lossy, good)
    assert lost.regressed
    assert not won.regressed
    verdicts = {d.figure: d.verdict for d in lost.differences}
    assert (verdicts["over_refusal"], verdicts["answered_outright"]) == ("worse", "worse")
    assert verdicts["hit@5"] == "same"
    assert {d.figure: d.verdict for d in won.differences}["over_refusal"] == "better"
    assert lost.parameters == (("gate", "threshold", "0.5", "0.9"),)


def test_a_changed_component_is_named_by_class_or_parameter() -> None:
    def judged_by(judge: object) -> Run:
        return replace(run(records_of([True] * 600)), state=State("1", "p", "", {"gate": {"judge": judge}}, {}))

    small, large = ({"type": "a.models.Judge", "init_parameters": {"model": model}} for model in ("small", "large"))
    assert compare(judged_by("local"), judged_by(small)).parameters == (("gate", "judge", "local", "Judge"),)
    changed = compare(judged_by(small), judged_by(large)).parameters
    assert changed == (("gate", "judge.init_parameters.model", "small", "large"),)


def test_a_loss_of_less_than_three_points_passes_though_it_is_no_noise() -> None:
    missed = [n for n in range(600) if n % 4 != 0][:13]
    result = compare(run(records_of([True] * 600)), run(records_of([n not in missed for n in range(600)])))
    (over,) = (d for d in result.differences if d.figure == "over_refusal")
    assert 0 < over.change < DROP
    assert over.verdict == "small"
    assert not result.regressed


def test_a_few_cases_of_a_small_set_prove_nothing() -> None:
    few = [replace(record) for record in records_of([True] * 600)[:12]]
    worse = [replace(record, outcome="refused") if at in (2, 3) else record for at, record in enumerate(few)]
    result = compare(run(few), run(worse))
    (over,) = (d for d in result.differences if d.figure == "over_refusal")
    assert over.change > DROP
    assert over.verdict == "noise"


def test_a_broken_demand_is_noise_only_with_a_language_model() -> None:
    few = [Record(PROMISE, "answered", ranked=("a",), checked=True), *records_of([True] * 600)[2:12]]
    worse = [replace(few[0], outcome="refused"), *few[1:]]
    result = compare(run(few), run(worse))
    assert result.regressed
    assert result.broken == {"s": ("1",)}
    assert compare(run(worse), run(few)).broken == {}
    assert not compare(run([replace(record, calls=1) for record in few]), run(worse)).regressed


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_not_reported(seed: int) -> None:
    rng = random.Random(seed)
    one, two = ([rng.random() < 0.85 for _ in CASES] for _ in range(2))
    assert not compare(run(records_of(one)), run(records_of(two))).regressed


def test_runs_without_a_common_case_are_refused() -> None:
    records = records_of([True] * 600)
    with pytest.raises(Invalid, match="runs_unrelated"):
        compare(run(records[:300]), run(records[300:]))


def test_cases_of_one_run_alone_do_not_count() -> None:
    records = records_of([True] * 600)
    result = compare(run(records[:500]), run(records))
    assert result.unpaired == {"s": 100}
    assert {d.change for d in result.differences} == {0.0}
    assert not result.identical


def test_cases_edited_between_the_runs_do_not_count() -> None:
    few = records_of([True] * 600)
    stricter = replace(few[1], case=replace(few[1].case, must_contain=("absent",)))
    result = compare(run(few), run([few[0], stricter, *few[2:]]))
    assert result.unpaired == {"s": 1}
    assert (result.regressed, result.broken) == (False, {})
