"""Failures of model calls, independent of the provider."""

import json

import httpx

from components.models.calls import NOT_ATTEMPTED, CallOutcome

_REQUEST_REFUSED = frozenset({400, 413, 422})
"""Statuses for one request, such as by a content filter or for its length.

Threat: if they counted as failures of the provider, one tenant's questions would switch its models off for all tenants.
"""


class ModelFailed(Exception):
    """No model gave an answer.

    :param outcome: of the last model tried.
    :param is_blameless: the call says nothing about the provider, so its breaker ignores it.
    """

    def __init__(self, outcome: CallOutcome, *, is_blameless: bool = False) -> None:
        super().__init__(outcome)
        self.outcome: CallOutcome = outcome
        self.is_blameless = is_blameless or outcome in NOT_ATTEMPTED

    @property
    def is_late(self) -> bool:
        """Whether the turn is over, or the model is being loaded."""
        return self.is_blameless and self.outcome == "timeout"


class Interrupted(ModelFailed):
    """An answer was interrupted after a part of it had been passed on."""


class Malformed(ModelFailed):
    """The answer is not a valid form, even after a second request."""

    def __init__(self) -> None:
        super().__init__("malformed")


def failure_of(error: BaseException) -> ModelFailed:
    """Return the failure that an exception of a chat generator means, without the frames of the exception.

    Clients wrap each other's exceptions, so causes are examined.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModelFailed):
            return ModelFailed(cause.outcome, is_blameless=cause.is_blameless)
        if isinstance(cause, TimeoutError | httpx.TimeoutException) or "Timeout" in type(cause).__name__:
            return ModelFailed("timeout")
        status = getattr(cause, "status_code", None)
        if isinstance(status, int) and status >= 400:
            outcome: CallOutcome = "rate_limited" if status == 429 else "server_error" if status >= 500 else "refused"
            return ModelFailed(outcome, is_blameless=status in _REQUEST_REFUSED)
        if isinstance(cause, json.JSONDecodeError):
            return ModelFailed("malformed")
        cause = cause.__cause__
    if isinstance(error, ConnectionError | httpx.ConnectError) or "Connection" in type(error).__name__:
        return ModelFailed("refused")
    if isinstance(error, ValueError | KeyError | TypeError | AttributeError | IndexError):
        return ModelFailed("malformed")
    return ModelFailed("server_error")
