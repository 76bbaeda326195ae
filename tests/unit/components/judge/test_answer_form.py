"""The form that the kind of a question demands of its answer."""

import pytest
from components.judge.answer_form import NEUTRAL, form_share
from components.language.question_kind import QuestionKind


@pytest.mark.parametrize(
    ("kind", "fits", "lacks"),
    [
        ("howto", "1. Откройте меню.\n2. Нажмите **Создать**.", "Диск хранит данные."),
        ("quantity", "Копии хранятся 14 дней.", "Копии хранятся долго."),
        ("quantity", "Магазин открыт с 9:00.", "Магазин открыт."),
        ("where", "Откройте раздел **Счета** в меню.", "Счета приходят вовремя."),
        ("what_is", "Диск — это хранилище данных.", "Создайте хранилище."),
        ("why", "Ошибка возникает, если токен устарел. Проверьте его.", "Токен выдаёт сервис."),
        ("yesno", "Диск нельзя уменьшить, можно только увеличить.", "Диск хранит данные."),
        ("list", "- Ubuntu\n- Debian", "Ubuntu и Debian."),
    ],
)
def test_the_form_of_an_answer(kind: QuestionKind, fits: str, lacks: str) -> None:
    assert form_share(kind, fits) == 1.0
    assert form_share(kind, lacks) == 0.0


def test_other_kinds_require_no_form() -> None:
    assert form_share("which", "Что угодно.") == form_share("other", "") == NEUTRAL
