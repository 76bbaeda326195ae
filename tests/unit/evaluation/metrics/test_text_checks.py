from evaluation.cases import Case, Quote, Record, Sentence
from evaluation.metrics import text_checks


def quotes(*excerpts: str) -> tuple[Quote, ...]:
    return tuple(Quote("a", excerpt, genuine=True) for excerpt in excerpts)


def test_a_gold_span_is_found_as_whole_words_in_any_spelling() -> None:
    for text, spans, held in (
        ("Гарантия действует 24 месяца [1].", ["24 месяца"], True),
        ("«Ещё раз», — сказал он.", ["еще раз"], True),
        ("The panthers won.", ["Panthers", "x"], True),
        ("Код 1308.", ["308"], False),
        ("Ничего.", [""], False),
        ("Счёт 23–16", ["23–16"], True),
    ):
        assert text_checks.holds_span(text_checks.without_citations(text), spans) is held


def test_a_quote_entails_only_its_own_statement() -> None:
    for quoted, claim, entailed in (
        (["Гарантия — 24 месяца со дня покупки."], "Гарантия — 24 месяца со дня покупки.", True),
        (["Гарантия — 24 месяца со дня покупки."], "Гарантия — 36 месяцев со дня покупки.", False),
        (["Вернуть товар можно."], "Вернуть товар нельзя.", False),
        (["Ошибка E20: вода не сливается."], "Ошибка E25: вода не сливается.", False),
        (["Нажмите «Пуск»."], "Нажмите «Пуск», затем выньте вилку из розетки.", False),
        (["Ошибка E20.", "Прочистите фильтр насоса."], "Ошибка E20: прочистите фильтр насоса.", True),
        ([], "Что угодно.", False),
    ):
        assert text_checks.entails(quotes(*quoted), claim) is entailed


def test_a_quote_that_is_not_in_its_passage_entails_nothing() -> None:
    assert not text_checks.entails((Quote("a", "Вода не сливается.", genuine=False),), "Вода не сливается.")


def test_an_answer_about_another_code_is_recognised_in_text_and_quotes() -> None:
    case = Case("1", "ошибка E21")
    record = Record(case, "answered", text="E20: слейте воду. [1]", codes=("E21",))
    quoted = Record(
        case,
        "answered",
        text="Слейте воду. [1]",
        sentences=(Sentence("Слейте воду.", quotes("E20: слейте.")),),
        codes=("E21",),
    )
    same = Record(case, "answered", text="E21: слейте воду. [1]", codes=("E21",))
    refused = Record(case, "refused", text="Кода E21 нет, есть E20.", codes=("E21",))
    assert [text_checks.answers_another_code(r, "E21") for r in (record, quoted, same, refused)] == [
        True,
        True,
        False,
        False,
    ]
    assert [text_checks.keeps_code(r) for r in (record, quoted, same)] == [False, False, True]
