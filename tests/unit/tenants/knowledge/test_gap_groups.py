"""Gaps grouped by meaning: always the same way, each gap once."""

from dataclasses import replace
from functools import partial
from sys import getrefcount

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.ask.articles.gap_meanings import subjects
from tenants.core import fairness
from tenants.knowledge import gap_groups
from tenants.knowledge.gaps import Gap
from tests.audits import AT

grouped = partial(gap_groups.grouped, codes_of=subjects)


def gap(gap_id: str, *stems: str, count: int = 1, doc_ids: tuple[str, ...] = ()) -> Gap:
    return Gap(gap_id, "no_relevant_context", gap_id, tuple(sorted(stems)), doc_ids, count, 0, "open", AT, AT, None)


def test_what_shares_half_of_its_stems_is_one_group() -> None:
    result = grouped(
        [
            gap("Есть ли рассрочка?", "рассрочк", count=3, doc_ids=("payment", "prices")),
            gap("Рассрочка без банка", "рассрочк", "банк", count=2, doc_ids=("payment", "banks")),
            gap("Доставка в Казань", "доставк", "казан"),
            gap("Рассрочка через банк под процент", "рассрочк", "банк", "процент"),
            gap("???"),
        ]
    )
    assert [[gap.gap_id for gap in group.gaps] for group in result] == [
        ["Есть ли рассрочка?", "Рассрочка без банка"],
        ["Доставка в Казань"],
        ["Рассрочка через банк под процент"],
        ["???"],
    ]
    assert (result[0].count, result[0].doc_ids) == (5, ("payment", "prices", "banks"))


def test_questions_about_different_codes_are_never_one_group() -> None:
    alike = ["Машина показывает E20", "Машина показывает E401", "Машина показывает Е20?", "Машина показывает"]
    vector = np.array([1.0, 0.0], np.float32).tobytes()
    gaps = [replace(gap(question, "машин", "показыва"), vector=vector) for question in alike]
    for threshold in (None, 0.9):
        found = [[one.question for one in group.gaps] for group in grouped(gaps, threshold)]
        assert found == [[alike[0], alike[2], alike[3]], [alike[1]]]


def test_questions_about_different_orders_are_one_group() -> None:
    numbers = ("ORD-4471820", "ORD-4471955", "W12345", "RR123456789RU")
    (group,) = grouped([gap(f"Где мой заказ {number}?", "заказ") for number in numbers])
    assert group.count == 4


def test_grouping_keeps_no_question_in_memory() -> None:
    """An erasure could not reach it."""
    vector = np.array([1.0, 0.0], np.float32).tobytes()
    before = getrefcount(vector)
    grouped([replace(gap("Где мой ключ?", "ключ"), vector=vector)], 0.9)
    assert getrefcount(vector) == before


def test_readers_of_the_same_gaps_share_their_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [gap("Где мой ключ?", "ключ", "шкаф"), gap("Ключ от шкафа", "ключ", "шкаф")]
    first = grouped(listed)
    monkeypatch.setattr(gap_groups, "_Grouping", None)
    assert grouped(listed) == first


stems = st.sets(st.sampled_from("абвгд"), max_size=4)


@given(st.lists(st.tuples(stems, st.integers(1, 5)), max_size=12))
def test_groups_hold_every_gap_once_and_stay_the_same(drawn: list[tuple[set[str], int]]) -> None:
    gaps = [gap(str(number), *sorted(about), count=count) for number, (about, count) in enumerate(drawn)]
    result = grouped(gaps)
    assert sorted(gap.gap_id for group in result for gap in group.gaps) == sorted(gap.gap_id for gap in gaps)
    assert grouped([replace(gap) for gap in gaps]) == result
    assert [group.count for group in result] == sorted((group.count for group in result), reverse=True)
    for group in result:
        for one in group.gaps[1:]:
            common, either = set(one.stems) & set(group.gaps[0].stems), set(one.stems) | set(group.gaps[0].stems)
            assert len(common) / len(either) >= 0.5


def test_grouping_gives_way_to_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[None] = []
    monkeypatch.setattr(fairness, "yield_to_questions", lambda: looks.append(None))
    gaps = [gap(str(number), "возврат", str(number)) for number in range(20)]
    first = grouped(gaps)
    assert len(looks) == 20
    changed = [replace(one, count=2) for one in gaps]
    assert [[one.gap_id for one in group.gaps] for group in grouped(changed)] == [
        [one.gap_id for one in group.gaps] for group in first
    ]
    assert len(looks) == 20, "readers of the same gaps share the groups"
