"""The critical path of a turn: the time that its model calls take however quick everything around them is."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A call, from `start` to `end` in seconds."""

    start: float
    end: float


def path(calls: Sequence[Interval]) -> list[Interval]:
    """The longest chain of calls each of which began when the one before it had ended."""
    chains: list[list[Interval]] = []
    for call in sorted(calls, key=lambda one: one.start):
        before = [chain for chain in chains if chain[-1].end <= call.start]
        chains.append([*max(before, key=seconds, default=[]), call])
    return max(chains, key=seconds, default=[])


def seconds(chain: Sequence[Interval]) -> float:
    """How long the calls of a chain take."""
    return sum(call.end - call.start for call in chain)
