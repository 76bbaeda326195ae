"""Metadata that is no JSON is refused with its document, and spoils no other one."""

import pytest

from components.ingest.metadata import checked_metadata, storable
from tenants.core.errors import Invalid
from tenants.core.json import Json


@pytest.mark.parametrize("value", [float("nan"), [1.0, float("inf")], {"a": {"b": float("-inf")}}])
def test_a_number_that_is_none_is_refused(value: Json) -> None:
    with pytest.raises(Invalid, match="metadata_invalid") as refused:
        checked_metadata({"weight": value})
    assert refused.value.params["field"] == "weight"


def test_other_numbers_stay() -> None:
    assert checked_metadata({"weight": 1.5, "sizes": [1, 2.5]}) == {"weight": 1.5, "sizes": [1, 2.5]}


def test_chunks_carry_a_bounded_part_of_the_metadata() -> None:
    """62 keys of 990 characters were repeated with each of 300 chunks: 20 MB of disk from a body of 1.4 MB."""
    meta: dict[str, Json] = {"brand": "Волна", **{f"key_{at}": "x" * 990 for at in range(62)}}
    stored = storable(meta)
    assert stored["brand"] == "Волна"
    assert sum(len(str(value)) for value in stored.values()) < 4_000
