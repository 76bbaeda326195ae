"""The trace that lines of the log belong to, wherever they are written."""

from contextvars import ContextVar

from tenants.insight import traces

_TURN: ContextVar[str] = ContextVar("opora_log_turn", default="")


def begin(turn_id: str) -> None:
    """From here on, in this context, lines belong to the trace of a turn."""
    _TURN.set(turn_id)


def trace_id() -> str:
    """Return the trace of the turn that is being answered; empty outside of one."""
    return traces.trace_id(turn_id) if (turn_id := _TURN.get()) else ""
