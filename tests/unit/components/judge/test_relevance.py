"""The relevance judge: nearer and better covered passages are more likely, identifiers are exact."""

from dataclasses import replace

import pytest

from components.judge.relevance import COSINE, SIGNALS, STRICT_CODES, RelevanceScore, judge
from components.turn import Passage
from tenants.index import SPARSE
from tests.turns import passage, query

HOWTO = passage("1. Откройте вкладку **Диски**. 2. Нажмите **Увеличить**.", "howto", title="Увеличить диск")
ABOUT = passage("Диск виртуальной машины хранит данные.", "about", title="Диски")
OTHER = passage("Счета приходят в начале месяца.", "other", title="Оплата")


def near(one: Passage, cosine: float) -> Passage:
    return replace(one, scores={COSINE: cosine})


def judged(question: str, *passages: Passage) -> dict[str, RelevanceScore]:
    result = judge(query(question), passages)
    return {one.chunk_id: judgement for one, judgement in zip(passages, result, strict=True)}


OTHER_NEAR = near(replace(OTHER, doc_id="bills"), 0.85)


@pytest.mark.parametrize("cosines", [(), (0.9, 0.88, 0.8)])
def test_the_passage_that_covers_the_question_comes_first(cosines: tuple[float, ...]) -> None:
    passages = (HOWTO, ABOUT, OTHER)
    result = judged("Как увеличить диск?", *(map(near, passages, cosines) if cosines else passages))
    assert result["howto"].probability > result["about"].probability > result["other"].probability
    assert set(result["howto"].evidence) == set(SIGNALS if cosines else SIGNALS[1:])


def test_a_nearer_passage_is_more_probable() -> None:
    one, two = near(replace(ABOUT, chunk_id="one"), 0.91), near(replace(ABOUT, chunk_id="two"), 0.85)
    result = judged("Что хранит диск?", one, two)
    assert result["one"].probability > result["two"].probability


def test_a_better_hit_of_the_search_by_words_is_more_probable() -> None:
    passages = [
        replace(near(ABOUT, 0.88), chunk_id=name, scores={COSINE: 0.88, SPARSE: share})
        for name, share in (("one", 1.0), ("two", 0.4))
    ]
    result = judged("Что хранит диск?", *passages)
    assert result["one"].probability > result["two"].probability


def test_one_missing_cosine_makes_all_passages_judged_by_words() -> None:
    mixed = judged("Как увеличить диск?", near(HOWTO, 0.93), ABOUT, OTHER)
    plain = judged("Как увеличить диск?", HOWTO, ABOUT, OTHER)
    assert {name: one.probability for name, one in mixed.items()} == {
        name: one.probability for name, one in plain.items()
    }


def test_no_passage_without_the_code_answers() -> None:
    result = judged("Что означает E20?", passage("Код E20: нет слива.", "e20"), passage("Код E25: насос.", "e25"))
    assert result["e20"].probability > result["e25"].probability == 0.0


def test_a_pasted_log_does_not_rule_out_a_passage_without_its_codes() -> None:
    log = "Как увеличить диск? ERR-4711 AB-1234 XK-9920 QZ-5513 PT-8842"
    assert len(query(log).codes) > STRICT_CODES
    assert judged(log, HOWTO, OTHER)["howto"].probability > 0.0


@pytest.mark.parametrize(
    ("question", "heading"),
    [
        ("cant remember my password", "How to change a password that you remember"),
        ("не помню пароль", "Как сменить пароль, если вы его помните"),
    ],
)
def test_a_section_that_assumes_what_the_question_denies_is_improbable(question: str, heading: str) -> None:
    text = "Пароль password меняют в профиле: Profile, Security."
    scores = judged(question, passage(text, "opposite", heading=heading), passage(text, "neutral", heading="Пароль"))
    affirmed = judged(heading, passage(text, "opposite", heading=heading))
    assert scores["opposite"].probability < scores["neutral"].probability < affirmed["opposite"].probability


@pytest.mark.parametrize(
    ("question", "affirmed", "denied"),
    [
        ("дополнительная гарантия что покрывает", "Что покрывает гарантия", "Что не покрывает гарантия"),
        ("what does the warranty cover", "What the warranty covers", "What the warranty does not cover"),
    ],
)
def test_a_section_about_the_opposite_of_the_question_is_improbable(question: str, affirmed: str, denied: str) -> None:
    text = "Дополнительная гарантия покрывает дефекты. What the warranty does cover: defects."
    for_both = passage(text, "affirmed", heading=affirmed), passage(text, "denied", heading=denied)
    asked = judged(question, *for_both)
    assert asked["denied"].probability < asked["affirmed"].probability
    assert judged(denied, *for_both)["denied"].probability > asked["denied"].probability
    alone = judged(question, for_both[1], passage(text, "other", heading="Warranty гарантия"))
    assert alone["denied"].probability > asked["denied"].probability


def test_more_sections_of_one_document_leave_the_others_as_probable() -> None:
    sections = [near(replace(HOWTO, chunk_id=f"s{n}", doc_id="disks"), 0.9) for n in range(4)]
    three, four = judged("Увеличить диск", *sections[:3], OTHER_NEAR), judged("Увеличить диск", *sections, OTHER_NEAR)
    assert three["other"].probability == four["other"].probability


@pytest.mark.parametrize(
    ("question", "title", "heading", "neutral"),
    [
        ("What is the warranty?", "Warranty", "What the warranty does not cover", "Warranty period"),
        ("Где сервисный центр?", "Сервисный центр", "Где купить запчасти", "Контакты сервисного центра"),
    ],
)
def test_another_question_about_the_subject_is_improbable(
    question: str, title: str, heading: str, neutral: str
) -> None:
    about = passage("Где сервисный центр? What is the warranty?", "about", title=title, heading=neutral)
    scores = judged(question, replace(about, chunk_id="other", heading=heading), about)
    asked = judged(heading, replace(about, chunk_id="other", heading=heading), about)
    assert scores["other"].probability < scores["about"].probability
    assert scores["other"].probability < asked["other"].probability


def test_a_heading_that_opens_with_a_preposition_is_no_other_question() -> None:
    section = passage("Доставим за два дня.", "section", title="Доставка", heading="По России")
    scores = judged("доставка?", section, replace(section, chunk_id="same", heading="Россия"))
    assert scores["section"].probability == pytest.approx(scores["same"].probability, abs=0.2)


@pytest.mark.parametrize(
    ("question", "text", "other"),
    [
        ("warranty on repairs", "## Repair prices\n\n900.\n\n## Warranty on repairs\n\nSix months.", "Repair times"),
        ("сколько гарантия на ремонт?", "## Цены\n\n900.\n\n## Гарантия на ремонт\n\nПолгода.", "Сроки ремонта"),
    ],
)
def test_a_section_headed_by_the_question_is_more_probable(question: str, text: str, other: str) -> None:
    sections = passage(text, "headed"), passage(text, "other", heading=other)
    unlike = passage(text.replace("Warranty on", "Paying for").replace("Гарантия на", "Оплата за"), "unlike")
    scores = judged(question, *sections, unlike)
    assert scores["headed"].probability > 2 * scores["unlike"].probability
