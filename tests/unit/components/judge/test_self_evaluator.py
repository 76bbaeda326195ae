"""Self-evaluation: a score is measured or absent; a quotation is as good as its evidence."""

from dataclasses import replace

import pytest

from components.faults import collect_degraded
from components.judge.self_evaluator import NOT_EVALUATED, SelfEvaluator
from components.turn import Exchange, SelfEvaluation
from tests.turns import EVALUATED, FixedJudge, answer, document, passage

pytestmark = pytest.mark.usefixtures("terms")


def evaluated(
    judge: FixedJudge | None, query: str = "гарантия", *, quoted: bool = False, adequacy: float = 0.7
) -> SelfEvaluation:
    answers = [answer("Гарантия два года.", of=passage("Гарантия два года."), quoted=quoted)]
    evaluator = SelfEvaluator(judge, quote_threshold=0.45)  # type: ignore[arg-type]
    return evaluator.run(query=query, answers=answers, adequacy=adequacy)["evaluation"]


def test_a_model_evaluates_what_a_model_wrote() -> None:
    assert evaluated(FixedJudge()) == EVALUATED


def test_a_model_reads_the_question_in_the_words_of_the_customer() -> None:
    judge = FixedJudge()
    evaluator = SelfEvaluator(judge)  # type: ignore[arg-type]
    answers = [answer("Гарантия два года.", of=passage("Гарантия два года."))]
    evaluator.run(query="Does the wasservice need SSL?", question="Does the webservice need SSL?", answers=answers)
    evaluator.run(query="warranty", question="warranty", answers=answers)
    assert judge.questions == ["Does the webservice need SSL?\n(Does the wasservice need SSL?)", "warranty"]


def test_a_quotation_is_worth_its_evidence() -> None:
    found = evaluated(FixedJudge(), quoted=True, adequacy=0.7)
    assert (found.answerability, found.relevance, found.confidence, found.quality) == ("fully", 0.7, 0.7, 100)


@pytest.mark.parametrize("judge", [None, FixedJudge()])
def test_a_quotation_of_weak_evidence_answers_nothing(judge: FixedJudge | None) -> None:
    found = evaluated(judge, quoted=True, adequacy=0.3)
    assert (found.answerability, found.quality) == ("cannot", 50)


def test_a_quotation_of_a_weaker_document_than_the_best_is_worth_its_own() -> None:
    quotation = answer("Гарантия два года.", quoted=True)
    quotation = replace(quotation, documents=[document("Гарантия два года.", relevance=0.2)])
    found = SelfEvaluator().run(query="гарантия", answers=[quotation], adequacy=0.9)["evaluation"]
    assert (found.answerability, found.confidence) == ("cannot", 0.2)


def test_a_code_that_the_quotation_lacks_is_missing() -> None:
    found = evaluated(None, "ошибка E21", quoted=True)
    assert (found.answerability, found.missing) == ("partially", ("E21",))


@pytest.mark.parametrize(
    ("query", "missing"),
    [("гарантия на «Волну»", ("Волну",)), ("«гарантия»", ()), ('the "Family Plus" warranty', ("Family Plus",))],
)
def test_a_quoted_name_that_the_quotation_lacks_is_missing(query: str, missing: tuple[str, ...]) -> None:
    assert evaluated(None, query, quoted=True).missing == missing


@pytest.mark.parametrize(
    ("query", "heading", "answerability"),
    [
        ("refund how long", "Can I return the extended warranty", "cannot"),
        ("refund how long", "When refunds arrive", "fully"),
        ("до скольки работаете в воскресенье", "Куда обращаться по ремонту", "cannot"),
        ("refund of a kettle, how long", "Can I return the extended warranty", "fully"),
        ("E20", "Table of errors", "fully"),
        ("money back how long", "Can I return the extended warranty", "fully"),
    ],
)
def test_a_section_that_mentions_the_topic_in_passing_answers_nothing(
    query: str, heading: str, answerability: str
) -> None:
    of = passage("We refund the full months. Kettles, too. Воскресенье — выходной, E20.", heading=heading)
    quotation = answer(of.text, of=of, quoted=True)
    found = SelfEvaluator().run(query=query, answers=[quotation], adequacy=0.9)["evaluation"]
    assert found.answerability == answerability


@pytest.mark.parametrize(
    ("query", "before", "answerability"),
    [
        ("и если досрочно погасить (рассрочка взнос)", "рассрочка без взноса", "cannot"),
        ("а первый взнос (рассрочка месяцев)", "рассрочка на сколько месяцев", "fully"),
        ("а взносы (рассрочка месяцев)", "рассрочка на сколько месяцев", "fully"),
        ("рассрочка досрочно", "где магазин", "fully"),
        ("рассрочка досрочно", "", "fully"),
    ],
)
def test_a_quotation_without_a_new_word_of_a_follow_up_answers_nothing(
    query: str, before: str, answerability: str
) -> None:
    of = passage("Первый взнос не нужен.", heading="Рассрочка: сколько месяцев")
    history = [Exchange(before, "answered")] if before else []
    quotation = answer(of.text, of=of, quoted=True)
    found = SelfEvaluator().run(query=query, answers=[quotation], adequacy=0.9, history=history, standalone=query)[
        "evaluation"
    ]
    assert found.answerability == answerability


@pytest.mark.parametrize(
    ("query", "text", "missing"),
    [
        ("Какой расход воды у Волна Семья", "Машина «Волна Стандарт» расходует 44 литра.", ("Волна Семья",)),
        ("расход воды у волны семьи", "Машина «Волна Стандарт» расходует 44 литра.", ("волны семьи",)),
        ("расход воды у волны стандарт", "Машина «Волна Стандарт» расходует 44 литра.", ()),
        ("расход воды волны за стирку", "Машина «Волна Стандарт» расходует 44 литра.", ()),
        ("how much water does volna family use", "Volna Standard uses 44 litres of water.", ("volna family",)),
        ("how much water does volna standard use", "Volna Standard uses 44 litres of water.", ()),
        ("how do I connect machine hoses", "Connect Volna Standard to cold water.", ()),
    ],
)
def test_a_name_beside_those_of_the_quotation_is_missing(query: str, text: str, missing: tuple[str, ...]) -> None:
    quotation = answer(text, of=passage(text), quoted=True)
    found = SelfEvaluator().run(query=query, answers=[quotation], adequacy=0.9)["evaluation"]
    assert found.missing == missing


@pytest.mark.parametrize(
    ("title", "heading", "missing"),
    [("Ошибка E21", "", ()), ("", "E21 — насос", ()), ("Ошибки E20, E21", "", ("E21",))],
)
def test_a_title_of_several_codes_answers_none_of_them(title: str, heading: str, missing: tuple[str, ...]) -> None:
    source = passage("Замените насос.", title=title, heading=heading)
    answers = [answer("Замените насос.", of=source, quoted=True)]
    assert SelfEvaluator().run(query="ошибка E21", answers=answers, adequacy=0.7)["evaluation"].missing == missing


def test_a_failing_model_gives_no_score() -> None:
    with collect_degraded() as noted:
        assert evaluated(FixedJudge(broken=["evaluate"])) == NOT_EVALUATED
    assert list(noted) == ["self_evaluator"]
