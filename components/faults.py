"""Failed steps of a turn: the turn continues without them and reports them."""

import logging
from contextlib import AbstractContextManager
from contextvars import ContextVar

from components.models.failures import ModelFailed
from tenants.core.errors import trail
from tenants.core.scoped import scoped

log = logging.getLogger("opora.steps")

_NOTED: ContextVar[dict[str, None] | None] = ContextVar("opora_degraded", default=None)


def collect_degraded() -> AbstractContextManager[dict[str, None]]:
    """Collect the names of the steps that fail in this block, in order."""
    return scoped(_NOTED, {})


def degraded(step: str, error: Exception | None = None) -> None:
    """Note that a step failed. The log gets the place of the error and none of the text that it quotes."""
    noted = _NOTED.get()
    if noted is not None:
        noted[step] = None
    if isinstance(error, ModelFailed):
        level = logging.INFO if error.is_late else logging.WARNING
        log.log(level, "without %s: no model answered (%s)", step, error.outcome)
    elif error is not None:
        log.warning("without %s: %s", step, trail(error))


def is_degraded(step: str) -> bool:
    """Return whether the step has failed in this turn."""
    return step in (_NOTED.get() or ())
