"""A result of a check of the installation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from components.language.texts import number, text, text_or
from tenants.core.errors import OporaError

Status: TypeAlias = Literal["ok", "warning", "problem"]

SECONDS = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check.

    :param key: of the text in the locale files.
    :param params: values for the text; never secrets.
    :param command: the command that fixes it, or an empty string.
    """

    check: str
    status: Status
    key: str
    params: Mapping[str, str | int | float] = field(default_factory=dict)
    command: str = ""

    @property
    def code(self) -> str:
        return self.key.rpartition(".")[2]

    def words(self, locale: str) -> str:
        params = {
            name: number(value, 1, locale=locale) if isinstance(value, float) else value
            for name, value in self.params.items()
        }
        return text_or(text("doctor.found.failed", locale, error=self.code), self.key, locale, **params)


def ok(check: str, code: str, **params: str | int | float) -> Finding:
    return Finding(check, "ok", f"doctor.found.{code}", params)


def warning(check: str, code: str, command: str = "", **params: str | int | float) -> Finding:
    return Finding(check, "warning", f"doctor.found.{code}", params, command)


def problem(check: str, code: str, command: str = "", **params: str | int | float) -> Finding:
    return Finding(check, "problem", f"doctor.found.{code}", params, command)


def of_error(check: str, error: OporaError, command: str = "") -> Finding:
    return Finding(check, "problem", f"cli.error.{error.code}", error.params, command)
