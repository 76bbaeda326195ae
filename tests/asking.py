"""Questions in work, as the scheduler of turns counts them."""

from collections.abc import Iterator
from contextlib import contextmanager

from tenants.core import fairness
from tenants.core.fairness import QuestionPriority


@contextmanager
def question(priority: QuestionPriority = fairness._PROCESS) -> Iterator[None]:
    """Count a question while the block runs."""
    priority.begin()
    try:
        yield
    finally:
        priority.end()
