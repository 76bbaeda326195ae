"""Settings forms: each is declared once, as inputs; its values are shown, read and shown again with their errors."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Depends, Request
from starlette.datastructures import FormData

from components.language import texts
from components.language.texts import text, text_or
from pipelines import problems
from tenants.core.errors import Complaint, Conflict, InvalidFields, OporaError
from ui.desk.rendering import reader_locale

Kind: TypeAlias = Literal["text", "area", "lines", "number", "choice", "flag", "date", "secret"]
_LONGEST_SHOWN = 100


async def _typed(request: Request) -> FormData:
    return await request.form(max_files=0, max_fields=100)


Typed: TypeAlias = Annotated[FormData, Depends(_typed)]
"""Values submitted in a form. Lists of settings have a variable number of fields, so the model declares none."""


@dataclass(frozen=True, slots=True)
class Field:
    """A value of a form: how people type it, and how it is shown.

    :param bounds, default: hints.
    :param unit: stored units per typed unit of a number.
    :param optional: nothing typed means None.
    :param parse: reads a typed value, instead of the way of its kind.
    :param write: writes a stored value, instead of the way of its kind.
    :param shown_again: False for secrets.
    :param value: as typed; `fault` is its error, `now` the stored value if it was changed after the form was opened.
    """

    name: str
    kind: Kind = "text"
    choices: tuple[tuple[str, str], ...] = ()
    bounds: str = ""
    default: str = ""
    required: bool = False
    optional: bool = False
    unit: int = 1
    parse: Callable[[str], object] | None = None
    write: Callable[[Any], str] | None = None
    shown_again: bool = True
    value: str = ""
    fault: str = ""
    now: str = ""
    focus: bool = False

    def typed(self, form: FormData) -> str:
        if self.kind == "secret":
            return str(form.get(self.name, ""))
        return (area if self.kind in ("area", "lines") else line)(form, self.name)

    def read(self, form: FormData) -> object:
        typed = self.typed(form)
        if self.parse is not None:
            return self.parse(typed)
        if self.kind == "flag":
            return typed == "true"
        if self.kind == "lines":
            return lines(typed)
        if self.optional and not typed:
            return None
        return number(typed, self.unit) if self.kind == "number" else typed

    def written(self, value: object) -> str:
        if value is None or self.write is not None:
            return self.write(value) if self.write is not None and value is not None else ""
        if isinstance(value, bool):
            return "true" if value else ""
        if isinstance(value, int | float):
            return number(str(value / self.unit if self.unit > 1 else value))
        return "\n".join(value) if isinstance(value, tuple) else str(value)


Fields: TypeAlias = tuple[Field, ...]
Explain: TypeAlias = Callable[[OporaError, Container[str]], Mapping[str, str]]
"""Returns the errors of a refused form by field; its second argument holds the names of the fields."""


def line(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return " ".join(value.split()) if isinstance(value, str) else ""


def area(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else ""


def flag(form: FormData, name: str) -> bool:
    return form.get(name) == "true"


def lines(typed: str) -> tuple[str, ...]:
    return tuple(filter(None, (one.strip() for one in typed.splitlines())))


def number(typed: str, unit: int = 1) -> str:
    """Parse a number in any common notation; return other text unchanged, so that the model rejects it.

    :param unit: stored units per typed unit.
    """
    plain = "".join(typed.split()).replace(",", ".")
    try:
        value = Decimal(plain) * unit
    except InvalidOperation:
        return typed
    return f"{value.normalize():f}" if value.is_finite() else typed


def faults_of(error: OporaError, names: Container[str] = ()) -> Mapping[str, str]:
    """Return the errors by field, in the reader's language; errors of no field use the empty name.

    :param names: field names; a nested field with its own input has a name such as `consent_url`.
    """
    if not isinstance(error, InvalidFields):
        return {str(error.params.get("field", "")): problems.detail(error)}
    faults: dict[str, str] = {}
    for one in error.complaints:
        path = one.path or ("",)
        name = next((name for name in ("_".join(map(str, path[:2])), str(path[0])) if name in names), str(path[0]))
        at = next((part for part in path if isinstance(part, int)), None)
        words = _complaint(one)
        faults.setdefault(name, words if at is None else fault_text("line", number=at + 1, fault=words))
    return faults


class Form:
    def __init__(self, *fields: Field) -> None:
        self._fields = fields

    def read(self, form: FormData) -> dict[str, object]:
        return {one.name: one.read(form) for one in self._fields}

    def shown(
        self,
        values: Mapping[str, object],
        typed: FormData | None = None,
        refused: OporaError | None = None,
        explain: Explain = faults_of,
    ) -> tuple[str, Fields]:
        """Return the fields with their values; as typed, with a message above the form and the errors, if refused.

        :param values: the stored values; after a conflict, shown beside those that differ.
        """
        stored = tuple(replace(one, value=one.written(values.get(one.name))) for one in self._fields)
        if typed is None or refused is None:
            return "", stored
        again = tuple(replace(one, value=one.typed(typed) if one.shown_again else "") for one in self._fields)
        return refusal(refused, again, stored, explain)


def refusal(refused: OporaError, typed: Fields, stored: Fields, explain: Explain = faults_of) -> tuple[str, Fields]:
    """Return the message above a refused form, and its fields with their errors, or beside the stored values."""
    if isinstance(refused, Conflict):
        now = {one.name: one.value for one in stored}
        return problems.detail(refused), tuple(
            replace(one, now=now[one.name] if now[one.name] != one.value else "") for one in typed
        )
    names = {one.name for one in typed}
    faults = explain(refused, names)
    unplaced = " ".join(words for name, words in faults.items() if name not in names)
    return unplaced, with_faults(typed, faults)


def with_faults(fields: Fields, faults: Mapping[str, str]) -> Fields:
    """Return the fields with their errors; the first invalid field gets the focus."""
    first = next((one.name for one in fields if one.name in faults), None)
    return tuple(replace(one, fault=faults.get(one.name, ""), focus=one.name == first) for one in fields)


def _complaint(complaint: Complaint) -> str:
    bounds = {
        name: texts.number(value, None, locale=reader_locale())
        if isinstance(value, int | float)
        else value[:_LONGEST_SHOWN]
        for name, value in complaint.bounds.items()
    }
    is_empty = complaint.kind == "string_too_short" and complaint.bounds.get("min_length") == 1
    return fault_text("missing" if is_empty else complaint.kind, **bounds)


def fault_text(kind: str, **params: str | int) -> str:
    other = text("desk.settings.fault.other", reader_locale())
    return text_or(other, f"desk.settings.fault.{kind}", reader_locale(), **params)
