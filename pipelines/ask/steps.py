"""The steps of a turn as they happen: noted always, watched by whoever asks for it.

Haystack has one tracer in force. Ours stands before whichever there is and passes everything on to it, so that
instrumentation of Haystack (OpenTelemetry, Langfuse, Datadog) sees our runs as any others.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from time import monotonic_ns, time_ns
from typing import Any, TypeAlias

from haystack.tracing.tracer import Span, Tracer, enable_tracing, tracer

from components.models.calls import Call, opened
from components.turn import Turn

Watch: TypeAlias = Callable[[str, Turn], None]
"""Told of each finished step: its name in the pipeline, and the turn it sent on. Runs in the turn's own thread."""

_OUTPUT = "haystack.component.output"


@dataclass(frozen=True, slots=True)
class Step:
    """One run of one component, as it ended.

    :param name: in the pipeline; `visit` counts its runs in this turn from 1.
    :param component: its class, modules included.
    :param started: nanoseconds of the monotonic clock, as `ended`.
    :param sent: the turn it sent on; None when it raised.
    """

    name: str
    visit: int
    component: str
    started: int
    ended: int
    sent: Turn | None

    @property
    def label(self) -> str:
        """The name, a later visit being `name #2`."""
        return self.name if self.visit == 1 else f"{self.name} #{self.visit}"


class Steps:
    """The steps of one turn that have ended, in order, and the calls of models that they made.

    `clock` added to a moment of the monotonic clock gives nanoseconds since 1970.
    """

    def __init__(self, watch: Watch | None = None) -> None:
        self.taken: list[Step] = []
        self.calls: tuple[Call, ...] = ()
        self.clock = time_ns() - monotonic_ns()
        self.watch = watch
        self._visits: dict[str, int] = {}

    @property
    def milliseconds(self) -> dict[str, float]:
        """What each step took, in order, by its label."""
        return {step.label: (step.ended - step.started) / 1e6 for step in self.taken}

    def visit(self, name: str) -> int:
        """Which run of the component begins, from 1."""
        self._visits[name] = visits = self._visits.get(name, 0) + 1
        return visits


_CURRENT: ContextVar[Steps | None] = ContextVar("opora_steps", default=None)
_INSTALLING = Lock()


def trace_steps() -> None:
    """Put our tracer before the one in force. Called at start-up, and harmless at any time.

    `enable_tracing` replaces the tracer before: one that is enabled after the start would end the notes of steps, and
    with them what streams tell. So each turn makes sure of it.
    """
    with _INSTALLING:
        if not isinstance(tracer.actual_tracer, StepTracer):
            enable_tracing(StepTracer(tracer.actual_tracer))


@contextmanager
def noting(watch: Watch | None = None) -> Iterator[Steps]:
    """Note the steps of the turn that runs in this block; the calls of models stand there when it is left."""
    trace_steps()
    steps = Steps(watch)
    token = _CURRENT.set(steps)
    with opened() as calls:
        try:
            yield steps
        finally:
            _CURRENT.reset(token)
            steps.calls = calls.finished


class StepTracer(Tracer):
    """Notes the runs of components for the turn in context.

    :param behind: the tracer that gets every span.
    """

    def __init__(self, behind: Tracer) -> None:
        self.behind = behind

    @contextmanager
    def trace(
        self, operation_name: str, tags: dict[str, Any] | None = None, parent_span: Span | None = None
    ) -> Iterator[Span]:
        """Note the block when it is a component's run."""
        steps = _CURRENT.get()
        about = tags or {}
        name = str(about.get("haystack.component.name", ""))
        with self.behind.trace(operation_name, tags, parent_span) as behind:
            if steps is None or not name:
                yield behind
                return
            visit, span = steps.visit(name), _StepSpan(behind, name, steps.watch)
            started = monotonic_ns()
            try:
                yield span
            finally:
                component = str(about.get("haystack.component.fully_qualified_type", ""))
                steps.taken.append(Step(name, visit, component, started, monotonic_ns(), span.sent))

    def current_span(self) -> Span | None:
        """That of the tracer behind."""
        return self.behind.current_span()


class _StepSpan(Span):
    """Takes a step's output, whatever Haystack's own content tracing is set to."""

    def __init__(self, behind: Span, name: str, watch: Watch | None) -> None:
        self.sent: Turn | None = None
        self._behind = behind
        self._name = name
        self._watch = watch

    def set_tag(self, key: str, value: Any) -> None:  # noqa: ANN401 - Haystack's own signature
        """For the tracer behind."""
        self._behind.set_tag(key, value)

    def set_content_tag(self, key: str, value: Any) -> None:  # noqa: ANN401
        """Haystack gives a step's inputs and outputs here; the span behind decides for itself what it shows of them."""
        self._behind.set_content_tag(key, value)
        if key != _OUTPUT or not isinstance(value, Mapping):
            return
        for sent in value.values():
            if isinstance(sent, Turn):
                self.sent = sent
                if self._watch is not None:
                    self._watch(self._name, sent)

    def raw_span(self) -> Any:  # noqa: ANN401
        """The span behind."""
        return self._behind.raw_span()

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        """What the tracer behind puts into logs."""
        return self._behind.get_correlation_data_for_logs()
