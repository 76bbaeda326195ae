"""Extractive answers: the right sentences or steps in order, to the letter, and never those of another code."""

import re
from dataclasses import replace

import pytest
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.answer.extractive import ExtractiveAnswerer
from components.judge.claims import check
from components.language.identifiers import codes
from components.turn import Draft, Passage, RejectedApproach
from tests.generated import lines, texts
from tests.turns import passage, turn

DRAIN = passage(
    """Код E20 означает, что вода не сливается: насос не опустошил бак за 10 минут.

Что делать при E20:

1. Выключите машину.
2. Откройте нижнюю панель.
3. Выкрутите и промойте фильтр.

Если не помогло, вызовите мастера.""",
    "e20",
    heading="E20 — вода не сливается",
)
PUMP = passage(
    """Код E25 означает, что насос заблокирован.

Что делать при E25:

1. Достаньте монету из фильтра, чтобы вода сливалась.""",
    "e25",
    heading="E25 — насос заблокирован",
)
DELIVERY = passage(
    "Доставка работает каждый день. Доставка по городу стоит 500 рублей. Курьер позвонит заранее.\n\n"
    "Что взять с собой:\n\n- паспорт;\n- номер заказа.",
    heading="Доставка",
)


def answer(question: str, *passages: Passage, answerer: ExtractiveAnswerer | None = None) -> Draft:
    draft = (answerer or ExtractiveAnswerer()).run(turn(question, *passages))["turn"].draft
    assert draft is not None
    return draft


@pytest.mark.parametrize("question", ["Ошибка E20, что делать?", "Как исправить Е20?", "е20"])
def test_a_how_to_question_gets_the_whole_list_with_its_introduction(question: str) -> None:
    shown = [line for line in answer(question, DRAIN, PUMP).text.splitlines() if line]
    first = shown.index(next(line for line in shown if line.startswith("1. ")))
    assert shown[first - 1].startswith("Что делать при E20:")
    assert shown[first : first + 3] == [
        "1. Выключите машину.",
        "2. Откройте нижнюю панель.",
        "3. Выкрутите и промойте фильтр.",
    ]


def test_a_rejected_step_is_left_out_of_its_list_and_the_draft_says_so() -> None:
    rejected = RejectedApproach("r", "Откройте нижнюю панель", "Срывается крепление", "2025-05-05", coverage=0.5)
    given_turn = turn("Ошибка E20, что делать?", DRAIN, PUMP)
    with_rejected = replace(given_turn, evidence=replace(given_turn.evidence, rejected=(rejected,)))
    draft = ExtractiveAnswerer().run(with_rejected)["turn"].draft
    assert draft is not None
    assert draft.withheld == (rejected,)
    assert "панель" not in draft.text
    assert "1. Выключите машину. [1]" in draft.text
    assert "3. Выкрутите и промойте фильтр." in draft.text


def test_without_remaining_units_there_is_no_draft() -> None:
    only = passage("Удерживайте кнопку питания, чтобы сбросить плату.", heading="Сброс платы")
    rejected = RejectedApproach("r", "Сбросить плату кнопкой питания", "", "2025-05-05")
    given_turn = turn("Как сбросить плату?", only)
    with_rejected = replace(given_turn, evidence=replace(given_turn.evidence, rejected=(rejected,)))
    draft = ExtractiveAnswerer().run(with_rejected)["turn"].draft
    assert draft == Draft("", (), (), withheld=(rejected,))


def test_a_factual_question_gets_sentences_and_no_list() -> None:
    shown = answer("Сколько стоит доставка по городу?", DELIVERY)
    assert "Доставка по городу стоит 500 рублей." in [claim.text for claim in shown.claims]
    assert len(shown.claims) <= 3
    assert "\n" not in shown.text
    assert "паспорт" not in shown.text


def test_of_a_long_paragraph_a_fact_comes_with_its_neighbours() -> None:
    filler = " ".join(f"Склад номер {number} работает без выходных, с девяти до шести." for number in range(1, 15))
    long = passage(f"{filler} Доставка по городу стоит 500 рублей. Курьер звонит заранее. {filler}")
    shown = answer("Сколько стоит доставка по городу?", long).claims
    assert [claim.text for claim in shown][1:] == ["Доставка по городу стоит 500 рублей.", "Курьер звонит заранее."]
    assert len(shown) == 3


def test_of_a_long_list_how_often_gets_its_item() -> None:
    filler = "\n".join(f"- Склад номер {number} работает без выходных, с девяти до шести." for number in range(1, 15))
    listed = passage(f"Правила склада:\n\n{filler}\n- Уборка склада проходит каждые 2 дня.", heading="Склад")
    shown = answer("Как часто проходит уборка склада?", listed).claims
    assert [claim.text for claim in shown] == ["Правила склада:", "Уборка склада проходит каждые 2 дня."]


@pytest.mark.parametrize(("most", "cut"), [(2, True), (3, False)])
def test_a_truncated_list_is_marked(most: int, cut: bool) -> None:
    listed = passage("Как промыть фильтр насоса:\n\n1. Выключите.\n2. Слейте воду.\n3. Промойте.")
    shown = answer("как промыть фильтр насоса", listed, answerer=ExtractiveAnswerer(max_steps=most))
    assert len([line for line in shown.text.splitlines() if line[:1].isdigit()]) == most
    assert shown.truncated == cut


def test_a_table_row_comes_with_its_header() -> None:
    table = passage("| Товар | Срок |\n|---|---|\n| Фильтр | 12 месяцев |\n| Насос | 24 месяца |", heading="Гарантия")
    shown = [claim.text for claim in answer("Гарантия на насос сколько месяцев?", table).claims]
    assert "Насос | 24 месяца" in shown
    assert shown.index("Товар | Срок") < shown.index("Насос | 24 месяца")
    assert not any("---" in one for one in shown)


def test_nothing_to_quote_is_an_empty_draft() -> None:
    assert answer("Вопрос?") == Draft("", (), ())
    assert answer("E77", PUMP) == Draft("", (), ())


def test_only_one_document_is_quoted() -> None:
    other = passage("Доставка по городу стоит 900 рублей.", "c2", heading="Доставка")
    shown = answer("Сколько стоит доставка по городу?", replace(DELIVERY, score=1.0), replace(other, score=0.3))
    assert {citation.passage.doc_id for citation in shown.citations} == {DELIVERY.doc_id}


# Another code than the question's.

MERGED = """{e20}Очистите сливной фильтр.

{e25}Насос не вращается, и вода не сливается.

Что делать:

1. Выключите машину.
2. Достаньте монету, чтобы вода сливалась."""


@pytest.mark.parametrize(
    ("e20", "e25"),
    [
        ("## E20 — вода не сливается\n\n", "## E25 — насос заблокирован\n\n"),
        ("E20 — вода не сливается\n\n", "E25 — насос заблокирован\n\n"),
        ("Код E20: вода не сливается.\n\n", "Код Е25: насос заблокирован.\n\n"),
        ("Что делать при ошибке E20:\n\n", "Что делать при ошибке E25:\n\n"),
    ],
)
def test_sections_of_other_codes_in_one_passage_are_not_quoted(e20: str, e25: str) -> None:
    merged = passage(MERGED.format(e20=e20, e25=e25), heading="Ошибки")
    shown = answer("Ошибка E20, вода не сливается, что делать?", merged).text
    assert "Очистите сливной фильтр." in shown
    assert "монету" not in shown
    assert "вращается" not in shown


def test_a_section_headed_by_another_code_is_not_quoted() -> None:
    contrast = passage("В отличие от E20 заблокирован насос. Вода не сливается. Достаньте монету.", heading="Код E25")
    assert "монету" not in answer("E20: вода не сливается, что делать?", contrast).text


def test_a_row_of_another_code_is_not_quoted() -> None:
    table = passage("| Код | Что делать |\n|---|---|\n| E20 | очистить фильтр |\n| E25 | очистить насос, не E20 |")
    shown = answer("ошибка E20 очистить", table).text
    assert "очистить фильтр" in shown
    assert "насос" not in shown


_NEAR = ["E20", "Е20", "E25", "E21", "E2", "E201", "F20", "E-20"]
_FRAMES = ["Код {} означает поломку.", "{} — вода не сливается.", "Очистите фильтр при {}.", "- {}: проверьте насос"]
_sections = st.lists(
    st.one_of(
        st.builds(str.format, st.sampled_from(_FRAMES), st.sampled_from(_NEAR)),
        st.builds("## {}".format, st.sampled_from(_NEAR)),
        st.sampled_from(["Вода не сливается.", "1. Очистите фильтр.", "Что делать:", ""]),
    ),
    min_size=1,
    max_size=10,
).map("\n\n".join)


@given(_sections, st.sampled_from(["", "Код E20", "E25"]), st.sampled_from(["E20", "Е20 вода", "код E201", "F20?"]))
def test_no_sentence_about_another_code(text: str, heading: str, question: str) -> None:
    wanted = set(codes(question))
    assert wanted
    for claim in answer(f"{question} что делать", passage(text, heading=heading)).claims:
        named = set(codes(claim.text))
        assert not named or named & wanted


# Every answer, whatever the passage.

_questions = st.one_of(texts, st.sampled_from(["как очистить фильтр E20", "Код E20", "Wait for the door", "пункт шаг"]))


@given(_questions, st.lists(lines, min_size=1, max_size=3))
def test_every_claim_is_marked_and_contained_in_its_cited_span(question: str, found: list[str]) -> None:
    passages = [passage(text, f"c{number}", doc_id="d") for number, text in enumerate(found)]
    draft = answer(question, *passages)
    by_index = {citation.index: citation for citation in draft.citations}
    assert list(by_index) == list(range(1, len(draft.citations) + 1))
    for citation in draft.citations:
        start, end = citation.span
        assert 0 <= start < end <= len(citation.passage.text)
        assert citation.passage.text[start:end] == citation.excerpt
        assert citation.passage in passages
    place = 0
    for claim in draft.claims:
        (index,) = claim.citations
        assert _flat(claim.text) in _flat(by_index[index].excerpt)
        assert check(claim.text, by_index[index].passage).status == "supported"
        place = draft.text.index(claim.text, place) + len(claim.text)
        marked = re.search(r"\[(\d+)\]", draft.text[place:])
        # The mark of code stands behind what introduces it.
        assert int(marked[1]) == index if marked else claim.text.startswith(("```", "~~~"))
        assert draft.text.count(f"[{index}]") == 1 or f"[{index}]" in by_index[index].excerpt
    assert {index for claim in draft.claims for index in claim.citations} == set(by_index)


def _flat(text: str) -> str:
    return " ".join(text.split())


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("answer", ExtractiveAnswerer(900, 7, 4))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    assert again.to_dict()["components"]["answer"]["init_parameters"] == {
        "limit": 900,
        "max_steps": 7,
        "passages": 4,
    }


def test_only_the_best_passages_are_used() -> None:
    first, second = passage("Доставка завтра.", "c1", doc_id="d"), passage("Доставка сегодня.", "c2", doc_id="d")
    shown = answer("Когда доставка?", first, second, answerer=ExtractiveAnswerer(passages=1))
    assert {citation.passage.chunk_id for citation in shown.citations} == {"c1"}
