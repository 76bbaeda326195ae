"""Contradictions of kept passages: found where there is one, not where two things are meant, the newest trusted."""

from dataclasses import replace

import pytest
from components.judge.context import EvidenceContext
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.judge import context
from components.turn import DocumentStatus, Passage, Trust, Turn
from tenants import relations
from tenants.relations import Relations
from tests.turns import passage, turn

WITHIN = "В течение какого срока можно вернуть товар?"
RETURNS = passage("Товар можно вернуть в течение 14 дней после покупки. Чек не нужен.", "a", title="Возврат товара")
FAQ = passage("Вернуть товар можно в течение 30 дней.", "b", title="Частые вопросы")


@pytest.fixture(autouse=True)
def _no_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "current", lambda: relations.NONE)


def in_context(question: str, *passages: Passage, relevance: float = 0.9) -> Turn:
    return EvidenceContext().run(turn(question, *passages, relevance=relevance))["turn"]


def kinds(question: str, one: Passage | str, two: Passage | str) -> list[str]:
    pair = [side if isinstance(side, Passage) else passage(side, at) for side, at in ((one, "a"), (two, "b"))]
    return [conflict.kind for conflict in in_context(question, *pair).evidence.conflicts]


@pytest.mark.parametrize(
    ("question", "one", "two", "kind"),
    [
        (WITHIN, RETURNS, FAQ, "number"),
        ("Сколько стоит рейс в Псков?", "Рейс в Псков стоит 300 рублей.", "Цена рейса в Псков — 500 ₽.", "number"),
        ("Какие есть диски?", "Диски есть на 10 ГБ и на 50 ГБ.", "Диски есть на 10 ГБ и на 90 ГБ.", "number"),
        ("How long is the warranty?", "The warranty lasts 24 months.", "The warranty lasts 12 months.", "number"),
        ("До какого числа акция?", "Акция действует до 31 января 2025 года.", "Акция действует до 1 марта.", "date"),
        ("Когда открывается склад?", "Склад открывается в 9:00.", "Склад открывается в 10:30.", "date"),
        ("Какой телефон склада?", "Телефон склада: 8 800 100-20-30.", "Телефон склада: 8 800 555-35-35.", "code"),
        ("Какой код у скидки на чай?", "Код скидки на чай: CHAY10.", "Код скидки на чай: CHAY20.", "code"),
        ("Можно ли вернуть товар?", "Товар можно вернуть без чека.", "Товар нельзя вернуть без чека.", "negation"),
        ("Is the deposit refunded?", "The deposit is refunded.", "The deposit is not refunded.", "negation"),
    ],
)  # fmt: skip
def test_a_contradiction_is_found(question: str, one: Passage | str, two: Passage | str, kind: str) -> None:
    assert kinds(question, one, two) == [kind]


@pytest.mark.parametrize(
    ("question", "one", "two"),
    [
        ("Сколько стоит доставка?", "Доставка по Москве стоит 300 рублей.", "Доставка по Казани стоит 500 рублей."),
        ("Сколько хранить товар?", "Товар хранится 5 дней.", "Товар хранится не дольше 2 недель."),
        ("Какая гарантия?", "Гарантия на холодильник — 2 года.", "Гарантия на телефон — 1 год."),
        ("Сколько места на тарифе?", "Бесплатный тариф включает 5 ГБ.", "Платный тариф включает 50 ГБ."),
        ("Сколько ждать ответа?", "Ответ приходит за 1–3 дня.", "Ответ приходит за 2 дня."),
        ("Что делать при ошибке?", "Ошибка E20: очистите фильтр 2 раза.", "Ошибка E25: очистите фильтр 3 раза."),
        ("Можно ли вернуть товар?", "Если товар не подошёл, верните его.", "Если товар подошёл, верните его."),
        ("Где задать лимит копий?", "2. Задайте лимит копий в плане.", "7. Задайте лимит копий в плане."),
        ("Какие бывают диски?", "Диски бывают на 10 ГБ и 50 ГБ.", "Диски бывают на 20 ГБ и 90 ГБ."),
        ("Какой максимальный размер диска?",
         passage("Максимальный размер диска — 1000 ГБ.", "a", title="Ограничения PostgreSQL"),
         passage("Максимальный размер диска — 2000 ГБ.", "b", title="Ограничения MySQL")),
        ("Какой срок возврата?",
         passage("Срок возврата — 14 дней.", "a", title="Возврат посуды"),
         passage("Срок возврата — 7 дней.", "b", title="Возврат обуви")),
        ("Сколько стоит тариф?", "| Тариф | 100 рублей |", "| Тариф | 200 рублей |"),
        (WITHIN, RETURNS, replace(FAQ, lang="en")),
        (WITHIN, RETURNS, replace(FAQ, doc_id=RETURNS.doc_id)),
        (WITHIN, RETURNS, passage("Товар можно вернуть в течение 14 дней.", "b")),
    ],
)  # fmt: skip
def test_two_things_do_not_contradict_each_other(question: str, one: Passage | str, two: Passage | str) -> None:
    assert kinds(question, one, two) == []


def test_weak_evidence_contradicts_nothing() -> None:
    assert in_context(WITHIN, RETURNS, FAQ, relevance=0.4).evidence.conflicts == ()


def test_a_conflict_names_its_sentences() -> None:
    (conflict,) = in_context(WITHIN, RETURNS, FAQ).evidence.conflicts
    assert RETURNS.text[slice(*conflict.trusted.span)] == "Товар можно вернуть в течение 14 дней после покупки."
    assert FAQ.text[slice(*conflict.other.span)] == FAQ.text


statuses: st.SearchStrategy[DocumentStatus] = st.sampled_from(["active", "superseded", "deprecated", "archived"])
trusts: st.SearchStrategy[Trust] = st.sampled_from(["accepted", "auto", "raw"])
standing = st.tuples(statuses, trusts, st.sampled_from(["2023-01-01", "2024-01-01", "2025-01-01"]))


@given(standing, standing, st.floats(0.1, 0.9), st.floats(0.1, 0.9))
def test_conflicts_prefer_in_force_then_trusted_then_newest(
    one: tuple[DocumentStatus, Trust, str], two: tuple[DocumentStatus, Trust, str], place: float, other: float
) -> None:
    passages = [
        replace(base, status=status, trust=trust, updated_at=updated, score=score)
        for base, (status, trust, updated), score in ((RETURNS, one, place), (FAQ, two, other))
    ]
    after = in_context(WITHIN, *sorted(passages, key=lambda passage: -passage.score)).evidence
    (conflict,) = after.conflicts
    by_id = {passage.chunk_id: passage for passage in passages}
    trusted, beaten = by_id[conflict.trusted.chunk_id], by_id[conflict.other.chunk_id]
    order = ["accepted", "auto", "raw"]
    rank = [(side.status == "active", -order.index(side.trust), side.updated_at) for side in (trusted, beaten)]
    assert rank[0] >= rank[1]
    assert after.relevant_ids == (trusted.chunk_id, beaten.chunk_id)
    assert after.rank_scores[trusted.chunk_id] > after.rank_scores[beaten.chunk_id]
    assert after.relevant_passages()[0] is trusted


def test_conflicts_are_recomputed_in_every_pass() -> None:
    before = in_context(WITHIN, RETURNS, FAQ)
    alone = replace(before, evidence=replace(before.evidence, relevant_ids=("a",), rank_scores={"a": 0.9}))
    assert EvidenceContext().run(alone)["turn"].evidence.conflicts == ()


def test_a_failed_search_loses_only_related_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(relations, "current", Relations)
    monkeypatch.setattr(context, "related", fail)
    after = in_context(WITHIN, RETURNS, FAQ)
    assert after.degraded == ("related",)
    assert after.evidence.conflicts


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("context", EvidenceContext(5, 0.5, 2, 4, 0.6))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    assert again.to_dict()["components"]["context"]["init_parameters"] == {
        "max_edges": 5,
        "min_coverage": 0.5,
        "max_rejected": 2,
        "conflict_depth": 4,
        "conflict_relevance": 0.6,
    }
