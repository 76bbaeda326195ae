"""Records the steps of a turn as they run, and passes them to an optional watcher.

Haystack has one active tracer. Ours wraps the existing one and forwards everything to it, so that
instrumentation of Haystack (OpenTelemetry, Langfuse, Datadog) sees our runs as usual.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from time import monotonic_ns, time_ns
from typing import Any, TypeAlias

from haystack.core.errors import PipelineRuntimeError
from haystack.dataclasses import ChatMessage
from haystack.tracing.tracer import Span, Tracer, enable_tracing, tracer

from components.language.marks import on_one_line
from components.models import calls
from components.models.call_format import provider_named, tokens
from components.models.calls import Call, calling_from, collect_calls
from tenants.core.scoped import scoped

Outputs: TypeAlias = Mapping[str, Any]
"""The values that a component sent to its output sockets, by socket."""

_OUTPUT = "haystack.component.output"


@dataclass(frozen=True, slots=True)
class Step:
    """A finished run of a component.

    :param name: in the pipeline; `visit` counts its runs in this turn from 1.
    :param component: its class, modules included.
    :param started: nanoseconds of the monotonic clock; so is `ended`.
    :param outputs: outputs of the component; None if it raised.
    """

    name: str
    visit: int
    component: str
    started: int
    ended: int
    outputs: Outputs | None

    @property
    def label(self) -> str:
        """Return the name, a later visit being `name #2`."""
        return label(self.name, self.visit)


Watch: TypeAlias = Callable[[Step], None]
"""Called for each step that has finished without an exception, in the thread of the step."""


def label(name: str, visit: int) -> str:
    return name if visit == 1 else f"{name} #{visit}"


class Steps:
    """The finished steps of a turn in order, and their model calls.

    `clock` added to a moment of the monotonic clock gives nanoseconds since 1970.
    """

    def __init__(self, watch: Watch | None = None) -> None:
        self.finished: list[Step] = []
        self.calls: tuple[Call, ...] = ()
        self.clock = time_ns() - monotonic_ns()
        self.watch = watch
        self._visits: dict[str, int] = {}

    @property
    def milliseconds(self) -> dict[str, float]:
        return {step.label: (step.ended - step.started) / 1e6 for step in self.finished}

    def visit(self, name: str) -> int:
        """Count a new run of the component; returns its number, from 1."""
        self._visits[name] = visits = self._visits.get(name, 0) + 1
        return visits


_CURRENT: ContextVar[Steps | None] = ContextVar("opora_steps", default=None)
_FAULTS: ContextVar[list[str] | None] = ContextVar("opora_faults", default=None)
_INSTALLING = Lock()


def trace_steps() -> None:
    """Wrap Haystack's active tracer with ours. Idempotent; called at start-up and before each turn.

    `enable_tracing` replaces the active tracer: one enabled after start-up would stop the recording of steps, and
    with it the events of streams. Therefore each turn calls this again.
    """
    with _INSTALLING:
        if not isinstance(tracer.actual_tracer, StepTracer):
            enable_tracing(StepTracer(tracer.actual_tracer))


@contextmanager
def record_steps(watch: Watch | None = None) -> Iterator[Steps]:
    """Record the steps of the turn that runs in this block; model calls are added when the block ends."""
    trace_steps()
    with scoped(_CURRENT, Steps(watch)) as steps, collect_calls() as collected:
        try:
            yield steps
        finally:
            steps.calls = collected.finished


def collect_faults() -> AbstractContextManager[list[str]]:
    """Collect why turns fail in this block. For authors of pipelines only: the text may quote the question."""
    return scoped(_FAULTS, [])


def note_fault(error: Exception) -> None:
    """Note why a turn fails: the step, and the message of its component."""
    faults = _FAULTS.get()
    if faults is None:
        return
    step = f"{error.component_name}: " if isinstance(error, PipelineRuntimeError) else ""
    cause = error.__cause__ or error
    faults.append(f"{step}{type(cause).__name__}: {on_one_line(str(cause))}")


class StepTracer(Tracer):
    """Records component runs for the turn in context."""

    def __init__(self, wrapped: Tracer) -> None:
        self.wrapped = wrapped

    @contextmanager
    def trace(
        self, operation_name: str, tags: dict[str, Any] | None = None, parent_span: Span | None = None
    ) -> Iterator[Span]:
        steps = _CURRENT.get()
        attributes = tags or {}
        name = str(attributes.get("haystack.component.name", ""))
        with self.wrapped.trace(operation_name, tags, parent_span) as wrapped:
            if steps is None or not name:
                yield wrapped
                return
            visit, span = steps.visit(name), _StepSpan(wrapped)
            started = monotonic_ns()
            try:
                with calling_from(label(name, visit)):
                    yield span
            finally:
                component = str(attributes.get("haystack.component.fully_qualified_type", ""))
                step = Step(name, visit, component, started, monotonic_ns(), span.outputs)
                steps.finished.append(step)
            if (call := _stock_call(step, str(attributes.get("haystack.component.type", "")))) is not None:
                calls.current().add(call)
            if steps.watch is not None and step.outputs is not None:
                steps.watch(step)

    def current_span(self) -> Span | None:
        return self.wrapped.current_span()


def _stock_call(step: Step, generator: str) -> Call | None:
    """Return the call of a model if a stock generator has made one: its replies name the model.

    :param generator: class of the component that ran.
    """
    replies = (step.outputs or {}).get("replies")
    reply = replies[0] if isinstance(replies, list) and replies else None
    if not isinstance(reply, ChatMessage) or "model" not in reply.meta:
        return None
    read, written = tokens(reply)
    return Call(
        step=step.name,
        provider=provider_named(generator),
        model=str(reply.meta["model"]),
        prompt="",
        tier="fast",
        started=step.started / 1e9,
        milliseconds=(step.ended - step.started) / 1e6,
        outcome="ok",
        prompt_tokens=read,
        completion_tokens=written,
        caller=calls.caller() or step.label,
    )


class _StepSpan(Span):
    """Captures a step's output regardless of Haystack's content tracing setting."""

    def __init__(self, wrapped: Span) -> None:
        self.outputs: Outputs | None = None
        self._wrapped = wrapped

    def set_tag(self, key: str, value: Any) -> None:  # noqa: ANN401 - Haystack's own signature
        self._wrapped.set_tag(key, value)

    def set_content_tag(self, key: str, value: Any) -> None:  # noqa: ANN401
        """Capture a step's output and forward the tag; the wrapped span decides for itself what content it shows."""
        self._wrapped.set_content_tag(key, value)
        if key == _OUTPUT and isinstance(value, Mapping):
            self.outputs = dict(value)

    def raw_span(self) -> Any:  # noqa: ANN401
        return self._wrapped.raw_span()

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        return self._wrapped.get_correlation_data_for_logs()
