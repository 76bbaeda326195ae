"""Objects that are parameters of a component in YAML, such as a judge: how they are serialised and restored."""

from collections.abc import Mapping
from inspect import signature
from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.core.serialization import allow_deserialization_module, component_from_dict, import_class_by_name


class Nested:
    """Base of nested parameters: the constructor stores its arguments under their own names.

    Haystack serialises a component in this way, but not a parameter of a component.
    """

    def to_dict(self) -> dict[str, Any]:
        """Serialise the class and the constructor's arguments for Haystack."""
        _self, *names = signature(type(self).__init__).parameters
        return default_to_dict(self, **{name: getattr(self, name) for name in names})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Restore an object from `to_dict`, for Haystack."""
        return default_from_dict(cls, data)


def from_description(description: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - what it is, the description says
    """Create the object described by `type` and `init_parameters`. Errors of its constructor propagate.

    :param name: name for Haystack's error messages.
    """
    allow_deserialization_module("components")
    return component_from_dict(import_class_by_name(description["type"]), dict(description), name)
