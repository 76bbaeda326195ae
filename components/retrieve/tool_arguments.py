"""Arguments for a tool: typed by its schema and taken from the words of the question only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from components.language.words import stems
from components.turn import Frozen
from tenants.core.json import Json
from tenants.core.patterns import compiled
from tenants.knowledge.tools import Property, Tool

_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:[.,]\d+)?(?![\w.,]*\d)")


@dataclass(frozen=True, slots=True)
class Lookup(Frozen):
    """A tool that fits a question (`fit` 0..1: the share of it that the description covers), and its arguments."""

    tool: Tool
    arguments: Mapping[str, Json]
    fit: float


def is_part(tool: Tool, name: str) -> bool:
    """Return whether an argument is a part of the question rather than the whole of it."""
    schema = tool.parameters.properties[name]
    return schema.type != "string" or schema.pattern is not None or schema.enum is not None


def extract_arguments(tool: Tool, question: str) -> Mapping[str, Json] | None:
    """Return the arguments found in the question; None if a required one is missing."""
    arguments = {name: _argument(schema, question) for name, schema in tool.parameters.properties.items()}
    if any(arguments[name] is None for name in tool.parameters.required):
        return None
    return {name: value for name, value in arguments.items() if value is not None}


def _argument(schema: Property, question: str) -> str | int | float | None:
    if schema.enum is not None:
        words = set(stems(question))
        return next((option for option in schema.enum if (named := stems(option)) and words.issuperset(named)), None)
    if schema.pattern is not None:
        match = compiled(schema.pattern).search(question)
        return coerced(schema, match.group()) if match else None
    if schema.type == "string":
        return question
    numbers = _NUMBER.findall(question)
    return coerced(schema, numbers[0]) if len(numbers) == 1 else None


def coerced(schema: Property, text: str) -> str | int | float | None:
    """Return the text converted to the type of the schema; None if it is not of that type."""
    if schema.type == "string":
        return text
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return None
    if schema.type == "number":
        return number
    return int(number) if number.is_integer() else None
