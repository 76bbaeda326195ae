"""Messages with several questions: which are answered, and which are named as open."""

from dataclasses import replace

import pytest

from components.turn import Article, Passage, Reply, Turn
from pipelines.ask.parts import with_parts
from tests.turns import draft, passage, turn

MODELS = passage("«Компакт» весит 50 кг, «Сушка» — 80 кг.", "models", heading="Модели")
DRYING = passage("Шерсть сушить нельзя.", "drying", heading="Что нельзя сушить")


def answered(question: str, of: Passage, *suggestions: str) -> Turn:
    written = draft(of.text, of=of)
    return replace(
        turn(question, of), draft=written, outcome="answered", reply=Reply(written.text, suggestions=suggestions)
    )


def refused(question: str) -> Turn:
    return replace(turn(question, DRYING), outcome="refused", reason="no_relevant_context")


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Чем «Компакт» отличается от «Сушка»?", ()),
        ("Чем «Компакт» отличается от «Семья»?", ("Семья",)),
        ("Сколько весит «Компакт»? И можно ли сушить шерсть?", ("можно ли сушить шерсть",)),
    ],
)
def test_an_open_part_is_named_unless_the_answer_compares_it(question: str, missing: tuple[str, ...]) -> None:
    def run(part: Turn) -> Turn:
        return (
            answered(part.question, MODELS, "Модели", "Гарантия")
            if "Компакт" in part.question
            else refused(part.question)
        )

    joined = with_parts(turn(question), answered(question, MODELS, "Гарантия"), run)
    assert joined.draft is not None
    assert joined.draft.missing == missing
    assert joined.outcome == ("partially_answered" if missing else "answered")
    assert joined.reply.suggestions == ("Гарантия",)


@pytest.mark.parametrize(
    ("second", "missing"),
    [
        ("Где мой заказ", ()),
        ("И сколько это занимает", ("сколько это занимает",)),
        ("Какая на него гарантия", ("Какая на него гарантия",)),
    ],
)
def test_a_part_with_a_topic_is_also_asked_by_itself(second: str, missing: tuple[str, ...]) -> None:
    question = f"Сколько весит «Компакт»? {second}?"

    def run(part: Turn) -> Turn:
        if part.history:
            return refused(part.question)
        return answered(part.question, MODELS if "Компакт" in part.question else DRYING)

    joined = with_parts(turn(question), refused(question), run)
    assert joined.draft is not None
    assert joined.draft.missing == missing
    assert [citation.passage for citation in joined.draft.citations][1:] == ([] if missing else [DRYING])


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_question_beside_an_unknown_code_is_answered(is_answered: bool) -> None:
    question = "Что значит E99 и сколько весит «Компакт»?"

    def unknown(question: str) -> Turn:
        asked = turn(question)
        lacking = replace(asked, query=replace(asked.query, codes=("E99",)))
        lacking = replace(lacking, evidence=replace(lacking.evidence, uncovered=("E99",)))
        return replace(lacking, outcome="refused", reason="no_relevant_context", reply=Reply("Кода E99 нет."))

    def run(part: Turn) -> Turn:
        if "E99" in part.question:
            return unknown(part.question)
        return answered(part.question, MODELS) if is_answered else refused(part.question)

    joined = with_parts(turn(question), unknown(question), run)
    if is_answered:
        assert joined.draft is not None
        assert (joined.outcome, joined.draft.missing) == ("partially_answered", ("E99",))
    else:
        assert (joined.outcome, joined.reply.text) == ("refused", "Кода E99 нет.")


def test_a_part_that_no_document_can_answer_is_filtered() -> None:
    def run(part: Turn) -> Turn:
        if "Компакт" in part.question:
            return answered(part.question, MODELS)
        return replace(turn(part.question), intent="irrelevant", outcome="irrelevant", reason="off_topic")

    question = "Сколько весит «Компакт»? И какая завтра погода?"
    joined = with_parts(turn(question), answered(question, MODELS), run)
    assert joined.draft is not None
    assert joined.draft.missing == joined.filtered == ("какая завтра погода",)


@pytest.mark.parametrize(("side", "missing"), [("Сушка", ()), ("Семья", ("Семья",))])
def test_a_side_that_an_offered_section_compares_is_not_missing(side: str, missing: tuple[str, ...]) -> None:
    question = f"Чем «Компакт» отличается от «{side}»?"
    depth = passage("Для ниши подойдёт «Компакт».", "depth", heading="Глубина")
    offered = Reply("Посмотрите статьи.", articles=(Article(MODELS, MODELS.text, 0.1),))

    def run(part: Turn) -> Turn:
        return answered(part.question, depth) if part.question == "Компакт" else refused(part.question)

    joined = with_parts(turn(question), replace(refused(question), reply=offered), run)
    assert joined.draft is not None
    assert (joined.outcome, joined.draft.missing) == ("partially_answered", missing)
    assert [article.passage for article in joined.reply.articles] == [MODELS]
    assert (joined.reply.notice or "").count("Семья") == len(missing)


def test_an_answer_that_compares_both_sides_is_not_replaced_by_one_of_them() -> None:
    depth = passage("Для ниши подойдёт «Компакт».", "depth", heading="Глубина")
    question = "Что лучше: «Компакт» или «Сушка»?"
    compared = answered(question, MODELS)
    assert with_parts(turn(question), compared, lambda part: answered(part.question, depth)) == compared


ECO = passage("«Эко» нагревает воду меньше.", "programmes", heading="Почему «Эко» стирает так долго")
PICKUP = passage("Забрать заказ можно бесплатно.", "pickup", heading="Что дешевле")
BRING = passage("Паспорт, если заказ в рассрочку.", "collecting", heading="Что взять с собой")


def weak(question: str, best: Passage, *more: Passage) -> Turn:
    offered = Reply("Посмотрите статьи.", articles=tuple(Article(one, one.text, 0.1) for one in (best, *more)))
    return replace(turn(question, best), outcome="low_confidence", reply=offered)


def test_a_part_whose_section_is_quoted_for_another_is_named_as_unsure() -> None:
    question = "Сколько длится «Эко», и почему она дольше обычной"

    def run(part: Turn) -> Turn:
        return answered(part.question, ECO) if "почему" in part.question else weak(part.question, ECO, MODELS)

    joined = with_parts(turn(question), answered(question, ECO), run)
    assert (joined.outcome, joined.draft and joined.draft.missing) == ("partially_answered", ())
    assert joined.reply.notice is not None
    assert joined.reply.notice.startswith("Не уверен, что ответил на это: Сколько длится «Эко».")
    assert [article.passage for article in joined.reply.articles] == [MODELS]


def test_the_answer_to_the_message_stays_beside_that_of_a_part() -> None:
    question = "Самовывоз бесплатный? и паспорт нужен?"

    def run(part: Turn) -> Turn:
        return answered(part.question, PICKUP) if "бесплатный" in part.question else weak(part.question, BRING)

    joined = with_parts(turn(question), answered(question, BRING), run)
    assert joined.outcome == "answered"
    assert all(one.text in joined.reply.text for one in (PICKUP, BRING))


def test_articles_of_a_part_come_with_its_text() -> None:
    question = "Самовывоз бесплатный? и паспорт нужен?"
    whole = replace(refused(question), reply=Reply("Не нашёл ответа."))
    joined = with_parts(turn(question), whole, lambda part: weak(part.question, BRING))
    assert (joined.outcome, joined.reply.text) == ("refused", "Посмотрите статьи.")
    assert [article.passage for article in joined.reply.articles] == [BRING]
