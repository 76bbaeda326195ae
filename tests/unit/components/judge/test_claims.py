"""Whether a passage supports a claim: facts must agree, words must be there, negation must not turn round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.judge.claims import check
from components.turn import Passage
from tests.turns import passage

WARRANTY = passage(
    "Гарантия на стиральные машины «Волна» действует 24 месяца со дня покупки. Вернуть вскрытый фильтр нельзя. "
    "Код E20 означает, что вода не сливается. Доставка стоит 1 200 рублей. Не открывайте люк во время стирки.",
    heading="Гарантия и возврат",
)


@pytest.mark.parametrize(
    "claim",
    [
        "Гарантия на стиральные машины «Волна» действует 24 месяца со дня покупки.",
        "гарантия на стиральные машины  «Волна» действует 24 месяца со дня покупки",
        "Доставка стоит 1200 рублей.",
        "Код Е20 означает, что вода не сливается.",
        "Вернуть вскрытый фильтр нельзя.",
        "Не открывайте люк во время стирки.",
    ],
)
def test_a_statement_of_the_passage_is_supported(claim: str) -> None:
    verdict = check(claim, WARRANTY)
    assert verdict.status == "supported"
    assert verdict.quote


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param("Гарантия на стиральные машины «Волна» действует 36 месяцев со дня покупки.", id="number"),
        pytest.param("Гарантия на стиральные машины «Волна» действует 2", id="a number cut short"),
        pytest.param("Гарантия на стиральные машины «Бриз» действует 24 месяца со дня покупки.", id="name"),
        pytest.param("Код E25 означает, что вода не сливается.", id="code"),
        pytest.param("Код E2", id="a code cut short"),
        pytest.param("Код E20 означает, что вода сливается.", id="negation lost"),
        pytest.param("Вернуть вскрытый фильтр можно.", id="negation lost before a full stop"),
        pytest.param("Открывайте люк во время стирки.", id="negation cut off a quotation"),
        pytest.param("вода сливается", id="negation cut out of the middle"),
        pytest.param("Доставка не стоит 1 200 рублей.", id="negation added"),
        pytest.param("Телевизоры ремонтирует мастерская на соседней улице.", id="other words"),
        pytest.param("и в на", id="no content"),
        pytest.param("", id="empty"),
    ],
)
def test_a_statement_absent_from_the_passage_is_unsupported(claim: str) -> None:
    assert check(claim, WARRANTY).status != "supported"


def test_each_sentence_of_a_list_item_has_a_negation_of_its_own() -> None:
    item = passage("- `Владелец` имеет все права. Его нельзя удалить. Других не назначают.")
    for stated in ("`Владелец` имеет все права.", "Его нельзя удалить.", "Других не назначают."):
        assert check(stated, item).status == "supported"
    for torn in ("Его можно удалить.", "Других назначают."):
        assert check(torn, item).status != "supported"


def test_english_negation_in_any_apostrophe() -> None:
    manual = passage("You can't return an opened filter. Delivery isn't free.")
    assert check("You can return an opened filter.", manual).status != "supported"
    assert check("You can’t return an opened filter.", manual).status == "supported"


def test_a_claim_may_be_supported_by_neighbouring_sentences_and_the_heading() -> None:
    entry = passage("Сначала закройте кран. Потом открутите шланг.", heading="Чистка фильтра")
    assert check("Закройте кран, открутите шланг: чистка фильтра.", entry).status == "supported"


def test_the_quote_is_the_passages_own_words() -> None:
    verdict = check("Машины «Волна»: гарантия действует 24 месяца.", WARRANTY)
    assert verdict.status == "supported"
    assert verdict.quote in WARRANTY.text


_SENTENCES = [WARRANTY.text[start:end] for start, end in WARRANTY.sentences]


@given(st.sampled_from(_SENTENCES), st.integers(2, 9_999).filter(lambda n: n not in {20, 24, 200, 1200}))
def test_an_invented_number_is_never_supported(sentence: str, number: int) -> None:
    assert check(f"{sentence.rstrip('.')} и ещё {number}.", WARRANTY).status != "supported"


@given(st.sampled_from(_SENTENCES), st.sampled_from([WARRANTY, passage("Оплата картой."), passage("")]))
def test_the_score_is_a_share(sentence: str, against: Passage) -> None:
    verdict = check(sentence, against)
    assert 0.0 <= verdict.score <= 1.0
    assert (verdict.status == "supported") == (sentence in against.text)


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ("Да, подключиться к рабочему столу можно через браузер.", "unsupported"),
        ("Да, подключиться к рабочему столу можно через приложение.", "supported"),
    ],
)
def test_every_word_of_a_claim_that_only_repeats_the_question_is_there(claim: str, status: str) -> None:
    desktop = passage("Чтобы подключиться к рабочему столу, узнайте адрес сервера и откройте приложение.", "c1")
    question = claim.removeprefix("Да, ").replace(".", "?")
    assert check(claim, desktop, question).status == status
    assert check(claim, desktop).status == "supported"
