"""NUL in bodies."""

import json

import pytest
from pydantic import BaseModel

from pipelines.bodies import JsonBounds, form_without_nul, parsed


class Text(BaseModel):
    """A body."""

    text: str


@pytest.mark.parametrize(
    ("given", "taken"), [("a\0\0b", "a  b"), ("\\\0", "\\ "), ("\\u0000", "\\u0000"), ("\\\\u0000\0", "\\\\u0000 ")]
)
async def test_json_has_spaces_for_nul(given: str, taken: str) -> None:
    value, body = await parsed(Text, json.dumps({"text": given}).encode())
    assert value == json.loads(body) == {"text": taken}


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("text", "values"),
    [(r'["\\", "a\\\", [,,", "\"[["]', 3), (r'{"a\\": [1, 2, 3]}', 4), (r'["\\\\", [], "\\\"{"]', 4)],
)
def test_values_are_counted_outside_strings(text: str, values: int, size: int) -> None:
    json.loads(text)
    bounds = JsonBounds(0)
    for start in range(0, len(text), size):
        bounds.feed(text[start : start + size].encode())
    assert bounds._values == values


def test_form_has_spaces_for_nul() -> None:
    assert form_without_nul(b"a=x%00y&b=\0&c=%2500") == b"a=x+y&b=+&c=%2500"
