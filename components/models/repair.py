"""Repairs JSON as small models write it, where nothing has to be guessed.

They put words and code fences around the object, percent signs behind numbers, null or a single text in place of a
list, capitals into enum values, and unrequested fields. A missing value stays missing.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Schema: TypeAlias = Mapping[str, object]

_PERCENTAGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%?\s*")
_DECODER = json.JSONDecoder()


def parse_object(text: str) -> Json:
    """The first JSON object in a text, whatever surrounds it; None when there is none."""
    return next(_objects(text), None)


def repaired(value: Json, schema: Schema, definitions: Schema | None = None) -> Json:
    """The value with unambiguous mistakes corrected; anything ambiguous is unchanged.

    :param schema: the JSON schema that the value is to keep to.
    :param definitions: the schemas that it refers to; its own when None.
    """
    known = _mapping(schema.get("$defs")) if definitions is None else definitions
    if isinstance(reference := schema.get("$ref"), str):
        return repaired(value, _mapping(known.get(reference.rpartition("/")[2])), known)
    kind, choices = schema.get("type"), schema.get("enum")
    if isinstance(choices, list) and isinstance(value, str):
        word = "_".join(value.casefold().split())
        return word if word in choices else value
    if kind == "object" and isinstance(value, dict):
        properties = _mapping(schema.get("properties"))
        known_parts = {name: part for name, part in value.items() if name in properties}
        return {name: repaired(part, _mapping(properties[name]), known) for name, part in known_parts.items()}
    if kind == "array":
        parts = value if isinstance(value, list) else [value] if value else []
        return [repaired(part, _mapping(schema.get("items")), known) for part in parts]
    return _number(value) if kind == "integer" else value


def _number(value: Json) -> Json:
    """A whole number; a fraction of 1 may mean a percentage or not, and stays what it is."""
    if isinstance(value, str) and (found := _PERCENTAGE.fullmatch(value)):
        value = float(found[1])
    return round(value) if isinstance(value, float) and (value >= 1 or value == 0) else value


def _objects(text: str) -> Iterator[dict[str, Json]]:
    start = text.find("{")
    while start >= 0:
        try:
            read, start = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            start += 1
        else:
            if isinstance(read, dict):
                yield read
        start = text.find("{", start)


def _mapping(value: object) -> Schema:
    return value if isinstance(value, Mapping) else {}
