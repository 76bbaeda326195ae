"""The ask pipeline, loaded from its YAML and run for one turn."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Protocol, runtime_checkable

from haystack import Pipeline
from haystack.tracing.tracer import enable_tracing

from components.language.yaml_files import read_yaml
from components.turn import Turn
from pipelines.ask.steps import StepTracer
from pipelines.ask.walk import Walk

YAML = Path(__file__).with_name("ask.yaml")
_FIRST, _LAST = "guard", "outcome"


@runtime_checkable
class Closable(Protocol):
    """What holds connections."""

    def close(self) -> None:
        """Let go of them."""


class AskEngine:
    """Runs turns through the pipeline. Thread-safe once warm: components keep no state between turns.

    Call `run` inside a tenant's context.

    :param path: the pipeline file; unknown components and modules outside `components` are refused on loading.
    """

    def __init__(self, path: Path = YAML) -> None:
        content = read_yaml(path)
        self.pipeline = Pipeline.from_dict(content, allowed_modules=["components", "haystack", "haystack_integrations"])
        self._walk = Walk.through(self.pipeline, _FIRST, _LAST)
        self.digest = _digest(content)
        enable_tracing(StepTracer())

    def warm_up(self) -> None:
        """Load what the first question needs."""
        self.pipeline.warm_up()

    def run(self, turn: Turn) -> Turn:
        """The finished turn. Its steps are told to whoever notes them (`pipelines.ask.steps.noting`)."""
        if self._walk is not None:
            return self._walk.run(turn)
        result = self.pipeline.run({_FIRST: {"turn": turn}}, include_outputs_from=None)
        finished: Turn = result[_LAST]["turn"] if _LAST in result else turn
        return finished

    def close(self) -> None:
        """Let go of the connections to models."""
        for _, component in self.pipeline.walk():
            for held in _closable(component):
                held.close()


def _closable(holder: object) -> Iterator[Closable]:
    """What a component of ours is made of and has to be closed: models, rankers, embedders of whatever make."""
    for held in getattr(holder, "__dict__", {}).values():
        if isinstance(held, Closable):
            yield held
        elif type(held).__module__.startswith("components."):
            yield from _closable(held)


def _digest(content: object) -> str:
    """Names the behaviour that a pipeline file describes: its comments and layout change nothing."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
