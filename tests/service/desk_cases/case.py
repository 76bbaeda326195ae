"""Case of a desk page: its scope, the fields of its form, and ids of `acme` and of `globex`."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PageCase:
    """`own` and `foreign` fill the path or the form. `answers` are the statuses for an operator with access."""

    scope: str | None
    form: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    answers: tuple[int, ...] = (200,)
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Of a form with files."""


def chat_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one chat."""
    own, foreign = {"chat_id": "chat-of-acme"}, {"chat_id": "chat-of-globex"}
    return PageCase("operate", form or {}, own=own, foreign=foreign, answers=answers or (200,))
