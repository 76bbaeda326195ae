"""Running a pipeline in which one turn is on its way, without a scheduler."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from haystack import Pipeline
from haystack.core.component.types import InputSocket
from haystack.core.errors import PipelineMaxComponentRuns, PipelineRuntimeError
from haystack.core.serialization import generate_qualified_class_name
from haystack.tracing.tracer import tracer

from components.turn import Turn


class Walk:
    """Follows a turn from component to component.

    Haystack schedules any graph: before each step it asks every component whether it could run, and it copies what it
    hands over. Where every component takes one turn and sends one on there is nothing to schedule, and a turn is spared
    a third of its CPU time. Steps are traced, bounded and failed as Haystack does it.

    :param first: where the turn comes in.
    :param last: whose turn is the result.
    :param most_runs: of one component in one turn.
    """

    def __init__(self, steps: Mapping[str, "_Step"], first: str, last: str, most_runs: int) -> None:
        self._steps = steps
        self._first = first
        self._last = last
        self._most_runs = most_runs

    @classmethod
    def through(cls, pipeline: Pipeline, first: str, last: str) -> Self | None:
        """The walk through a pipeline; None when a component needs more than one turn, or several get it at once."""
        steps = {name: _step(name, about) for name, about in pipeline.graph.nodes(data=True)}
        walked = {name: step for name, step in steps.items() if step is not None}
        return cls(walked, first, last, pipeline.to_dict()["max_runs_per_component"]) if walked == steps else None

    def run(self, turn: Turn) -> Turn:
        """The turn that the last component sends on; as far as it came when a component sends it nowhere.

        :raises PipelineRuntimeError: a component raised; the cause is what it raised.
        :raises PipelineMaxComponentRuns: a loop does not end.
        """
        name: str | None = self._first
        runs = Counter[str]()
        while name is not None:
            if runs[name] >= self._most_runs:
                raise PipelineMaxComponentRuns(f"Maximum run count {self._most_runs} reached for component '{name}'")
            runs[name] += 1
            step = self._steps[name]
            socket, turn = step.take(turn)
            name = step.onward.get(socket) if name != self._last else None
        return turn


class _Component(Protocol):
    def run(self, **given: object) -> Mapping[str, object]: ...


@dataclass(frozen=True, slots=True)
class _Step:
    """A component, the socket it takes the turn by, in a list where `listed`, and who gets it from each of its own."""

    tags: dict[str, Any]
    component: _Component
    socket: str
    listed: bool
    onward: Mapping[str, str]

    def take(self, turn: Turn) -> tuple[str, Turn]:
        """The turn that the component makes of this one, and the socket by which it sends it on."""
        name, kind = self.tags["haystack.component.name"], type(self.component)
        with tracer.trace("haystack.component.run", tags=self.tags) as span:
            try:
                sent = self.component.run(**{self.socket: [turn] if self.listed else turn})
            except Exception as error:
                raise PipelineRuntimeError.from_exception(name, kind, error) from error
            span.set_content_tag("haystack.component.output", sent)
        ((socket, changed),) = sent.items()
        if not isinstance(changed, Turn):
            raise PipelineRuntimeError.from_invalid_output(name, kind, changed)
        return socket, changed


def _step(name: str, about: Mapping[str, Any]) -> _Step | None:
    needed: list[InputSocket] = [one for one in about["input_sockets"].values() if one.is_mandatory or one.senders]
    sent = {name: socket.receivers for name, socket in about["output_sockets"].items() if socket.type is Turn}
    if len(needed) != 1 or needed[0].type is not Turn or len(sent) < len(about["output_sockets"]):
        return None
    if any(len(receivers) > 1 for receivers in sent.values()):
        return None
    component = about["instance"]
    return _Step(
        tags={
            "haystack.component.name": name,
            "haystack.component.fully_qualified_type": generate_qualified_class_name(type(component)),
        },
        component=component,
        socket=needed[0].name,
        listed=needed[0].is_variadic,
        onward={socket: receivers[0] for socket, receivers in sent.items() if receivers},
    )
