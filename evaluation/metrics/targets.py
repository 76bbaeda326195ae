"""Targets of measured figures; the thresholds are in `targets.yaml`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from components.language.yaml_files import read_yaml
from tenants.core.validation import FrozenModel

_FILE = Path(__file__).with_name("targets.yaml")


class Target(FrozenModel):
    """A requirement on one figure. Exactly one of the three bounds is set."""

    figure: str
    set: str
    at_least: float | None = None
    at_most: float | None = None
    over_reference: float | None = None

    @property
    def demand(self) -> str:
        if self.over_reference is not None:
            return f">= reference + {self.over_reference:g}"
        return f"{'>=' if self.at_most is None else '<='} {self.bound():g}"

    def bound(self, reference: float | None = None) -> float:
        bounds = (self.at_least, self.at_most, (reference or 0.0) + (self.over_reference or 0.0))
        return next(bound for bound in bounds if bound is not None)


class _Targets(FrozenModel):
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class TargetResult:
    """A target with the measured figure, and the baseline's figure if there is one."""

    target: Target
    value: float
    reference: float | None
    met: bool


@lru_cache(maxsize=1)
def _load() -> _Targets:
    return _Targets.model_validate(read_yaml(_FILE))


def judge(name: str, figures: Mapping[str, float], reference: Mapping[str, float] | None = None) -> list[TargetResult]:
    """Compare the figures of a set with its targets; a target without a figure is left out."""
    results = []
    for target in (target for target in _load().targets if target.set == name):
        value, reference_value = figures.get(target.figure), (reference or {}).get(target.figure)
        if value is None or (target.over_reference is not None and reference_value is None):
            continue
        missing = target.bound(reference_value) - value
        # A share that is equal to its bound on paper may differ in the last bit.
        met = (missing if target.at_most is None else -missing) <= 1e-9
        results.append(TargetResult(target, value, reference_value, met))
    return results
