"""The steps of a turn as they happen: timed always, watched by whoever asks for it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import TypeAlias

from haystack.tracing.tracer import NullSpan, Span, Tracer

from components.turn import Turn

Watch: TypeAlias = Callable[[str, Turn], None]
"""Told of each finished step: its name in the pipeline, and the turn it sent on. Runs in the turn's own thread."""

_OUTPUT = "haystack.component.output"


class Steps:
    """What is known of the steps of one turn: `milliseconds` of each in order, a later pass being `name #2`."""

    def __init__(self, watch: Watch | None = None) -> None:
        self.milliseconds: dict[str, float] = {}
        self.watch = watch

    def add(self, name: str, milliseconds: float) -> None:
        """Note a step's duration."""
        visits = sum(1 for step in self.milliseconds if step == name or step.startswith(f"{name} #"))
        self.milliseconds[name if not visits else f"{name} #{visits + 1}"] = milliseconds


_CURRENT: ContextVar[Steps | None] = ContextVar("opora_steps", default=None)


@contextmanager
def noting(watch: Watch | None = None) -> Iterator[Steps]:
    """Note the steps of the turn that runs in this block."""
    steps = Steps(watch)
    token = _CURRENT.set(steps)
    try:
        yield steps
    finally:
        _CURRENT.reset(token)


class StepTracer(Tracer):
    """Haystack's way of telling what a pipeline does. Keeps no content."""

    def __init__(self) -> None:
        self._silent = NullSpan()

    @contextmanager
    def trace(
        self,
        operation_name: str,  # noqa: ARG002 - Haystack passes these by name
        tags: dict[str, object] | None = None,
        parent_span: Span | None = None,  # noqa: ARG002
    ) -> Iterator[Span]:
        """Note the block when it is a component's run."""
        steps = _CURRENT.get()
        name = str((tags or {}).get("haystack.component.name", ""))
        if steps is None or not name:
            yield self._silent
            return
        started = perf_counter()
        try:
            yield self._silent if steps.watch is None else _WatchedSpan(name, steps.watch)
        finally:
            steps.add(name, (perf_counter() - started) * 1_000)

    def current_span(self) -> Span | None:
        """No span is kept open."""
        return None


class _WatchedSpan(NullSpan):
    """Passes a step's output on to who watches, whatever Haystack's own content tracing is set to."""

    def __init__(self, name: str, watch: Watch) -> None:
        self._name = name
        self._watch = watch

    def set_content_tag(self, key: str, value: object) -> None:
        """Haystack gives a step's inputs and outputs here."""
        if key == _OUTPUT and isinstance(value, Mapping):
            for sent in value.values():
                if isinstance(sent, Turn):
                    self._watch(self._name, sent)
