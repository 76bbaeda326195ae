"""The ask pipeline, loaded from its YAML and run for one turn."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import yaml
from haystack import Pipeline
from haystack.core.pipeline.base import ComponentPriority
from haystack.core.pipeline.utils import FIFOPriorityQueue
from haystack.tracing.tracer import NullSpan, Span, Tracer, enable_tracing

from components.turn import Turn

YAML = Path(__file__).with_name("ask.yaml")
_FIRST, _LAST = "guard", "outcome"
_STEPS: ContextVar[dict[str, float] | None] = ContextVar("opora_steps", default=None)


class AskEngine:
    """Runs turns through the pipeline. Thread-safe once warm: components keep no state between turns.

    Call `run` inside a tenant's context.

    :param path: the pipeline file; unknown components and modules outside `components` are refused on loading.
    """

    def __init__(self, path: Path = YAML) -> None:
        text = path.read_text(encoding="utf-8")
        self.pipeline = TurnPipeline.loads(text, allowed_modules=["components", "haystack"])
        self.digest = _digest(text)
        enable_tracing(StepTimer())

    def warm_up(self) -> None:
        """Load what the first question needs."""
        self.pipeline.warm_up()

    def run(self, turn: Turn) -> tuple[Turn, Mapping[str, float]]:
        """The finished turn and the milliseconds of each step, in order; a step's later passes are `name #2`."""
        steps: dict[str, float] = {}
        token = _STEPS.set(steps)
        try:
            result = self.pipeline.run({_FIRST: {"turn": turn}}, include_outputs_from=None)
        finally:
            _STEPS.reset(token)
        finished: Turn = result[_LAST]["turn"] if _LAST in result else turn
        return finished, steps

    def close(self) -> None:
        """Nothing is held that outlives the process."""


class TurnPipeline(Pipeline):
    """Haystack's pipeline, spared from asking components whether they can run when nothing was sent to them.

    Every step has one mandatory socket, so one without inputs is blocked. Haystack 3.4 finds that out by checking all
    of a component's sockets, for all components, before each step: 2 of the 10 ms CPU of a turn.
    """

    def _fill_queue(
        self, component_names: list[str], inputs: dict[str, dict[str, list[Any]]], component_visits: dict[str, int]
    ) -> FIFOPriorityQueue:
        queue = FIFOPriorityQueue()
        for name in component_names:
            priority = ComponentPriority.BLOCKED
            if pending := inputs.get(name):
                component = self._get_component_with_graph_metadata_and_visits(name, component_visits[name])
                priority = self._calculate_priority(component, pending)
            queue.push(name, priority)
        return queue


class StepTimer(Tracer):
    """Times components for the turn that runs in this context; records no content."""

    def __init__(self) -> None:
        self._span = NullSpan()

    @contextmanager
    def trace(
        self,
        operation_name: str,  # noqa: ARG002 - Haystack passes these by name
        tags: dict[str, object] | None = None,
        parent_span: Span | None = None,  # noqa: ARG002
    ) -> Iterator[Span]:
        """Add the block's duration to the turn's steps when the block is a component's run."""
        steps = _STEPS.get()
        name = str((tags or {}).get("haystack.component.name", ""))
        if steps is None or not name:
            yield self._span
            return
        started = perf_counter()
        try:
            yield self._span
        finally:
            steps[_numbered(name, steps)] = (perf_counter() - started) * 1_000

    def current_span(self) -> Span | None:
        """No span is kept open."""
        return None


def _digest(text: str) -> str:
    """Names the behaviour that a pipeline file describes: its comments and layout change nothing."""
    return sha256(json.dumps(yaml.safe_load(text), sort_keys=True).encode()).hexdigest()[:16]


def _numbered(name: str, steps: Mapping[str, float]) -> str:
    visits = sum(1 for step in steps if step == name or step.startswith(f"{name} #"))
    return name if not visits else f"{name} #{visits + 1}"
