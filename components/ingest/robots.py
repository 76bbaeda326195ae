"""What a site asks of robots, by RFC 9309: the longest rule that matches an address decides, `*` and `$` included."""

from collections.abc import Sequence
from dataclasses import dataclass

from components.turn import Frozen

_LONGEST = 500_000
_MOST_DELAY = 10.0


@dataclass(frozen=True, slots=True)
class Robots(Frozen):
    """The rules that hold for us.

    :param rules: (path pattern, allowed).
    :param delay: seconds to wait between two pages.
    """

    rules: Sequence[tuple[str, bool]] = ()
    delay: float = 0.0

    def allows(self, path: str) -> bool:
        """Whether a path, with its query, may be fetched."""
        matching = [(len(pattern), allowed) for pattern, allowed in self.rules if _matches(pattern, path)]
        return max(matching, default=(0, True))[1]


CLOSED = Robots((("/", False),))
"""For a site that cannot say what it asks: its server fails."""


def parsed(text: str, agent: str) -> Robots:
    """The rules of a `robots.txt` for `agent`: those of the groups that name it, else those for everybody."""
    named: list[tuple[str, str]] = []
    general: list[tuple[str, str]] = []
    agents: set[str] = set()
    rules_began = known = False
    for line in text[:_LONGEST].splitlines():
        field, separator, value = line.partition("#")[0].partition(":")
        field, value = field.strip().lower(), value.strip()
        if not separator:
            continue
        if field == "user-agent":
            # Agents in a row share the rules that follow.
            agents = {value.lower()} if rules_began else agents | {value.lower()}
            rules_began = False
            known = known or value.lower() == agent.lower()
        elif field in ("allow", "disallow", "crawl-delay"):
            rules_began = True
            if agent.lower() in agents:
                named.append((field, value))
            elif "*" in agents:
                general.append((field, value))
    return _robots(named if known else general)


def _robots(lines: Sequence[tuple[str, str]]) -> Robots:
    rules = tuple((value, field == "allow") for field, value in lines if field != "crawl-delay" and value)
    delays = [_seconds(value) for field, value in lines if field == "crawl-delay"]
    return Robots(rules, min(max(delays, default=0.0), _MOST_DELAY))


def _seconds(value: str) -> float:
    return float(value) if value.replace(".", "", 1).isdecimal() and value.isascii() else 0.0


def _matches(pattern: str, path: str) -> bool:
    """Piece by piece, because a pattern made of stars takes a regular expression for ever."""
    whole = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for number, piece in enumerate(others, 1):
        if whole and number == len(others):
            return path.endswith(piece) and len(path) - len(piece) >= at
        found = path.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return at == len(path) if whole and not others else True
