"""Marks a turn as degraded when a step fails, and logs the reason."""

import logging

from components.turn import Turn
from tenants.errors import trail

log = logging.getLogger("opora.steps")


def degraded(turn: Turn, step: str, error: Exception) -> Turn:
    """The turn marked as done without this step. The log gets where the error came from, and nothing that it quotes."""
    log.warning("turn %s without %s: %s", turn.turn_id, step, trail(error))
    return turn.degraded_at(step)
