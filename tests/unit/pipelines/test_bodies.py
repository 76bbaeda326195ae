"""NUL in bodies."""

import json

import pytest

from pipelines.bodies import form_without_nul, json_without_nul


@pytest.mark.parametrize(
    ("given", "taken"), [("a\0\0b", "a  b"), ("\\\0", "\\ "), ("\\u0000", "\\u0000"), ("\\\\u0000\0", "\\\\u0000 ")]
)
def test_json_has_spaces_for_nul(given: str, taken: str) -> None:
    assert json.loads(json_without_nul(json.dumps({"text": given}).encode())) == {"text": taken}


def test_form_has_spaces_for_nul() -> None:
    assert form_without_nul(b"a=x%00y&b=\0&c=%2500") == b"a=x+y&b=+&c=%2500"
