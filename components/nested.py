"""What may stand as a parameter of a component in YAML, such as a judge: how it is written there and read again."""

from inspect import signature
from typing import Any, Self

from haystack import default_from_dict, default_to_dict


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
