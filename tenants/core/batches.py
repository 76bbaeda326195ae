"""Long iterables, and long work, in parts: for statements, messages and transactions of bounded size."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from threading import Event
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

PARAMETERS = 500
"""Values that one SQL statement is given."""


def batches(items: Iterable[T], size: int = PARAMETERS) -> Iterator[list[T]]:
    """Yield the items in lists of `size`, the last one perhaps shorter; `itertools.batched` needs Python 3.12."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def repeat(remove_some: Callable[[int], int], size: int, closing: Event | None = None) -> int:
    """Remove rows in transactions of bounded size until none is left; return their number.

    It pauses after each for as long as it took: SQLite has one writer, and others have to come in between.

    :param remove_some: removes up to so many rows; returns how many.
    :param closing: set when the process stops.
    """
    closing, total = closing or Event(), 0
    while not closing.is_set():
        began = perf_counter()
        removed = remove_some(size)
        total += removed
        if removed < size:
            break
        closing.wait(perf_counter() - began)
    return total
