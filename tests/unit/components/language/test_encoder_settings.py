"""The encoder's settings as data: one JSON form, validated, and decisive for the encoding."""

import json
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.language.encoder import encode_query
from components.language.encoder_settings import PARTS, STANDARD, EncoderSettings, PartSettings, settings_from

fields = st.lists(st.sampled_from(["title", "heading", "text"]), min_size=1, unique=True)
parts = st.builds(PartSettings, fields=fields, average_length=st.floats(0.5, 5_000), share=st.floats(0.01, 100))
settings = st.builds(
    EncoderSettings,
    gram_sizes=st.lists(st.integers(1, 10), min_size=1, max_size=3),
    k1=st.floats(0, 10),
    b=st.floats(0, 1),
    parts=st.fixed_dictionaries(dict.fromkeys(reversed(PARTS), parts)),
)


@given(settings, settings)
def test_stored_settings_are_read_back_and_distinguished(one: EncoderSettings, other: EncoderSettings) -> None:
    assert settings_from(one.json_form) == one
    assert (one.digest == other.digest) == (one == other)


def test_the_stored_form_is_stable() -> None:
    """Another digest makes every index due for a rebuild, so it must come from another encoding alone."""
    assert STANDARD.digest == "d38d9afacee7"


@pytest.mark.parametrize(
    "given",
    [
        {"gram_sizes": []},
        {"gram_sizes": [0]},
        {"k1": -1},
        {"b": 2},
        {"parts": {}},
        {"parts": {**STANDARD.model_dump()["parts"], "grams": {"fields": ["text"], "average_length": 0}}},
        {"parts": {**STANDARD.model_dump()["parts"], "grams": {"fields": ["text"], "average_length": 9, "share": 0}}},
        {"vectors": {}},
        {"dense": "x"},
    ],
)
def test_invalid_settings_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EncoderSettings.model_validate(given)


def test_settings_of_three_vectors_are_read_and_differ_from_every_new_ones() -> None:
    """As an index of version 2 has them: it is searched by its stems until it is rebuilt."""
    dense = {"space": "e5", "dimensions": 384, "embedder": {"type": "x"}}
    vectors = {"text-sparse": {"fields": ["title", "heading", "text"], "average_length": 140}}
    former = settings_from(json.dumps({"gram_sizes": [3], "vectors": vectors, "dense": dense, "version": "2"}))
    assert (former.version, former.gram_sizes, former.dimensions) == ("2", (3,), 384)
    assert former != EncoderSettings(gram_sizes=(3,), dense=former.dense)
    stem = crc32("слив".encode())
    assert encode_query("слив", former)[stem] == 1.0
