"""The model calls of one turn: their deadline, whether a client still waits, and their outcomes."""

import math
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from secrets import token_hex
from threading import Event, Lock
from time import monotonic
from typing import Literal, TypeAlias

from components.turn import Complexity, Quality
from tenants.core.scoped import scoped

_WITHOUT_MODELS = 0.05
"""Share of a turn's time reserved for answering without models when they do not respond."""

_WITHOUT_MODELS_SECONDS = 0.5
"""The minimum of that reserve, though never more than a quarter of the turn."""

Tier: TypeAlias = Literal["fast", "strong"]
CallOutcome: TypeAlias = Literal[
    "ok",
    "timeout",
    "refused",
    "server_error",
    "rate_limited",
    "malformed",
    "empty",
    "stopped",
    "too_dear",
    "open_circuit",
    "busy",
]

NOT_ATTEMPTED: frozenset[CallOutcome] = frozenset({"stopped", "too_dear", "open_circuit", "busy"})
"""Outcomes that tell nothing about the provider: the call never reached it, or the caller had stopped waiting."""


def tier_of(quality: Quality, complexity: Complexity) -> Tier:
    """Return the strong tier for thorough answers, and for complex questions unless a quick answer is requested."""
    if quality == "thorough" or (complexity == "complex" and quality != "quick"):
        return "strong"
    return "fast"


@dataclass(frozen=True, slots=True)
class Call:
    """A finished call of a language model.

    `step` is the calling step, `prompt` the name and version of the prompt (`answer.ru@1a2b3c4d`), `started` seconds of
    the monotonic clock. Tokens are the provider's count, 0 if not reported: then `cost_usd` is an estimate. It is
    missing without a price. `caller` is the step of the pipeline that was running, as traces label it; empty outside.
    `request` is the text of all messages that were sent.
    """

    step: str
    provider: str
    model: str
    prompt: str
    tier: Tier
    started: float
    milliseconds: float
    outcome: CallOutcome
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    caller: str = ""
    request: str = field(default="", repr=False)


@dataclass(slots=True)
class Calls:
    """The calls of a turn and the bounds they share. Thread-safe.

    `deadline` is a moment of the monotonic clock. `stop` is set when no client waits for the answer any more. `fence`
    names the blocks of this turn's prompts: text written before the turn cannot contain it.
    """

    deadline: float = math.inf
    stop: Event = field(default_factory=Event)
    fence: str = field(default_factory=lambda: token_hex(4))
    _finished: list[Call] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @property
    def finished(self) -> tuple[Call, ...]:
        """Return the calls so far, in the order in which they ended."""
        with self._lock:
            return tuple(self._finished)

    def add(self, call: Call) -> None:
        """Record a finished call."""
        with self._lock:
            self._finished.append(call)

    def remaining(self) -> float:
        """Return the seconds left for the turn; negative after the deadline."""
        return self.deadline - monotonic()


_CURRENT: ContextVar[Calls | None] = ContextVar("opora_calls", default=None)
_CALLER: ContextVar[str] = ContextVar("opora_caller", default="")


def for_models(budget: float) -> float:
    """Return the seconds of a turn's `budget` that models may use."""
    return budget - max(budget * _WITHOUT_MODELS, min(_WITHOUT_MODELS_SECONDS, budget / 4))


def current() -> Calls:
    """Return the calls of the current turn; new, unbounded ones outside a turn."""
    return _CURRENT.get() or Calls()


def caller() -> str:
    """Return the step of the pipeline that is running here; empty outside of one."""
    return _CALLER.get()


def calling_from(step: str) -> AbstractContextManager[str]:
    """Name the step that makes the calls of this block."""
    return scoped(_CALLER, step)


def collect_calls(deadline: float | None = None, stop: Event | None = None) -> AbstractContextManager[Calls]:
    """Collect the calls of this block, within bounds; missing bounds are those of the enclosing block."""
    around = current()
    return scoped(_CURRENT, Calls(around.deadline if deadline is None else deadline, stop or around.stop))
