"""Policy rules as form fields, by topic."""

from collections.abc import Mapping

from components.language.figures import number
from components.language.texts import text
from pipelines import problems
from settings import get_settings
from tenants.accounts.policy import Policy
from ui.desk.settings import forms
from ui.desk.settings.forms import MEGABYTE, Bounds, Form, Input

GROUPS: Mapping[str, tuple[str, ...]] = {
    "assistant": ("name", "locale", "topics_ru", "topics_en", "profile", "streaming", "chat_tools"),
    "answers": ("answer_threshold", "low_confidence_to_human", "top_k", "allowed_domains"),
    "handoff": ("handoff_channel", "spent_budget_to_person", "failures_to_person", "queue_minutes"),
    "email": ("email_replies", "email_from_name", "email_after_minutes", "alert_email"),
    "files": ("chat_file_bytes", "chat_files", "chat_storage_bytes"),
    "retention": ("chat_days", "chat_file_days", "audit_days", "trace_content"),
    "limits": ("spend_cap_usd_per_day", "rate_limit_per_minute", "rate_limit_per_day"),
}
ELSEWHERE = frozenset({"approved_offers", "synonyms", "hours", "evaluation_hour"})
"""Rules with a separate page."""

_UNITS = {"chat_file_bytes": MEGABYTE, "chat_storage_bytes": MEGABYTE}
_OF_INSTALLATION = frozenset({"audit_days", "rate_limit_per_minute", "rate_limit_per_day"})
"""Rules that default to the installation's setting of the same name."""


def form_of(group: str) -> Form:
    """Return the form of a topic."""
    return Form(*map(_input, GROUPS[group]))


def _input(name: str) -> Input:
    known = forms.bounds_of(Policy, name)
    unit = _UNITS.get(name, 1)
    return Input(
        name,
        "choice" if name == "profile" else known.kind,
        _choices(name, known),
        _bounds(known, unit),
        _default(name, known, unit),
        required=known.kind in ("text", "number") and name != "profile" and not known.optional,
        optional=known.optional,
        unit=unit,
    )


def _choices(name: str, known: Bounds) -> tuple[tuple[str, str], ...]:
    if name == "profile":
        default = _text("of_installation", value=get_settings().profile)
        return (("", default), *((profile, profile) for profile in get_settings().profiles))
    return tuple((choice, text(f"desk.settings.policy.{name}.{choice}", _locale())) for choice in known.choices)


def _bounds(known: Bounds, unit: int) -> str:
    if known.kind != "number" or known.least is None:
        return ""
    least = _number(known.least / unit)
    if known.most is None:
        return _text("at_least", least=least)
    return _text("from_to", least=least, most=_number(known.most / unit))


def _default(name: str, known: Bounds, unit: int) -> str:
    if known.kind == "flag":
        return _text("default", value=_text("yes" if known.default else "no"))
    if name in _OF_INSTALLATION:
        value = _number(getattr(get_settings(), name))
        return _text("empty_installation", value=value, setting=f"OPORA_{name.upper()}")
    if isinstance(known.default, int | float):
        return _text("default", value=_number(known.default / unit))
    return ""


def _number(value: float) -> str:
    return number(value, None, locale=_locale())


def _text(key: str, **params: str) -> str:
    return text(f"desk.settings.form.{key}", _locale(), **params)


def _locale() -> str:
    return problems.caller.get().locale
