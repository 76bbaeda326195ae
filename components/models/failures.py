"""How calling a model can fail: one tree, whatever provider is behind it."""

import json

import httpx

from components.models.calls import CallOutcome


class ModelFailed(Exception):
    """No model gave an answer. `outcome` says what happened to the last one tried."""

    def __init__(self, outcome: CallOutcome) -> None:
        super().__init__(outcome)
        self.outcome: CallOutcome = outcome


class Interrupted(ModelFailed):
    """An answer broke off after some of it had been passed on."""


class Malformed(ModelFailed):
    """The answer is not of the form that was asked for, not even after it was asked for again."""

    def __init__(self) -> None:
        super().__init__("malformed")


def outcome_of(error: BaseException) -> CallOutcome:
    """What an exception from a chat generator means. Providers' clients wrap each other's, so causes are looked at."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModelFailed):
            return cause.outcome
        if isinstance(cause, TimeoutError | httpx.TimeoutException) or "Timeout" in type(cause).__name__:
            return "timeout"
        status = getattr(cause, "status_code", None)
        if isinstance(status, int) and status >= 400:
            return "rate_limited" if status == 429 else "server_error" if status >= 500 else "refused"
        if isinstance(cause, json.JSONDecodeError):
            return "malformed"
        cause = cause.__cause__
    if isinstance(error, ConnectionError | httpx.ConnectError) or "Connection" in type(error).__name__:
        return "refused"
    if isinstance(error, ValueError | KeyError | TypeError | AttributeError | IndexError):
        return "malformed"
    return "server_error"
