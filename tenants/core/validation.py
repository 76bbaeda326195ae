"""Validation of values that people and programs send."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from tenants.core.errors import Complaint, InvalidFields

Model = TypeVar("Model", bound=BaseModel)


class FrozenModel(BaseModel):
    """Values that do not change. Other fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def validated(kind: type[Model], given: Mapping[str, object], code: str) -> Model:
    """Return the model of these values. Raises `InvalidFields` with this code."""
    try:
        return kind.model_validate(given)
    except ValidationError as refused:
        complaints = tuple(map(_complaint, refused.errors(include_url=False, include_input=False)))
    # Outside the handler: pydantic's error quotes the values, and some are secrets.
    raise InvalidFields(code, *complaints)


def _complaint(error: ErrorDetails) -> Complaint:
    bounds = error.get("ctx", {})
    if error["type"] == "value_error":
        return Complaint(error["loc"], str(bounds.get("error", "other")))
    plain = {name: one if isinstance(one, int | float) else str(one) for name, one in bounds.items()}
    return Complaint(error["loc"], error["type"], plain)
