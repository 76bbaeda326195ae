"""Counters of the turns in a process. Imports no web framework, because the command line loads this module too.

Labels come from fixed sets, so that no caller can create series.
"""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram

REGISTRY = CollectorRegistry()
TURNS = Counter("opora_turns", "Turns by outcome.", ["outcome", "reason"], registry=REGISTRY)
TURN_SECONDS = Histogram(
    "opora_turn_seconds",
    "Time of a turn, from its question to its answer.",
    buckets=(0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60),
    registry=REGISTRY,
)
STEP_SECONDS = Histogram(
    "opora_step_seconds",
    "Time of one run of a step of the pipeline.",
    ["step"],
    buckets=(0.001, 0.005, 0.025, 0.1, 0.5, 2, 10, 60),
    registry=REGISTRY,
)
MODEL_CALLS = Counter("opora_model_calls", "Calls of language models by outcome.", ["outcome"], registry=REGISTRY)


def observe(
    outcome: str, reason: str | None, seconds: float, steps: Mapping[str, float], calls: Iterable[str] = ()
) -> None:
    """Count a finished turn.

    :param steps: milliseconds by label; the second run of a step is labelled `verify #2`.
    :param calls: the outcome of each call of a model.
    """
    TURNS.labels(outcome, reason or "").inc()
    TURN_SECONDS.observe(seconds)
    for label, milliseconds in steps.items():
        STEP_SECONDS.labels(label.partition(" #")[0]).observe(milliseconds / 1_000)
    for call in calls:
        MODEL_CALLS.labels(call).inc()
