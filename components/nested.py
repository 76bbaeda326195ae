"""Objects that are parameters of a component in YAML, such as a judge: how they are serialised and restored."""

from collections.abc import Mapping
from inspect import signature
from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.core.serialization import allow_deserialization_module, component_from_dict, import_class_by_name


class Nested:
    """Anything whose constructor keeps its arguments under their own names, which is all that there is to write.

    Haystack does the same for a component by itself, but not for one that is a parameter of another.
    """

    def to_dict(self) -> dict[str, Any]:
        """For Haystack: the class and the constructor's arguments."""
        _self, *names = signature(type(self).__init__).parameters
        return default_to_dict(self, **{name: getattr(self, name) for name in names})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """For Haystack: what `to_dict` described."""
        return default_from_dict(cls, data)


def from_description(description: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - what it is, the description says
    """What `type` and `init_parameters` describe, one of ours or of Haystack's. Raises whatever its constructor does.

    :param name: what the caller knows it by, for Haystack's errors.
    """
    allow_deserialization_module("components")
    return component_from_dict(import_class_by_name(description["type"]), dict(description), name)
