"""Messages with several questions: which are answered, and which are named as open."""

from dataclasses import replace

import pytest

from components.turn import Passage, Reply, Turn
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

    joined = with_parts(turn(question), answered(question, MODELS), run)
    assert joined.draft is not None
    assert joined.draft.missing == missing
    assert joined.outcome == ("partially_answered" if missing else "answered")
    assert joined.reply.suggestions == ("Гарантия",)
