"""Policy rules as form fields, by topic."""

from collections.abc import Iterable, Mapping
from typing import Any

from components.language.texts import number, text
from settings import get_settings
from tenants.accounts.policy import Policy
from ui.desk.rendering import reader_locale
from ui.desk.settings.forms import Field, Form, Kind

GROUPS: Mapping[str, tuple[str, ...]] = {
    "assistant": ("name", "locale", "topics_ru", "topics_en", "profile", "streaming", "chat_tools"),
    "answers": ("answer_threshold", "low_confidence_to_human", "top_k", "allowed_domains"),
    "handoff": ("handoff_channel", "spent_budget_to_person", "failures_to_person", "queue_minutes"),
    "email": ("email_replies", "email_from_name", "email_after_minutes", "alert_email"),
    "files": ("chat_file_bytes", "chat_files", "chat_storage_bytes"),
    "retention": ("chat_days", "chat_file_days", "audit_days", "trace_content"),
    "limits": ("spend_cap_usd_per_day", "rate_limit_per_minute", "rate_limit_per_day"),
}
_MEGABYTE = 1_000_000
_UNITS = {"chat_file_bytes": _MEGABYTE, "chat_storage_bytes": _MEGABYTE}
_KINDS: Mapping[str, Kind] = {"boolean": "flag", "integer": "number", "number": "number", "array": "lines"}
_OF_INSTALLATION = frozenset({"audit_days", "rate_limit_per_minute", "rate_limit_per_day"})
"""Rules that default to the installation's setting of the same name."""


def form_of(group: str) -> Form:
    return Form(*map(_field, GROUPS[group]))


def _field(name: str) -> Field:
    schema: dict[str, Any] = Policy.model_json_schema()["properties"][name]
    options: list[dict[str, Any]] = schema.get("anyOf", [schema])
    main = next(one for one in options if one.get("type") != "null")
    kind = "choice" if "enum" in main else _KINDS.get(main.get("type", ""), "text")
    optional = any(one.get("type") == "null" for one in options)
    unit = _UNITS.get(name, 1)
    return Field(
        name,
        "choice" if name == "profile" else kind,
        _choices(name, main.get("enum", ())),
        _bounds(main, unit) if kind == "number" else "",
        _default(name, kind, schema.get("default"), unit),
        required=kind in ("text", "number") and name != "profile" and not optional,
        optional=optional,
        unit=unit,
    )


def _choices(name: str, values: Iterable[str]) -> tuple[tuple[str, str], ...]:
    if name == "profile":
        default = _text("of_installation", value=get_settings().profile)
        return (("", default), *((profile, profile) for profile in get_settings().profiles))
    return tuple((choice, text(f"desk.settings.policy.{name}.{choice}", reader_locale())) for choice in values)


def _bounds(schema: Mapping[str, float], unit: int) -> str:
    bounds = {name: _number(schema[name] / unit) for name in ("minimum", "maximum") if name in schema}
    if "minimum" not in bounds:
        return ""
    return _text("from_to" if "maximum" in bounds else "at_least", **bounds)


def _default(name: str, kind: Kind, default: object, unit: int) -> str:
    if kind == "flag":
        return _text("default", value=_text("yes" if default else "no"))
    if name in _OF_INSTALLATION:
        value = _number(getattr(get_settings(), name))
        return _text("empty_installation", value=value, setting=f"OPORA_{name.upper()}")
    return _text("default", value=_number(default / unit)) if isinstance(default, int | float) else ""


def _number(value: float) -> str:
    return number(value, None, locale=reader_locale())


def _text(key: str, **params: str) -> str:
    return text(f"desk.settings.form.{key}", reader_locale(), **params)
