"""Names of tenants never meet, and configured patterns take bounded time."""

import re
import unicodedata
from collections.abc import Iterable
from random import Random
from time import monotonic

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenants.core.errors import Invalid
from tenants.core.names import check_tenant_id, collection_name, physical_name
from tenants.core.patterns import compiled

SAFE = re.compile(r"[a-z0-9][a-z0-9._-]*(~[a-z2-7]{26})?")
HOSTILE = (
    st.text(min_size=1, max_size=80)
    | st.text(alphabet="aAàÀаАeEеЕİıſßẞKÅ", min_size=1, max_size=12)
    | st.text(alphabet='ab.-_~/\\: *?"<>|%', min_size=1, max_size=70)
    | st.from_regex(r"[a-z0-9][a-z0-9._-]{0,70}", fullmatch=True)
    | st.from_regex(r"[a-z0-9-]{1,40}~[a-z2-7]{26}", fullmatch=True)
    | st.sampled_from(["con", "nul.txt", "com1", "..", ".", "a.", "../a", "a/b", "a\\b", "a~g000001", "ACME", "acme"])
)


def accepted(tenant_id: str) -> bool:
    try:
        check_tenant_id(tenant_id)
    except Invalid:
        return False
    return True


ALPHABETS = ("аАеЕоОсСрРxXхХ", "aAbB.-_~/\\: ", "ıİiIßẞſsSKk\u0301\u200d", "абвгдеёжз", "\U0001f600日本語٣３")


def meet(tenant_ids: Iterable[str]) -> list[str]:
    """Ids that share a name with another, once a careless file system has composed, folded and trimmed it."""
    seen: dict[str, str] = {}
    clashes = []
    for tenant_id in tenant_ids:
        name = unicodedata.normalize("NFKC", collection_name(tenant_id)).casefold().rstrip(". ")
        if seen.setdefault(name, tenant_id) != tenant_id:
            clashes.append(tenant_id)
    return clashes


@settings(max_examples=4)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3]))
def test_ten_thousand_hostile_ids_do_not_collide(seed: int, spread: int) -> None:
    source = Random(seed)
    ids: set[str] = set()
    while len(ids) < 10_000:
        alphabet = source.choice(ALPHABETS)
        ids.add("".join(source.choices(alphabet, k=source.randint(5, 10 * spread))))
    assert not meet(ids)


@given(st.lists(HOSTILE.filter(accepted), max_size=20, unique=True))
@example([f"тенант{number}" for number in range(100)])
@example(["Acme", "acme", "ACME", "ａｃｍｅ", "acme ", " acme", "acmé", "acme\u0301", "acme.", "a~b", "a/b", "a-b"])
def test_crafted_ids_do_not_collide(tenant_ids: list[str]) -> None:
    assert not meet(tenant_ids)


@given(HOSTILE.filter(accepted))
def test_every_name_is_a_safe_file_and_collection_name(tenant_id: str) -> None:
    name = collection_name(tenant_id)
    assert SAFE.fullmatch(name)
    assert len(physical_name(name, 999_999)) <= 190
    assert collection_name(tenant_id) == name


@given(HOSTILE.filter(accepted), HOSTILE.filter(accepted), st.integers(1, 9))
def test_no_name_is_a_generation_of_another(tenant_id: str, other: str, generation: int) -> None:
    assert collection_name(tenant_id) != physical_name(collection_name(other), generation)


@pytest.mark.parametrize("tenant_id", ["acme", "a", "shop-42", "a.b_c", "0" * 63])
def test_a_clean_id_is_its_own_name(tenant_id: str) -> None:
    assert collection_name(tenant_id) == tenant_id


@pytest.mark.parametrize("tenant_id", ["", "a\0b", "a\nb", "\u2028", "\ud800", "x" * 256, "я" * 128, "\x7f", "\x9f"])
def test_an_impossible_id_is_refused(tenant_id: str) -> None:
    with pytest.raises(Invalid) as refused:
        collection_name(tenant_id)
    assert refused.value.code == "tenant_id_invalid"


def test_a_device_name_is_no_folder() -> None:
    assert collection_name("con") != "con"
    assert collection_name("aux.txt").startswith("aux-txt~")


BACKTRACKING = [r"\w{1,40}" * 5 + "!", r"(a+)+$", r"(\w|\d)*№", ".*" * 40 + "!", r"(?:.{1,50}){9}!", r"([а-я]+\s?)+$"]


@pytest.mark.parametrize("pattern", BACKTRACKING)
def test_no_pattern_backtracks(pattern: str) -> None:
    started = monotonic()
    compiled(pattern).search("слово" * 800 + "a" * 2_000)
    assert monotonic() - started < 20


def test_a_word_may_be_russian() -> None:
    for pattern, text, match in (
        (r"\b\d{6}\b", "Где заказ 123456?", "123456"),
        (r"№ ?\d+", "заказ № 42", "№ 42"),
        (r"заказ \w+", "Где ЗАКАЗ Ёлка7?", "ЗАКАЗ Ёлка7"),
        (r"[\w-]+@[\w.]+", "пишите на вася-1@shop.example", "вася-1@shop.example"),
        (r"\W\d", "а1 б", None),
        (r"[]\w]+", "]я", "]я"),
        (r"\\w", r"a\w", r"\w"),
        (r"(?:AB|ВГ)-\d{3}", "код вг-123", "вг-123"),
    ):
        results = compiled(pattern).search(text)
        assert (results and results.group()) == match


@pytest.mark.parametrize(
    "pattern", ["[", r"(?=a)b", r"(?<!\w)b", r"(a)\1", r"\w{1,1000}", r"(\w{50}){50}", r"\p{Nothing}"]
)
def test_what_cannot_be_matched_in_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        compiled(pattern)
