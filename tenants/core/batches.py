"""Long iterables in parts, for statements and messages of bounded size."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

PARAMETERS = 500
"""Values that one SQL statement is given."""


def batches(items: Iterable[T], size: int = PARAMETERS) -> Iterator[list[T]]:
    """Yield the items in lists of `size`, the last one perhaps shorter; `itertools.batched` needs Python 3.12."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
