"""Drafts, and replies with marks that are split into the sections under them."""

import pytest

from components.answer.drafts import rendered, with_claims
from components.answer.utterances import utterances
from components.turn import Claim, Draft
from tests.turns import passage

SOURCE = passage("Чтобы закрыть шкафчик:\n1. Приложите браслет.\n2. Дождитесь огонька. Ключ не нужен.")


def test_text_is_made_of_the_claims_with_their_marks() -> None:
    claims = [
        Claim("Сделайте так:", (1,)),
        Claim("Приложите браслет.", (1,), gap="\n1. "),
        Claim("Ключ не нужен.", (1, 2)),
    ]
    assert rendered(claims) == "Сделайте так:\n1. Приложите браслет. [1] Ключ не нужен. [1][2]"


def test_a_quotation_has_one_mark_at_its_end() -> None:
    claims = [Claim("Приложите браслет.", (1,)), Claim("Дождитесь огонька.", (1,))]
    assert rendered(claims, grouped=True) == "Приложите браслет. Дождитесь огонька. [1]"


def test_a_lead_in_over_nothing_is_dropped() -> None:
    draft = with_claims(Draft("", (), ()), [Claim("Ключ не нужен.", (1,)), Claim("Ещё:", ())], {1: SOURCE})
    assert draft.text == "Ключ не нужен. [1]"


def test_an_excerpt_holds_all_that_is_quoted() -> None:
    draft = with_claims(
        Draft("", (), ()), [Claim("Дождитесь огонька.", (1,)), Claim("Ключ не нужен.", (1,))], {1: SOURCE}
    )
    (citation,) = draft.citations
    assert citation.excerpt == "Дождитесь огонька. Ключ не нужен."
    assert SOURCE.text[slice(*citation.span)] == citation.excerpt


@pytest.mark.parametrize(
    ("claim", "excerpt"),
    [
        ("Браслет прикладывают к замку", "1. Приложите браслет."),
        ("No key is needed.", SOURCE.text),
        ("брас", SOURCE.text),
    ],
    ids=["retold", "another language", "part of a word"],
)
def test_a_claim_without_a_quotation_shows_the_nearest_sentence(claim: str, excerpt: str) -> None:
    (citation,) = with_claims(Draft("", (), ()), [Claim(claim, (1,))], {1: SOURCE}).citations
    assert (citation.excerpt, SOURCE.text[slice(*citation.span)]) == (excerpt, excerpt)


REPLY = """Вода не сливается. Насос молчит [1][2]. Проверьте фильтр [1], затем шланг [3].
Что делать:
1. Выключите машину. [2]
2. Откройте панель [2, 4].
- Без номера.

```bash
qemu-img convert -f raw
```
[5]
Готово через 1.5 часа [6] Затем включите [1]"""
CUT = [
    (("Вода не сливается.", "Насос молчит."), (1, 2), "", False),
    (("Проверьте фильтр, затем шланг.",), (1, 3), "", False),
    (("Что делать:",), (2,), "", True),
    (("Выключите машину.",), (2,), "1.", True),
    (("Откройте панель.",), (2, 4), "2.", True),
    (("Без номера.",), (), "-", True),
    (("```bash\nqemu-img convert -f raw\n```",), (5,), "", True),
    (("Готово через 1.5 часа",), (6,), "", True),
    (("Затем включите",), (1,), "", False),
]


def test_a_reply_is_cut_at_its_marks() -> None:
    assert [(one.sentences, one.marks, one.bullet, one.own_line) for one in utterances(REPLY)] == CUT


def test_a_dangling_introduction_or_empty_line_is_no_utterance() -> None:
    for text in ("", "Вот что:", "[1]", " [1] [2] "):
        assert list(utterances(text)) == []
