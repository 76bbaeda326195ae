"""The ask pipeline, loaded from its YAML and run for one turn."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from haystack import Pipeline
from haystack.core.errors import PipelineRuntimeError

from components.turn import Turn
from pipelines.definition import ALLOWED_MODULES, entry_and_exit, load, with_overlay

YAML = Path(__file__).with_name("ask.yaml")


@runtime_checkable
class Closable(Protocol):
    """Something that holds connections."""

    def close(self) -> None:
        """Release them."""


class AskEngine:
    """Runs turns through the pipeline. Thread-safe once warm: components keep no state between turns.

    Call `run` inside a tenant's context.

    :param path: the pipeline file, or a profile that is laid over one. Its `metadata` names `entry` and `exit`.
    :param thresholds: the `threshold` of steps, by their name, in place of the file's.
    """

    def __init__(self, path: Path = YAML, thresholds: Mapping[str, float] = MappingProxyType({})) -> None:
        changed = {step: {"init_parameters": {"threshold": value}} for step, value in thresholds.items()}
        definition = with_overlay(load(path), {"components": changed})
        self.pipeline = Pipeline.from_dict(definition, allowed_modules=ALLOWED_MODULES)
        self._entry, self._exit = entry_and_exit(definition)
        self.digest = _digest(definition)

    def warm_up(self) -> None:
        """Load what the first question needs."""
        self.pipeline.warm_up()

    def run(self, turn: Turn) -> Turn:
        """The finished turn, or its last state when a step sends it nowhere.

        :raises PipelineRuntimeError: a component raised; its exception is the cause.
        :raises PipelineMaxComponentRuns: a loop does not end.
        """
        (entry, input_socket), (last, output_socket) = self._entry, self._exit
        try:
            outputs = self.pipeline.run({entry: {input_socket: turn}}, include_outputs_from={last})
        except PipelineRuntimeError as error:
            error.pipeline_snapshot = None  # it quotes the question
            raise
        if output_socket in outputs.get(last, {}):
            finished: Turn = outputs[last][output_socket]
            return finished
        return next(
            (value for sockets in outputs.values() for value in sockets.values() if isinstance(value, Turn)), turn
        )

    def close(self) -> None:
        """Release the connections to models."""
        for _, component in self.pipeline.walk():
            for holder in _closable(component):
                holder.close()


def _closable(holder: object) -> Iterator[Closable]:
    """The parts of a component that need closing: models, rankers, embedders."""
    for part in getattr(holder, "__dict__", {}).values():
        if isinstance(part, Closable):
            yield part
        elif type(part).__module__.startswith("components."):
            yield from _closable(part)


def _digest(definition: object) -> str:
    """A digest of the behaviour that a pipeline file defines, independent of comments and layout."""
    return sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:16]
