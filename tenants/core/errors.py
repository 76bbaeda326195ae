"""The error tree. Each leaf maps to one HTTP status and one stable code.

Texts for people are looked up by `code` in the locale files; an exception has no text that could reach a customer. The
three branches tell who has to act: the caller, no one (try again), or us.
"""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import ClassVar


class OporaError(Exception):
    """Base of every error that Opora raises on purpose.

    :param code: the stable ASCII code, when a class covers several.
    :param params: values for the localised text; never secrets, never another tenant's data.
    """

    code: str = "internal_error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, code: str | None = None, **params: str | int | float) -> None:
        self.code = code or type(self).code
        self.params = params
        super().__init__(self.code)

    @contextmanager
    def instead_of(self, *kinds: type[Exception]) -> Iterator[None]:
        """Raise this error in place of errors of these kinds that the block raises; they are its cause."""
        try:
            yield
        except kinds as cause:
            raise self from cause


class CallerError(OporaError):
    """The request must change before it can succeed."""

    code = "invalid_request"
    status = 422


class Malformed(CallerError):
    """The request cannot be read at all: broken UTF-8, broken JSON, headers that contradict each other."""

    code = "malformed_body"
    status = 400


class Unauthenticated(CallerError):
    """No acceptable token. Codes: `token_missing`, `token_invalid`, `token_expired`, `token_revoked`,
    `token_too_large`."""

    code = "token_invalid"
    status = 401


class Forbidden(CallerError):
    """A valid token without the scope for this."""

    code = "scope_missing"
    status = 403


class NotFound(CallerError):
    """Missing, or another tenant's: the two look the same from outside."""

    code = "not_found"
    status = 404


class Conflict(CallerError):
    """The resource has changed since the caller read it. Read it again, then decide.

    Codes: `chat_changed`, `chat_answered`, `chat_state`.
    """

    code = "chat_changed"
    status = 409


class TooLarge(CallerError):
    """The body exceeds the configured size."""

    code = "body_too_large"
    status = 413


class UnsupportedMedia(CallerError):
    """A content type or file format that Opora does not read."""

    code = "unsupported_media_type"
    status = 415


class Invalid(CallerError):
    """A readable request with a value that is out of bounds or unknown."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """A value that does not fit, without the value itself, which may be a secret.

    :param path: names of the field, from the outermost; a number is a place in a list.
    :param kind: the type of pydantic's error, or our own code.
    :param bounds: the limits that the value has to keep.
    """

    path: tuple[str | int, ...]
    kind: str
    bounds: Mapping[str, str | int | float] = field(default_factory=dict)


class InvalidFields(Invalid):
    """Fields with values that do not fit, each with its reason. The parameter `field` is the path of the first."""

    def __init__(self, code: str, *complaints: Complaint) -> None:
        super().__init__(code, field=".".join(map(str, complaints[0].path)))
        self.complaints = complaints


class RateLimited(CallerError):
    """Too many requests; `retry_after` seconds is when the next one can pass.

    Code `chats_full`: the tenant has written as much to its chats as it may in a day.
    """

    code = "rate_limited"
    status = 429
    retryable = True

    def __init__(self, retry_after: int, code: str | None = None) -> None:
        super().__init__(code, retry_after=retry_after)
        self.retry_after = retry_after


class TryAgain(OporaError):
    """The request is valid; the same one can succeed later."""

    code = "unavailable"
    status = 503
    retryable = True


class Busy(TryAgain):
    """The data folder or the service is in use. Code `data_in_use`: another process has the index."""

    code = "busy"


class Locked(TryAgain):
    """Another transaction holds a row for longer than this one waits for it."""


class Clash(TryAgain):
    """Another transaction has just added, changed or removed the same row."""


class IndexDamaged(TryAgain):
    """The tenant's index does not match the records. It is rebuilt from the stored texts.

    :param damage: `missing`, `unreadable` or `incomplete`.
    """

    code = "index_damaged"

    def __init__(self, damage: str) -> None:
        super().__init__(damage=damage)
        self.damage = damage


class TimedOut(TryAgain):
    """The turn took longer than its budget."""

    code = "timeout"
    status = 504


class InternalFault(OporaError):
    """Our own fault: a broken invariant or configuration. Logged in full, shown only as a code."""


class NoTenant(InternalFault):
    """Stored data was asked for outside a tenant context."""

    code = "no_tenant"


def own_error(error: BaseException | None) -> OporaError | None:
    """Return the Opora error that caused an error of a pipeline."""
    while error is not None and not isinstance(error, OporaError):
        error = error.__cause__
    return error


_TRAIL_STEPS = 4


def trail(error: BaseException) -> str:
    """Return the origin of an exception for the log: classes and frames only.

    Messages and values stay out, because they can quote a question, a token or a document.
    """
    steps: list[str] = []
    current: BaseException | None = error
    # An error of a group has that group as its context: chains may be rings.
    while current is not None and len(steps) < _TRAIL_STEPS:
        frames = traceback.extract_tb(current.__traceback__)
        where = " > ".join(f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in frames[-6:])
        code = f"({current.code})" if isinstance(current, OporaError) else ""
        steps.append(f"{type(current).__name__}{code} at {where}")
        within = current.exceptions[0] if isinstance(current, BaseExceptionGroup) else None
        current = within or current.__cause__ or current.__context__
    return " <- ".join(steps)
