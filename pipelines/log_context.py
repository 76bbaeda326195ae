"""The trace that lines of the log belong to, wherever they are written."""

from contextvars import ContextVar

from tenants.insight import traces

_TURN: ContextVar[str] = ContextVar("opora_log_turn", default="")


def begin(turn_id: str) -> None:
    _TURN.set(turn_id)


def trace_id() -> str:
    return traces.trace_id(turn_id) if (turn_id := _TURN.get()) else ""
