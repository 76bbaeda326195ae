"""The model of relevance: what speaks for a passage raises its probability, and every part of it is shown."""

from dataclasses import replace

import pytest
from components.judge.evidence import COSINE, EVIDENCE
from hypothesis import given

from components.judge.relevance import STRICT_CODES, RelevanceScore, relevance_model
from components.turn import Passage
from tests.generated import lines, texts
from tests.turns import passage, query

HOWTO = passage(
    "1. Откройте вкладку **Диски**. 2. Нажмите **Увеличить**. 3. Укажите размер.", "howto", title="Увеличить диск"
)
ABOUT = passage("Диск виртуальной машины хранит данные.", "about", title="Диски")
OTHER = passage("Счета приходят в начале месяца.", "other", title="Оплата")


def near(one: Passage, cosine: float) -> Passage:
    return replace(one, scores={COSINE: cosine})


def judged(question: str, *passages: Passage) -> dict[str, RelevanceScore]:
    result = relevance_model().judge(query(question), passages)
    return {one.chunk_id: judgement for one, judgement in zip(passages, result, strict=True)}


@pytest.mark.parametrize("cosines", [(), (0.9, 0.88, 0.8)])
def test_steps_under_the_title_of_the_action_come_first(cosines: tuple[float, ...]) -> None:
    passages = (HOWTO, ABOUT, OTHER)
    shown = tuple(map(near, passages, cosines)) if cosines else passages
    result = judged("Как увеличить диск?", *shown)
    assert result["howto"].probability > result["about"].probability > result["other"].probability
    assert result["howto"].evidence["action"] == 1.0
    assert result["howto"].evidence["about"] > result["other"].evidence["about"] == 0.0
    assert tuple(result["other"].evidence) == (EVIDENCE if cosines else EVIDENCE[1:])


def test_a_nearer_passage_is_more_probable() -> None:
    one, two = near(replace(ABOUT, chunk_id="one"), 0.91), near(replace(ABOUT, chunk_id="two"), 0.85)
    result = judged("Что хранит диск?", one, two)
    assert result["one"].probability > result["two"].probability


LIFETIME = passage("Гарантия на товар действует два года.", "lifetime", heading="Срок")


@pytest.mark.parametrize(
    ("evidence", "question", "other"),
    [
        ("kind", "Сколько действует гарантия?", replace(LIFETIME, text="Гарантия на товар действует всегда, и точка.")),
        ("place", "Сколько действует гарантия?", replace(LIFETIME, heading="Что дальше")),
        (
            "names",
            "Сколько гарантия на Samsung?",
            replace(LIFETIME, text="Гарантия на товар Bosch действует два года."),
        ),
    ],
)
def test_what_a_shown_answer_must_have_makes_a_passage_more_probable(
    evidence: str, question: str, other: Passage
) -> None:
    has = replace(LIFETIME, text=LIFETIME.text.replace("товар", "товар Samsung")) if evidence == "names" else LIFETIME
    asked = query(question)
    asked = replace(asked, weights=dict.fromkeys(asked.weights, 4.0))
    yes, no = relevance_model().judge(asked, (near(has, 0.9), near(replace(other, chunk_id="other"), 0.9)))
    assert (yes.evidence[evidence], no.evidence[evidence]) == (1.0, 0.0)
    assert yes.probability > no.probability


def test_what_a_tool_says_is_of_the_kind_and_another_language_tells_none() -> None:
    result = judged(
        "Сколько действует гарантия?",
        replace(OTHER, doc_id="tool:orders", chunk_id="tool"),
        replace(OTHER, lang="en", chunk_id="english"),
        OTHER,
    )
    assert [result[name].evidence["kind"] for name in ("tool", "english", "other")] == [1.0, 0.6, 0.0]


def test_without_the_encoder_less_is_claimed() -> None:
    sure = judged("Как увеличить диск?", near(HOWTO, 0.93), near(ABOUT, 0.85), near(OTHER, 0.8))
    assert sure["howto"].probability > judged("Как увеличить диск?", HOWTO, ABOUT, OTHER)["howto"].probability


def test_one_missing_cosine_makes_all_passages_judged_by_words() -> None:
    mixed = judged("Как увеличить диск?", near(HOWTO, 0.93), ABOUT, OTHER)
    plain = judged("Как увеличить диск?", HOWTO, ABOUT, OTHER)
    assert {name: one.probability for name, one in mixed.items()} == {
        name: one.probability for name, one in plain.items()
    }


@pytest.mark.parametrize("asked", ["Подскажите, как увеличить диск?", "Здравствуйте! Скажите, как увеличить диск?"])
def test_function_words_that_no_article_holds_are_not_missed(asked: str) -> None:
    plain = judged("Как увеличить диск?", HOWTO, ABOUT, OTHER)
    assert judged(asked, HOWTO, ABOUT, OTHER)["howto"].evidence["words"] == plain["howto"].evidence["words"]


def test_the_name_of_a_file_is_no_title() -> None:
    named = replace(HOWTO, title="disk-01")
    assert judged("Как увеличить диск?", named)["howto"].evidence["about"] == 0.3


def test_no_passage_without_the_code_answers() -> None:
    e20, e25 = passage("Код E20: нет слива.", "e20"), passage("Код E25: насос.", "e25")
    result = judged("Что означает E20?", e20, e25)
    assert result["e20"].probability > result["e25"].probability == 0.0


def test_a_pasted_log_does_not_rule_out_what_holds_none_of_its_codes() -> None:
    log = "Как увеличить диск? ERR-4711 AB-1234 XK-9920 QZ-5513 PT-8842"
    assert len(query(log).codes) > STRICT_CODES
    result = judged(log, HOWTO, OTHER)
    assert result["howto"].probability > result["other"].probability > 0.0
    few = judged("Как увеличить диск? ERR-4711 AB-1234", HOWTO, OTHER)
    assert few["howto"].probability == 0.0


def test_a_section_for_the_contrary_case_is_hardly_an_answer() -> None:
    remembered = passage("Введите текущий пароль.", "known", heading="Как сменить пароль, если вы его помните")
    asked_of_it = judged("Помню пароль, как сменить?", remembered, OTHER)["known"].probability
    assert 0.0 < judged("Не помню пароль, как сменить?", remembered, OTHER)["known"].probability < asked_of_it / 2


def test_without_passages_nothing_is_judged() -> None:
    assert judged("Как увеличить диск?") == {}


@given(texts, lines, texts)
def test_every_kind_of_evidence_is_a_share(question: str, text: str, heading: str) -> None:
    one = judged(question, near(passage(text, heading=heading), 0.8))["c1"]
    assert 0.0 <= one.probability <= 1.0
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in one.evidence.values())
