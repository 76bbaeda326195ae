"""Spans of a finished turn, before they are handed to OpenTelemetry's SDK."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = Mapping[str, Value]

_ID_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Event:
    """An event at a moment in nanoseconds since 1970."""

    name: str
    at: int
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Span:
    """A period of a turn. `parent` is the position of the enclosing span in the trace; the first span has none."""

    name: str
    started: int
    ended: int
    attributes: Attributes
    parent: int | None = 0
    events: Sequence[Event] = ()
    error: str | None = None


def span_id(trace_id: str, position: int) -> str:
    """Compute the id of a span from its position in the trace, even long after sending, such as for feedback.

    Trace ids are random, so span ids derived from their lower half are as good as random ones.
    """
    return f"{(int(trace_id, 16) & _ID_BITS) ^ position:016x}"
