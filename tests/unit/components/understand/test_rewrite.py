"""What is searched: the question as it was meant, then new queries and never an old one."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType

import pytest
from haystack import Pipeline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.language.identifiers import codes, shapes
from components.language.normalise import fold
from components.language.words import stems, words
from components.turn import EXTRA_PASSES, Turn
from components.understand import rewrite
from components.understand.rewrite import QueryRewriter, rarity
from tenants import lexicon, policy
from tenants.errors import TryAgain
from tenants.index.empty import EmptyCollection
from tenants.lexicon import Lexicon
from tenants.policy import Policy
from tests.generated import texts

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
    monkeypatch.setattr(rewrite, "open_collection", lambda: Stored(KNOWN.chunks))


class Stored(EmptyCollection):
    """An index of so many chunks; None: one that cannot be reached."""

    def __init__(self, chunks: int | None) -> None:
        self._chunks = chunks

    def count(self) -> int:
        if self._chunks is None:
            raise TryAgain("index_unavailable")
        return self._chunks


def rewritten(turn: Turn, rewriter: QueryRewriter | None = None) -> tuple[str, Turn]:
    ((socket, after),) = (rewriter or QueryRewriter()).run(turn).items()
    return socket, after


def first(question: str, rewriter: QueryRewriter | None = None) -> Turn:
    socket, after = rewritten(Turn("t", question), rewriter)
    assert socket == "search"
    assert after.passes == 1
    return after


def test_a_plain_question_is_searched_as_it_is() -> None:
    query = first("  Гарантия на стиральные машины ").query
    assert (query.search, query.variants, query.recovery) == ("Гарантия на стиральные машины", (), "none")
    assert query.searched_texts == (query.search,)
    assert set(query.weights) == set(stems(query.search))
    assert query.doubtful == frozenset()


@pytest.mark.parametrize(
    ("typed", "kind", "meant"),
    [
        ("ufhfynbz cnbhfkmyjq vfibys", "layout", "гарантия стиральной машины"),
        ("garantiya stiralnoy mashiny", "transliteration", "гарантия стиральной машины"),
        ("гарнтия стиральной машины", "typo", "гарантия стиральной машины"),
    ],
)
def test_a_mistyped_question_is_searched_as_intended(typed: str, kind: str, meant: str) -> None:
    query = first(typed).query
    assert query.recovery == kind
    assert stems(query.search) == stems(meant)
    assert typed in query.variants
    assert len(query.variants) <= 3


def test_the_point_of_a_message_is_searched_and_weighed() -> None:
    query = first("Здравствуйте! Подскажите, пожалуйста, как вернуть товар? Спасибо!").query
    assert query.search == "как вернуть товар?"
    assert query.variants == ()
    assert query.weights.keys() == set(stems("вернуть товар"))


def test_only_a_corrected_word_is_doubtful() -> None:
    corrected = first("гарнтия стиральной машины").query
    assert corrected.doubtful == frozenset(stems("гарантия"))
    assert first("ufhfynbz cnbhfkmyjq vfibys").query.doubtful == frozenset()


def test_recovery_can_be_off() -> None:
    query = first("гарнтия стиральной машины", QueryRewriter(recovery=False)).query
    assert (query.search, query.recovery) == ("гарнтия стиральной машины", "none")


@pytest.mark.parametrize("typed", ["jib,rf t20", "Ошбика Е20", "oshibka E20", "ошибка e20"])
def test_codes_are_kept_to_the_letter(typed: str) -> None:
    assert first(typed).query.codes == ("E20",)


def test_an_unknown_code_is_not_corrected_to_a_known_one() -> None:
    socket, after = rewritten(Turn("t", "ошибка E21, вода не сливается"))
    assert (socket, after.passes, after.query.codes) == ("exhausted", 0, ("E21",))
    assert (after.verdict.route, after.verdict.reasons) == ("human", ("code_not_found",))
    assert after.evidence.uncovered == ("E21",)


@pytest.mark.parametrize("chunks", [0, KNOWN.chunks - 1, KNOWN.chunks + 1])
def test_an_unknown_code_is_searched_when_the_index_holds_what_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    monkeypatch.setattr(rewrite, "open_collection", lambda: Stored(chunks))
    assert first("ошибка E21, вода не сливается").query.codes == ("E21",)


def test_no_code_is_absent_from_an_index_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "open_collection", lambda: Stored(None))
    with pytest.raises(TryAgain, match="index_unavailable"):
        rewritten(Turn("t", "ошибка E21, вода не сливается"))
    assert first("ошибка E20, вода не сливается").query.codes == ("E20",)


def test_one_known_code_among_several_is_searched() -> None:
    assert first("чем отличаются E20 и E21").query.codes == ("E20", "E21")


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("Модель E-20", "E20"),
        ("Режим A-12", "A12"),
        ("CVE-2016-2961", "CVE-2016-2961"),
    ],
)
def test_a_code_is_recognised_in_the_spelling_of_the_passages(
    monkeypatch: pytest.MonkeyPatch, held: str, asked: str
) -> None:
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(1, _counted(stems(held)), MappingProxyType({})))
    assert codes(asked)
    assert rewritten(Turn("t", f"что такое код {asked}"), QueryRewriter(recovery=False))[0] == "search"


@pytest.mark.parametrize(
    "question",
    ["гарантия на модель WM1040", "возврат товара в версии V7", "оплата по www-01.shop.ru/pay1", "доставка MP3"],
)
def test_an_identifier_unlike_any_known_code_is_no_code(question: str) -> None:
    assert first(question).query.codes == ()


def test_a_small_open_share_is_not_worth_a_pass() -> None:
    before = first("действует ли гарантия и возможен ли возврат машины")
    before = replace(before, evidence=replace(before.evidence, uncovered=tuple(stems("машины"))))
    assert rewritten(before)[0] == "exhausted"


def test_rare_words_weigh_more() -> None:
    assert rarity(KNOWN, "неизвестн") > rarity(KNOWN, stems("гарантия")[0]) > rarity(KNOWN, stems("машины")[0]) > 0
    assert rarity(Lexicon(), "слово") > 0


def test_the_pipeline_says_how_many_passes_a_quality_may_spend() -> None:
    rewriter = QueryRewriter(extra_passes={"thorough": 6, "quick": 0})
    budgets = {
        quality: rewritten(Turn("t", "гарантия", quality=quality), rewriter)[1].max_passes for quality in EXTRA_PASSES
    }
    assert budgets == {"quick": 1, "balanced": 3, "thorough": 7}
    with pytest.raises(ValueError, match="quik"):
        QueryRewriter(extra_passes={"quik": 1})  # type: ignore[dict-item]


def test_a_second_pass_searches_uncovered_words() -> None:
    before = first("гарантия или возврат машины")
    before = replace(before, evidence=replace(before.evidence, uncovered=tuple(stems("возврат"))))
    socket, after = rewritten(before)
    assert (socket, after.passes) == ("search", 2)
    assert (after.query.search, after.query.weights) == (before.query.search, before.query.weights)
    assert after.query.variants
    assert all("возврат" in variant for variant in after.query.variants)
    assert after.query.searched_texts == before.query.searched_texts + after.query.variants


def test_words_absent_from_the_knowledge_base_are_not_searched_again() -> None:
    before = first("посудомоечная машина")
    before = replace(before, evidence=replace(before.evidence, uncovered=tuple(stems("посудомоечная"))))
    assert rewritten(before)[0] == "exhausted"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(texts, st.sampled_from(_TEXTS)), st.integers(1, 4), st.data())
def test_queries_never_repeat_and_end(question: str, most: int, data: st.DataObject) -> None:
    rewriter = QueryRewriter(max_queries=most, min_open=0.0)
    initial, turn = rewritten(Turn("t", question), rewriter)
    if initial == "exhausted":
        assert turn.query.codes
        assert turn.verdict.reasons == ("code_not_found",)
        return
    for _ in range(20):
        uncovered = tuple(data.draw(st.lists(st.sampled_from(sorted(turn.query.weights) or ["e21"]), max_size=3)))
        socket, after = rewritten(replace(turn, evidence=replace(turn.evidence, uncovered=uncovered)), rewriter)
        assert len(set(after.query.searched_texts)) == len(after.query.searched_texts)
        if socket == "exhausted":
            assert (after.passes, after.query) == (turn.passes, turn.query)
            assert after.verdict.route == "human"
            assert "no_new_query" in after.verdict.reasons
            return
        assert 0 < len(after.query.variants) <= most
        turn = after


def test_an_unknown_word_is_searched_by_its_synonym() -> None:
    query = first("Гарантия на стиралку").query
    assert (query.search, query.recovery) == ("Гарантия на стиральная машина", "none")
    assert "Гарантия на стиралку" in query.variants
    assert first("Гарантия на стиральные машины").query.search == "Гарантия на стиральные машины"


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("rewrite", QueryRewriter(recovery=False, max_queries=2))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    parameters = again.to_dict()["components"]["rewrite"]["init_parameters"]
    assert parameters == {
        "recovery": False,
        "history_credit": 0.6,
        "max_queries": 2,
        "min_open": 0.25,
        "extra_passes": dict(EXTRA_PASSES),
        "writer": None,
        "tools": None,
    }
