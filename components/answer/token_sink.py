"""Where an answer goes while it is being written: to the sink of this turn, if it has one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

TokenSink: TypeAlias = Callable[[str, bool], None]
"""Takes the next piece of the answer, and whether it is provisional: passed on unchecked."""

_SINK: ContextVar[TokenSink | None] = ContextVar("opora_token_sink", default=None)


@contextmanager
def token_sink(sink: TokenSink | None) -> Iterator[None]:
    """Send the answers written in this block to `sink`, from any thread; None discards them."""
    token = _SINK.set(sink)
    try:
        yield
    finally:
        _SINK.reset(token)


def is_open() -> bool:
    """Return whether a client is reading the answer while it is written."""
    return _SINK.get() is not None


def emit(piece: str, *, provisional: bool = False) -> None:
    """Send the next piece of the answer; all pieces joined are its text."""
    sink = _SINK.get()
    if sink is not None and piece:
        sink(piece, provisional)
