"""The ask pipeline, loaded from its YAML and run for one turn."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from haystack import Pipeline
from haystack.core.pipeline.base import ComponentPriority
from haystack.core.pipeline.utils import FIFOPriorityQueue
from haystack.tracing.tracer import enable_tracing

from components.turn import Turn
from pipelines.ask.steps import StepTracer

YAML = Path(__file__).with_name("ask.yaml")
_FIRST, _LAST = "guard", "outcome"


class AskEngine:
    """Runs turns through the pipeline. Thread-safe once warm: components keep no state between turns.

    Call `run` inside a tenant's context.

    :param path: the pipeline file; unknown components and modules outside `components` are refused on loading.
    """

    def __init__(self, path: Path = YAML) -> None:
        text = path.read_text(encoding="utf-8")
        self.pipeline = TurnPipeline.loads(text, allowed_modules=["components", "haystack"])
        self.digest = _digest(text)
        enable_tracing(StepTracer())

    def warm_up(self) -> None:
        """Load what the first question needs."""
        self.pipeline.warm_up()

    def run(self, turn: Turn) -> Turn:
        """The finished turn. Its steps are told to whoever notes them (`pipelines.ask.steps.noting`)."""
        result = self.pipeline.run({_FIRST: {"turn": turn}}, include_outputs_from=None)
        finished: Turn = result[_LAST]["turn"] if _LAST in result else turn
        return finished

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


def _digest(text: str) -> str:
    """Names the behaviour that a pipeline file describes: its comments and layout change nothing."""
    return sha256(json.dumps(yaml.safe_load(text), sort_keys=True).encode()).hexdigest()[:16]
