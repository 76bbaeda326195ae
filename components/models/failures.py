"""Failures of model calls, independent of the provider."""

import json

import httpx

from components.models.calls import NOT_ATTEMPTED, CallOutcome


class ModelFailed(Exception):
    """No model gave an answer.

    :param outcome: of the last model tried.
    :param is_blameless: the call says nothing about the provider, so its breaker ignores it.
    """

    def __init__(self, outcome: CallOutcome, *, is_blameless: bool = False) -> None:
        super().__init__(outcome)
        self.outcome: CallOutcome = outcome
        self.is_blameless = is_blameless or outcome in NOT_ATTEMPTED


class Interrupted(ModelFailed):
    """An answer was interrupted after a part of it had been passed on."""


class Malformed(ModelFailed):
    """The answer is not a valid form, even after a second request."""

    def __init__(self) -> None:
        super().__init__("malformed")


def outcome_of(error: BaseException) -> CallOutcome:
    """Return the outcome that an exception of a chat generator means.

    Clients wrap each other's exceptions, so causes are examined.
    """
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
