"""Problem objects: every error of the tree has its texts, and traces quote no user."""

import json
from collections.abc import Iterator

import pytest

from components.language.texts import LOCALES, keys, text
from pipelines import problems
from tenants.core import errors
from tenants.core.errors import OporaError, RateLimited


def tree(kind: type[OporaError]) -> Iterator[type[OporaError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from tree(child)


def codes() -> set[str]:
    return {kind.code for kind in tree(OporaError) if kind.__module__ == errors.__name__} - {"no_tenant"}


@pytest.mark.parametrize("code", sorted(codes()))
@pytest.mark.parametrize("locale", LOCALES)
def test_every_code_has_a_title_and_says_what_to_do(code: str, locale: str) -> None:
    assert f"service.{code}.title" in keys(f"service.{code}.")
    assert text(f"service.{code}.detail", locale) != text(f"service.{code}.title", locale)


def test_an_unknown_code_gets_a_general_text() -> None:
    body = json.loads(bytes(problems.response(errors.Invalid("never_heard_of")).body))
    assert body["title"] == text("service.invalid_request.title", "ru")
    assert body["type"] == "urn:opora:problem:never_heard_of"


def test_only_errors_that_may_pass_later_say_when() -> None:
    assert problems.response(RateLimited(42)).headers["retry-after"] == "42"
    assert "retry-after" in problems.response(errors.Busy()).headers
    assert "retry-after" not in problems.response(errors.NotFound()).headers


@pytest.mark.parametrize(
    ("header", "locale"),
    [("", ""), ("*", ""), ("ru", "ru"), ("EN-us", "en"), ("fr;q=1, en;q=0.5", "en"), (",;,", ""), ("russisch", "ru")],
)
def test_accept_language(header: str, locale: str) -> None:
    assert problems.locale_of(header) == locale


def test_a_state_is_named_in_words() -> None:
    body = json.loads(bytes(problems.response(errors.Conflict("chat_state", state="human")).body))
    assert body["detail"] == "Чат сейчас: у сотрудника. Для него это действие недоступно."
