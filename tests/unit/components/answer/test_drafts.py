"""Drafts: claims and their text, marks, lead-ins, and answers of other components."""

import pytest

from components.answer.drafts import rendered, with_claims
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
