"""Comparison of two runs, case by case: changes, their significance, and regressions.

The same cases are asked in both runs, so each case is its own control. A change has a bootstrap interval over cases.
Whether it is noise is asked otherwise: if the two runs were alike, swapping their results case by case would give such
a change as easily (a paired permutation test). Many figures are looked at, so the level of 1% is shared among those
that could reach it at all (Tarone 1990).

A case with a required outcome is no sample but a promise. Without a language model a run is deterministic, so each
broken promise counts as a loss, however few they are.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from evaluation.measurement import timeless
from evaluation.metrics.built_in import GATED, better_direction
from evaluation.metrics.intervals import SEED, Marks, Numbers, columns, draws, quotients
from evaluation.metrics.results import marks, missed
from evaluation.stored_runs import Run, SetRun
from tenants.core.errors import Invalid

DROP = 0.03
"""Smallest loss that fails a comparison: three points."""
LEVEL = 0.01
"""Probability that noise fails a whole comparison, all of its figures together."""
_RESAMPLES = 4_000
_SWAPS = 50_000
_BLOCK = 2_500
_ENOUGH = 100

_PROMISED = frozenset({"outcome_accuracy", "facts_in_answer"})

Verdict: TypeAlias = Literal["same", "noise", "small", "better", "worse", "moved"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of one set in both runs.

    `change` is after minus before, with its 95% interval; `n` counts the cases with a value for it, `differing` those
    whose results differ. `chance` is the probability that noise causes such a change. `verdict`: `worse` and `better`
    are beyond noise and at least three points, `small` is beyond noise and less, `moved` has no better direction.
    `promised` figures have no noise.
    """

    set: str
    figure: str
    before: float
    after: float
    change: float
    low: float
    high: float
    n: int
    differing: int
    chance: float
    gated: bool
    promised: bool = False
    verdict: Verdict = "same"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Changes from the run `before` to the run `after`.

    `parameters` are the pipeline settings and the added evaluators that differ, as (step, parameter, before, after);
    `broken` the cases by set that met their requirement before and do not now; `unpaired` counts the cases by set
    that only one run has, or that were edited between them; `identical` says that every case of the shared sets has
    exactly the same result.
    """

    before: str
    after: str
    differences: tuple[Difference, ...]
    parameters: tuple[tuple[str, str, str, str], ...]
    broken: Mapping[str, tuple[str, ...]]
    unpaired: Mapping[str, int]
    identical: bool

    @property
    def regressed(self) -> bool:
        """Whether something that counts became worse by three points or more, beyond noise."""
        return any(one.verdict == "worse" for one in self.differences)


def compare(before: Run, after: Run) -> Comparison:
    """Compare the sets that both runs have, over the cases that both have.

    :raises Invalid: `runs_unrelated`, if they have none in common.
    """
    old, new = before.by_name(), after.by_name()
    shared = [name for name in old if name in new]
    if all(set(marks_ids(old[name])).isdisjoint(marks_ids(new[name])) for name in shared):
        raise Invalid("runs_unrelated", before=before.run_id, after=after.run_id)
    differences = [one for name in shared for one in _differences(old[name], new[name], old, new)]
    broken = {name: tuple(_broken(old[name], new[name])) for name in shared}
    return Comparison(
        before.run_id,
        after.run_id,
        tuple(_with_verdicts(differences)),
        tuple(_changed_parameters(before, after)),
        {name: cases for name, cases in broken.items() if cases},
        {name: count for name in shared if (count := _unpaired(old[name], new[name]))},
        all(timeless(old[name]) == timeless(new[name]) for name in shared),
    )


def _differences(
    old: SetRun, new: SetRun, old_sets: Mapping[str, SetRun], new_sets: Mapping[str, SetRun]
) -> Iterator[Difference]:
    before, after = marks(old, old_sets), marks(new, new_sets)
    paired = _paired(old, new)
    shared = [case for case in before if case in paired]
    repeats = not any(record.calls for record in (*old.records, *new.records))
    if shared:
        for difference in compared(new.name, [before[case] for case in shared], [after[case] for case in shared]):
            yield replace(difference, promised=repeats and difference.figure in _PROMISED)


def compared(name: str, before: Sequence[Marks], after: Sequence[Marks]) -> Iterator[Difference]:
    """Compare the figures of one set, from the marks of the same cases in the same order; without verdicts yet."""
    figures = list(dict.fromkeys(figure for case in (*before, *after) for figure in case))
    (old_sums, old_weights), (new_sums, new_weights) = columns(before, figures), columns(after, figures)
    decided = (old_weights.sum(axis=0) > 0) & (new_weights.sum(axis=0) > 0)
    old_sums, old_weights, new_sums, new_weights = (
        table[:, decided] for table in (old_sums, old_weights, new_sums, new_weights)
    )
    figures = [figure for figure, is_decided in zip(figures, decided, strict=True) if is_decided]
    differ = (old_sums != new_sums) | (old_weights != new_weights)
    old_values = old_sums.sum(axis=0) / old_weights.sum(axis=0)
    new_values = new_sums.sum(axis=0) / new_weights.sum(axis=0)
    drawn = np.vstack(
        [
            quotients(counts @ new_sums, counts @ new_weights) - quotients(counts @ old_sums, counts @ old_weights)
            for counts in draws(len(before), _RESAMPLES)
        ]
    )
    lows, highs = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    chances = _chances(old_sums, old_weights, new_sums, new_weights)
    for at, figure in enumerate(figures):
        n = int(((old_weights[:, at] > 0) | (new_weights[:, at] > 0)).sum())
        old, new = float(old_values[at]), float(new_values[at])
        yield Difference(
            name,
            figure,
            old,
            new,
            new - old,
            float(lows[at]),
            float(highs[at]),
            n,
            int(differ[:, at].sum()),
            float(chances[at]),
            figure in GATED,
        )


def _chances(old_sums: Numbers, old_weights: Numbers, new_sums: Numbers, new_weights: Numbers) -> Numbers:
    """By figure: how often swapping the two runs case by case changes it as much as they do, in the same direction."""
    chances = np.ones(old_sums.shape[1])
    for figure in range(len(chances)):
        sums, weights = new_sums[:, figure] - old_sums[:, figure], new_weights[:, figure] - old_weights[:, figure]
        # Swapping two equal results has no effect, and most are equal.
        differing = (sums != 0) | (weights != 0)
        if differing.any():
            totals = float((new_sums + old_sums)[:, figure].sum()), float((new_weights + old_weights)[:, figure].sum())
            chances[figure] = _chance(sums[differing], weights[differing], *totals)
    return chances


def _chance(sums: Numbers, weights: Numbers, all_sums: float, all_weights: float) -> float:
    rng = np.random.default_rng(SEED)

    def change(moved: Numbers, spread: Numbers) -> Numbers:
        return quotients(all_sums + moved, all_weights + spread) - quotients(all_sums - moved, all_weights - spread)

    observed = float(change(sums.sum(keepdims=True), weights.sum(keepdims=True))[0])
    as_large = drawn = 0
    # Large probabilities need no precision.
    while drawn < _SWAPS and as_large < _ENOUGH:
        # Bits, because a random byte is eight coins.
        random_bytes = rng.integers(0, 256, size=(_BLOCK, -(-len(sums) // 8)), dtype=np.uint8)
        coins = np.unpackbits(random_bytes, axis=1, count=len(sums))
        factors = coins.astype(np.float64)
        changes = change(2 * (factors @ sums) - sums.sum(), 2 * (factors @ weights) - weights.sum())
        as_large += int((changes * np.sign(observed) >= abs(observed) - 1e-12).sum())
        drawn += _BLOCK
    return (as_large + 1) / (drawn + 1)


def _with_verdicts(differences: Sequence[Difference]) -> Iterator[Difference]:
    level = _level([difference for difference in differences if difference.gated and not difference.promised])
    for difference in differences:
        yield replace(difference, verdict=_verdict(difference, level))


def _level(gated: Sequence[Difference]) -> float:
    """Return the significance level for each figure.

    A figure in which few cases differ can never reach a small one, so it takes no share.
    """
    for share in range(1, len(gated) + 1):
        if sum(0.5**difference.differing <= LEVEL / share for difference in gated) <= share:
            return LEVEL / share
    return LEVEL


def _verdict(difference: Difference, level: float) -> Verdict:
    if not difference.differing:
        return "same"
    if not difference.change or (difference.chance > level and not difference.promised):
        return "noise"
    side = better_direction(difference.figure)
    if side == "neither" or not difference.gated:
        return "moved"
    if abs(difference.change) < DROP - 1e-9:
        return "small"
    return "better" if (difference.change > 0) == (side == "higher") else "worse"


def _broken(old: SetRun, new: SetRun) -> Iterator[str]:
    paired = _paired(old, new)
    passed = {r.case.case_id for r in old.records if r.case.demands and not missed(r)} & paired
    yield from (r.case.case_id for r in new.records if r.case.case_id in passed and missed(r))


def _paired(old: SetRun, new: SetRun) -> frozenset[str]:
    """Return the ids of the cases that both runs have and that expect the same of the answer."""
    cases = {record.case.case_id: record.case for record in old.records}
    return frozenset(r.case.case_id for r in new.records if cases.get(r.case.case_id) == r.case)


def _unpaired(old: SetRun, new: SetRun) -> int:
    return len({*marks_ids(old), *marks_ids(new)} - _paired(old, new))


def marks_ids(set_run: SetRun) -> list[str]:
    return [record.case.case_id for record in set_run.records]


def _changed_parameters(before: Run, after: Run) -> Iterator[tuple[str, str, str, str]]:
    old, new = ({**run.state.parameters, "evaluators": run.state.evaluators} for run in (before, after))
    for node in dict.fromkeys((*old, *new)):
        if node not in old or node not in new:
            yield node, "", str(node in old), str(node in new)
            continue
        for name in dict.fromkeys((*old[node], *new[node])):
            for path, old_value, new_value in _changed(name, old[node].get(name), new[node].get(name)):
                yield node, path, _shown(old_value), _shown(new_value)


def _changed(path: str, old: object, new: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            yield from _changed(f"{path}.{name}", old.get(name), new.get(name))
    elif old != new:
        yield path, old, new


def _shown(value: object) -> str:
    """Return a nested component's class, and any other value as YAML has it."""
    if isinstance(value, Mapping) and "type" in value:
        return str(value["type"]).rpartition(".")[2]
    return "–" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
