"""Telling an answer while it is being written, to whoever listens to this turn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Sink: TypeAlias = Callable[[str, bool], None]
"""Takes the next piece of the answer, and whether it is provisional: passed on as it comes, unchecked."""

_SINK: ContextVar[Sink | None] = ContextVar("opora_telling", default=None)


@contextmanager
def heard_by(sink: Sink | None) -> Iterator[None]:
    """Tell `sink`, if there is one, of the answers written in this block, from whatever thread writes them."""
    token = _SINK.set(sink)
    try:
        yield
    finally:
        _SINK.reset(token)


def say(piece: str, *, provisional: bool = False) -> None:
    """Pass on the next piece of the answer. Pieces joined are its text; nobody has to listen."""
    sink = _SINK.get()
    if sink is not None and piece:
        sink(piece, provisional)
