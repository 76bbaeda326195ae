"""Chooses the model tier of a turn."""

from components.models.calls import Tier
from components.turn import Turn


def tier_of(turn: Turn) -> Tier:
    """The strong one for thorough answers, and for complex questions unless a quick answer is asked for."""
    if turn.quality == "thorough" or (turn.complexity == "complex" and turn.quality != "quick"):
        return "strong"
    return "fast"
