"""A standalone query: follow-ups completed, typos repaired, synonyms applied, codes unchanged."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from haystack import Document
from hypothesis import HealthCheck, given, settings

from components.faults import collect_degraded
from components.language.identifiers import codes, shapes
from components.language.normalise import fold
from components.language.words import stems, words
from components.retrieve.probe import Probe
from components.turn import Exchange, Query
from components.understand import transform
from components.understand.condenser import LlmCondenser
from components.understand.synonyms import common_synonyms, with_known_synonyms
from components.understand.transform import QueryTransformer
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.core.errors import TryAgain
from tenants.index.protocol import EmptyCollection
from tenants.knowledge import lexicon
from tenants.knowledge.lexicon import Lexicon
from tests.generated import texts
from tests.models import DOWN, ScriptedModels

_TEXTS = [
    "Код E20 означает, что вода не сливается: очистите сливной фильтр стиральной машины.",
    "Подключение стиральной машины к водопроводу. Подключайте машину к крану.",
    "Гарантия на стиральные машины действует два года, возврат товара возможен.",
    "Вернуть товар можно в магазине, доставка и оплата бесплатны.",
]


_EACH = 20
"""Chunks that hold each text: a word seen once in four chunks would be too rare to correct anything to."""


def _counted(terms: Iterable[str]) -> MappingProxyType[str, int]:
    return MappingProxyType({term: times * _EACH for term, times in Counter(terms).items()})


KNOWN = Lexicon(
    len(_TEXTS) * _EACH,
    _counted(stem for text in _TEXTS for stem in set(stems(text))),
    _counted(word for text in _TEXTS for word in {fold(word.text) for word in words(text)}),
    1,
    _counted(shape for text in _TEXTS for shape in shapes(text)),
)


POLICY = Policy(synonyms=(("стиралка", "стиральная машина"), ("агрегат", "товар")))


@pytest.fixture(autouse=True)
def known_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "current", lambda: KNOWN)
    monkeypatch.setattr(policy, "current", lambda: POLICY)
    monkeypatch.setattr(transform, "open_collection", lambda: Stored(KNOWN.chunks))


class Stored(EmptyCollection):
    """An index with this number of chunks; None: an unreachable one."""

    def __init__(self, chunks: int | None) -> None:
        self._chunks = chunks

    def count(self) -> int:
        if self._chunks is None:
            raise TryAgain("index_unavailable")
        return self._chunks


def transformed(question: str, transformer: QueryTransformer | None = None, **inputs: Any) -> dict[str, Any]:  # noqa: ANN401
    return (transformer or QueryTransformer()).run(question=question, **inputs)


def understood(question: str, transformer: QueryTransformer | None = None) -> Query:
    found: Query = transformed(question, transformer)["understood"]
    return found


def test_a_plain_question_is_searched_unchanged() -> None:
    query = understood("  Гарантия на стиральные машины ")
    assert (query.search, query.variants, query.recovery) == ("Гарантия на стиральные машины", (), "none")


@pytest.mark.parametrize(
    ("typed", "kind", "meant"),
    [
        ("ufhfynbz cnbhfkmyjq vfibys", "layout", "гарантия стиральной машины"),
        ("garantiya stiralnoy mashiny", "transliteration", "гарантия стиральной машины"),
        ("гарнтия стиральной машины", "typo", "гарантия стиральной машины"),
    ],
)
def test_a_mistyped_question_is_repaired(typed: str, kind: str, meant: str) -> None:
    query = understood(typed)
    assert query.recovery == kind
    assert stems(query.search) == stems(meant)
    assert typed in query.variants
    assert len(query.variants) <= 3


def test_greetings_and_thanks_are_not_searched() -> None:
    query = understood("Здравствуйте! Подскажите, пожалуйста, как вернуть товар? Спасибо!")
    assert query.search == "как вернуть товар?"


@pytest.mark.parametrize("typed", ["jib,rf t20", "Ошбика Е20", "oshibka E20", "ошибка e20"])
def test_codes_are_kept_to_the_letter(typed: str) -> None:
    assert understood(typed).codes == ("E20",)


def test_an_unknown_code_is_searched_if_a_model_reads_what_is_found() -> None:
    outputs = QueryTransformer(codes_may_differ=True).run(question="ошибка E21")
    assert "absent" not in outputs
    assert "E21" in outputs["query"]


def test_an_unknown_code_is_absent_and_not_corrected() -> None:
    outputs = transformed("ошибка E21, вода не сливается")
    assert outputs["absent"] == ["E21"]
    assert "query" not in outputs


@pytest.mark.parametrize("article", ["Код КС-3: нет связи.", "Код KC-3: нет связи.", "Код КС3: нет связи."])
def test_a_known_code_is_searched_whatever_its_spelling(monkeypatch: pytest.MonkeyPatch, article: str) -> None:
    terms = _counted(stem for text in (*_TEXTS, article) for stem in set(stems(text)))
    monkeypatch.setattr(lexicon, "current", lambda: replace(KNOWN, stems=terms))
    assert transformed("Что значит код КС-3?")["query"] == "Что значит код КС-3?"


@pytest.mark.parametrize("chunks", [0, KNOWN.chunks - 1, KNOWN.chunks + 1])
def test_an_unknown_code_is_searched_while_counts_are_incomplete(monkeypatch: pytest.MonkeyPatch, chunks: int) -> None:
    monkeypatch.setattr(transform, "open_collection", lambda: Stored(chunks))
    assert "query" in transformed("ошибка E21, вода не сливается")


def test_no_code_is_absent_from_an_index_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform, "open_collection", lambda: Stored(None))
    with pytest.raises(TryAgain, match="index_unavailable"):
        transformed("ошибка E21, вода не сливается")
    assert understood("ошибка E20, вода не сливается").codes == ("E20",)


def test_one_known_code_among_several_is_searched() -> None:
    assert understood("чем отличаются E20 и E21").codes == ("E20", "E21")


def test_a_code_in_a_long_description_is_one_detail_of_many() -> None:
    described = " ".join(f"слово{chr(0x430 + n)}" for n in range(20))
    assert "query" in transformed(f"ошибка E21 {described}")


@pytest.mark.parametrize(
    ("held", "asked"), [("Модель E-20", "E20"), ("Режим A-12", "A12"), ("CVE-2016-2961", "CVE-2016-2961")]
)
def test_a_code_is_recognised_in_the_spelling_of_the_passages(
    monkeypatch: pytest.MonkeyPatch, held: str, asked: str
) -> None:
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(1, _counted(stems(held)), MappingProxyType({})))
    assert codes(asked)
    assert "query" in transformed(f"что такое код {asked}", QueryTransformer(recovery=False))


@pytest.mark.parametrize(
    "question",
    ["гарантия на модель WM1040", "возврат товара в версии V7", "оплата по www-01.shop.ru/pay1", "доставка MP3"],
)
def test_an_identifier_unlike_any_known_code_is_no_code(question: str) -> None:
    assert understood(question).codes == ()


def test_an_unknown_word_is_searched_by_its_synonym() -> None:
    query = understood("Гарантия на стиралку")
    assert (query.search, query.recovery) == ("Гарантия на стиральная машина", "none")
    assert "Гарантия на стиралку" in query.variants


HISTORY = [Exchange("Какая гарантия на стиральные машины?", "answered")]


def test_a_follow_up_is_completed_by_rules() -> None:
    outputs = transformed("а если возврат?", history=HISTORY)
    assert outputs["query"] == outputs["standalone"] == "а если возврат? (гарантия стиральные машины)"
    assert "а если возврат?" in outputs["variants"]


@pytest.mark.parametrize(
    ("message", "readings"),
    [
        ("а если возврат?", ["Какая гарантия на стиральные машины? а если возврат?", "а если возврат?"]),
        ("доставка и оплата товара", ["Какая гарантия на стиральные машины? доставка и оплата товара"]),
    ],
)
def test_a_message_in_a_conversation_has_other_readings(message: str, readings: list[str]) -> None:
    assert transformed(message, history=HISTORY)["readings"] == readings
    assert "readings" not in transformed(message)
    assert "readings" not in transformed(message, history=[Exchange("спасибо", "irrelevant")])


@pytest.mark.parametrize("chosen", ["а если возврат?", "2"])
def test_a_chosen_topic_has_no_other_readings(chosen: str) -> None:
    asked_back = Exchange("помогите", "clarify", ("гарантия", "а если возврат?"))
    assert "readings" not in transformed(chosen, history=[*HISTORY, asked_back])


def test_an_unknown_code_is_not_read_into_the_next_message() -> None:
    readings = transformed("выключали, то же самое", history=[Exchange("Что за ошибка E21?", "refused")])["readings"]
    assert readings == ["Что за ошибка ? выключали, то же самое"]


def test_a_model_completes_a_follow_up() -> None:
    models = ScriptedModels(condense={"question": "возврат стиральной машины"})
    outputs = transformed("а возврат?", QueryTransformer(condenser=LlmCondenser(models)), history=HISTORY)
    assert "readings" not in outputs
    assert outputs["query"] == "возврат стиральной машины"
    assert "Какая гарантия" in (models.messages[0][-1].text or "")


def test_rules_complete_a_follow_up_if_the_model_fails() -> None:
    transformer = QueryTransformer(condenser=LlmCondenser(ScriptedModels(condense=DOWN)))
    with collect_degraded() as noted:
        assert "гарантия" in transformed("а если возврат?", transformer, history=HISTORY)["query"]
    assert list(noted) == ["transformer"]


def test_without_a_conversation_no_model_is_asked() -> None:
    models = ScriptedModels()
    transformed("как вернуть товар?", QueryTransformer(condenser=LlmCondenser(models)))
    assert models.asked == []


def test_the_page_that_the_customer_looks_at_is_searched_too() -> None:
    outputs = transformed("какая гарантия?", context="Стиральная машина Волна")
    assert outputs["query"] == "какая гарантия?"
    assert "какая гарантия? (Стиральная машина Волна)" in outputs["variants"]


@pytest.mark.parametrize(
    ("alone", "completed", "title", "topic"),
    [(0.9, 0.1, "", ""), (0.1, 0.9, "", "гарантия"), (0.1, 0.9, "Рассрочка", "")],
)
def test_the_knowledge_base_tells_whether_a_short_question_is_a_new_topic(
    alone: float, completed: float, title: str, topic: str
) -> None:
    class Known(Probe):
        def best(self, text: str) -> Document:
            relevance = completed if "гарантия" in text else alone
            return Document(id="d", content="", meta={"relevance": relevance, "title": title})

    outputs = transformed("Есть рассрочка?", QueryTransformer(probe=Known()), history=HISTORY)
    assert topic in outputs["standalone"]
    assert bool(outputs["standalone"]) == bool(topic)


@pytest.mark.parametrize(
    ("before", "answered", "searched"),
    [
        ("Сколько длится гарантия?", "Сколько длится доставка?", "Сколько длится доставка?"),
        ("Сколько длится гарантия?", "а доставка? (длится гарантия)", "а доставка? (длится гарантия)"),
        ("Сколько длится гарантия?", "", "а доставка?"),
        ("Можно ли вернуть товар?", "", "а доставка?"),
    ],
)
def test_a_new_topic_is_read_as_it_is_answered(before: str, answered: str, searched: str) -> None:
    class Known(Probe):
        def best(self, text: str) -> Document:
            return Document(id="d", content="", meta={"relevance": 0.9 if text == answered else 0.1})

    history = [Exchange(before, "answered")]
    assert transformed("а доставка?", QueryTransformer(probe=Known()), history=history)["query"] == searched


def test_a_question_to_the_company_is_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Lexicon(9, _counted(stems("Магазин находится в центре, магазин и офис работают")), MappingProxyType({}))
    monkeypatch.setattr(lexicon, "current", lambda: known)
    transformer = QueryTransformer(recovery=False)
    assert understood("Где вы находитесь?", transformer).search == "Где магазин находитесь?"
    assert understood("Вы чините утюги?", transformer).search == "Вы чините утюги?"


def test_each_question_of_several_is_searched_too() -> None:
    assert {"сколько стоит доставка", "можно ли вернуть товар"} <= set(
        transformed("сколько стоит доставка и можно ли вернуть товар")["variants"]
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts)
def test_any_text_is_searched_or_absent(question: str) -> None:
    outputs = transformed(question)
    assert ("query" in outputs) != ("absent" in outputs)


ARTICLE_WORDS = frozenset(stems("стиральная машина не сливает воду, личный кабинет, пароль"))
GROUPS = (("стиралка", "стиральная машина"), ("лк", "личный кабинет", "учётка"), ("бак", "барабан"))


def test_unknown_words_are_replaced_by_known_synonyms() -> None:
    for question, meant in (
        ("Стиралка не сливает", "стиральная машина не сливает"),
        ("не сливает стиралку, а стиралка новая", "не сливает стиральная машина, а стиральная машина новая"),
        ("пароль от лк", "пароль от личный кабинет"),
        ("Забыл учётку", "Забыл личный кабинет"),
        ("стиральная машина", "стиральная машина"),
        ("бак и барабан", "бак и барабан"),
        ("стиралочка", "стиралочка"),
        ("", ""),
    ):
        assert with_known_synonyms(question, GROUPS, ARTICLE_WORDS) == meant


def test_common_synonyms_stand_in_for_unknown_words() -> None:
    for question, known, meant in (
        ("How much is delivery?", "the price of delivery", "price is delivery?"),
        ("It makes too much noise", "noise, price", "It makes too much noise"),
        ("есть кешбек", "бонусы за покупки", "есть бонусы"),
        ("How much powder?", "much powder, price", "How much powder?"),
    ):
        assert with_known_synonyms(question, common_synonyms(), frozenset(stems(known))) == meant
