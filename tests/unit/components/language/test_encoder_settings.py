"""The encoder's settings as data: one JSON form, nothing impossible, and they decide what a text encodes to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.language.encoder import encode_passage, encode_query
from components.language.encoder_settings import STANDARD, VECTORS, EncoderSettings, VectorSettings, settings_from

fields = st.lists(st.sampled_from(["title", "heading", "text"]), min_size=1, unique=True)
vectors = st.builds(VectorSettings, fields=fields, average_length=st.floats(0.5, 5_000))
settings = st.builds(
    EncoderSettings,
    gram_sizes=st.lists(st.integers(1, 10), min_size=1, max_size=3),
    k1=st.floats(0, 10),
    b=st.floats(0, 1),
    vectors=st.fixed_dictionaries(dict.fromkeys(reversed(VECTORS), vectors)),
)


@given(settings, settings)
def test_stored_settings_are_read_back_and_distinguished(one: EncoderSettings, other: EncoderSettings) -> None:
    assert settings_from(one.json_form) == one
    assert (one.digest == other.digest) == (one == other)


def test_the_stored_form_is_stable() -> None:
    """Another digest makes every index due for a rebuild, so it must come from another encoding alone."""
    assert STANDARD.digest == "d52801fb1ce9"


def test_missing_settings_are_the_standard_and_parsing_is_cached() -> None:
    assert settings_from("") is STANDARD
    assert settings_from(STANDARD.json_form) is settings_from(STANDARD.json_form)


@pytest.mark.parametrize(
    "given",
    [
        {"gram_sizes": []},
        {"gram_sizes": [0]},
        {"k1": -1},
        {"b": 2},
        {"vectors": {}},
        {"vectors": {"grams": {"fields": ["text"], "average_length": 0}}},
        {"dense": "x"},
    ],
)
def test_invalid_settings_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EncoderSettings.model_validate(given)


def test_the_settings_determine_the_vectors() -> None:
    passage = ("Возврат", "Сроки", "Четырнадцать дней")
    two = STANDARD.model_copy(update={"gram_sizes": (2,)})
    assert not encode_passage(*passage, two)["grams"].keys() & encode_passage(*passage, STANDARD)["grams"].keys()
    assert encode_query("возврат", two)["grams"].keys() <= encode_passage(*passage, two)["grams"].keys()
    flat = STANDARD.model_copy(update={"k1": 0.0})
    assert set(encode_passage("", "", "слив слив насос", flat)["text-sparse"].values()) == {1.0}
    only_text = VectorSettings(fields=("text",), average_length=140)
    narrow = EncoderSettings(vectors={**STANDARD.vectors, "text-sparse": only_text})
    result = encode_passage(*passage, narrow)["text-sparse"]
    assert result.keys() == encode_query("четырнадцать дней", narrow)["text-sparse"].keys()
