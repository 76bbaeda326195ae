"""Errors as callers see them: problem objects (RFC 9457) with a stable code and a text in their language.

Nothing internal gets out: no exception text, no class or path, no echo of a value that was sent.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import HTTPException
from pydantic import BaseModel, ValidationError
from starlette.responses import Response
from starlette.types import Scope

from components.language.texts import LOCALES, text, text_or
from tenants.core.errors import CallerError, Invalid, Malformed, OporaError, RateLimited

Model = TypeVar("Model", bound=BaseModel)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1
"""Value of `Retry-After` for `busy` or `unavailable`: the service is free within a second, or not soon."""
_FIELD_LENGTH = 100
_OWN_CODES = frozenset({"question_empty", "question_too_long", "contact_invalid"})


class UnreadableFields(Invalid):
    """JSON, but not what the endpoint takes.

    :param fields: the (path, code) of each complaint, paths in the caller's own names.
    """

    def __init__(self, fields: tuple[tuple[str, str], ...]) -> None:
        super().__init__(fields[0][1])
        self.fields = fields


class ProblemException(HTTPException):
    """Carries an error through Hayhooks, which answers any other exception with a 500 that quotes its text."""

    def __init__(self, error: OporaError) -> None:
        super().__init__(error.status, error.code)
        self.error = error


class TextResponse(Response):
    """A response that converts to its body where Hayhooks needs text, as for MCP."""

    def __str__(self) -> str:
        return bytes(self.body).decode()


@dataclass(frozen=True, slots=True)
class Caller:
    """Context for answering a request: the locale, the id in the `X-Request-Id` header, and the parts of the ASGI scope
    that the service's address consists of. Work that outlives the request keeps it, so it has no token and no body.
    """

    locale: str = LOCALES[0]
    request_id: str = ""
    scope: Scope = field(default_factory=dict)


_ANYBODY = Caller()
caller: ContextVar[Caller] = ContextVar("opora_caller", default=_ANYBODY)
"""Set by the gate."""


def response(error: OporaError, *, turn_id: str | None = None) -> TextResponse:
    """Return the HTTP answer to an error.

    :param turn_id: the turn that failed, when one had begun.
    """
    title, detail = explained(error)
    body: dict[str, object] = {
        "type": f"urn:opora:problem:{error.code}",
        "title": title,
        "status": error.status,
        "code": error.code,
        "detail": detail,
        "retryable": error.retryable,
        "request_id": caller.get().request_id,
        "turn_id": turn_id,
    }
    if isinstance(error, UnreadableFields):
        body["errors"] = [{"field": field, "code": code} for field, code in error.fields]
    headers = {"Content-Language": caller.get().locale, "Cache-Control": "no-store"}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
    if isinstance(error, RateLimited):
        headers["Retry-After"] = str(error.retry_after)
    elif error.retryable:
        headers["Retry-After"] = str(RETRY_SECONDS)
    return TextResponse(json.dumps(body, ensure_ascii=False), error.status, headers, MEDIA_TYPE)


def explained(error: OporaError) -> tuple[str, str]:
    locale = caller.get().locale
    return _text("title", locale, error), _text("detail", locale, error)


def detail(error: OporaError) -> str:
    return _text("detail", caller.get().locale, error)


def checked(model: type[Model], /, **fields: object) -> Model:
    """Return the model of these fields. Raises `CallerError` for fields that it does not accept."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise from_validation(error) from None


def refused_as(code: str, **params: str | int) -> AbstractContextManager[None]:
    """Raise `Invalid` with this code for values that a model does not accept."""
    return Invalid(code, **params).instead_of(ValidationError)


def from_validation(error: ValidationError) -> CallerError:
    """Return the typed error behind pydantic's, whose own text names our models and quotes the input."""
    return from_complaints(error.errors(include_url=False, include_input=False))


def from_complaints(complaints: Sequence[Mapping[str, Any]]) -> CallerError:
    """Return the typed error for pydantic's list of errors, each with `type`, `loc` and perhaps `ctx`."""
    if any(complaint["type"] == "json_invalid" for complaint in complaints):
        return Malformed()
    fields: list[tuple[str, str]] = []
    for complaint in complaints[:20]:
        path = [str(part) for part in complaint["loc"]]
        code = _code(complaint["type"], path, str(complaint.get("ctx", {}).get("error", "")))
        fields.append((".".join(path)[:_FIELD_LENGTH], code))
    return UnreadableFields(tuple(fields))


def locale_of(accept_language: str) -> str:
    """Return the first supported locale in an `Accept-Language` header; empty if there is none."""
    for item in accept_language.split(","):
        tag = item.split(";", 1)[0].strip().lower()[:2]
        if tag in LOCALES:
            return tag
    return ""


def _code(kind: str, path: list[str], message: str) -> str:
    if kind == "extra_forbidden":
        return "unknown_filter" if path[0] == "filters" else "unknown_field"
    if kind == "missing":
        return "field_missing"
    return message if message in _OWN_CODES else "field_invalid"


def _text(kind: str, locale: str, error: OporaError) -> str:
    params = dict(error.params)
    if state := params.get("state"):
        params["state"] = text_or(str(state), f"chats.state.{state}", locale)
    for name in (error.code, "invalid_request" if isinstance(error, CallerError) else "internal_error"):
        try:
            return text(f"service.{name}.{kind}", locale, **params)
        except KeyError:
            continue
    return HTTPStatus(error.status).phrase
