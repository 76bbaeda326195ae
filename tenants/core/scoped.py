"""Values of the running call: set for the duration of a block."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Value = TypeVar("Value")


@contextmanager
def scoped(variable: ContextVar[Any], value: Value) -> Iterator[Value]:
    """Run the block with the variable at `value`; the value before it is restored afterwards."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
