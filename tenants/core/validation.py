"""Validation of values that people and programs send."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from tenants.core.errors import Invalid

Model = TypeVar("Model", bound=BaseModel)


def validated(kind: type[Model], given: Mapping[str, object], code: str) -> Model:
    """Return the model of these values. Raises `Invalid` with this code and the field."""
    try:
        return kind.model_validate(given)
    except ValidationError as refused:
        raise Invalid(code, field=".".join(map(str, refused.errors(include_input=False)[0]["loc"]))) from refused
