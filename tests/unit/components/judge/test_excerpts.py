"""A model that checks a claim reads the sentences that decide, those that restrict them, and nothing far from both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.answer.packing import formatted
from components.judge.excerpts import sentences_to_check
from tests.generated import texts
from tests.turns import passage

GAP = "[… a part of the section is left out]"
FILLER = [f"Room {n} is cleaned by the night shift, and its towels are washed downstairs." for n in range(20, 28)]


def shown(text: str, *claims: str) -> str:
    of = passage(text)
    return formatted(1, of, "en", sentences_to_check(of, claims))


def among_filler(*sentences: str) -> str:
    return " ".join([*FILLER[:4], *sentences, *FILLER[4:]])


def test_the_deciding_sentence_is_shown_with_those_beside_it() -> None:
    text = among_filler("A guest may bring a dog.", "Only small ones, though.")
    said = shown(text, "You can bring your dog.")
    assert "Only small ones" in said
    assert "Room 20" not in said
    assert said.startswith("[1] source: \n[… the section begins earlier]\n")
    assert said.endswith("\n[… the section continues]")


def test_a_sentence_about_the_same_matter_is_shown_wherever_it_stands() -> None:
    text = "The pass is valid for 45 days. " + " ".join(FILLER) + " In winter the pass is valid for 30 days."
    said = shown(text, "The pass is valid for 45 days.")
    assert "valid for 30 days" in said
    assert said.count(GAP) == 1
    assert "Room 24" not in said


@pytest.mark.parametrize(
    ("claim", "decides", "restricts"),
    [
        ("A guest may bring a dog.", "A guest may bring a dog.", "In August this rule does not apply."),
        ("You can cancel a booking.", "You can cancel a booking.", "Once it is paid, this is no longer possible."),
        ("Вещь можно вернуть.", "Вещь можно вернуть.", "Исключение: бельё и косметика."),
        ("Тариф стоит 490 рублей в месяц.", "Тариф стоит 490 рублей в месяц.", "С 1 марта цена повышена до 690."),
        (
            "Оплата картой принимается в магазине и при доставке.",
            "Оплата картой принимается в магазине.",
            "Оплатить картой курьеру нельзя.",
        ),
    ],
)
def test_a_restriction_is_shown_wherever_it_stands(claim: str, decides: str, restricts: str) -> None:
    said = shown(" ".join([decides, *FILLER, restricts]), claim)
    assert restricts in said
    assert "Room 24" not in said


def test_footnotes_of_a_table_are_shown() -> None:
    rows = "\n".join(f"| Plan {n} | {n}00 roubles* |" for n in range(1, 20))
    notes = "* For new customers.\n\n** Old ones pay more."
    said = shown(f"| plan | price |\n|---|---|\n{rows}\n\n{notes}\n\n{' '.join(FILLER)}", "Plan 3 costs 300 roubles.")
    assert "For new customers" in said
    assert "Old ones pay more" in said
    assert "Room 24" not in said


def test_a_claim_about_everything_is_checked_against_all() -> None:
    text = among_filler("Since June we deliver to Leeds as well.")
    assert shown(f"Delivery is to London. {text}", "Delivery is to London only.") == shown(
        f"Delivery is to London. {text}", "Zebras."
    )


def test_what_a_claim_joins_is_shown_from_all_its_places() -> None:
    text = "The fee is 300 roubles. " + " ".join(FILLER) + " Ask Marina at the reception."
    said = shown(text, "The fee is 300 roubles, and Marina takes it.")
    assert "300 roubles" in said
    assert "Marina" in said


def test_headings_lead_ins_and_first_rows_of_tables_stay() -> None:
    items = "\n".join(f"{n}. {line}" for n, line in enumerate(FILLER, 1))
    plans = f"# Basic plan\n\nOn weekdays:\n{items}\n9. Storage grows to 10 GB.\n\n{' '.join(FILLER)}"
    said = shown(plans, "Storage grows to 10 GB.")
    assert "# Basic plan" in said
    assert "On weekdays:" in said
    assert "Room 23" not in said
    rows = "\n".join(f"| Room {n} | {n}00 roubles, breakfast at eight |" for n in range(10, 30))
    said = shown(f"| place | in winter |\n|---|---|\n{rows}", "Room 25 costs 2500 roubles.")
    assert "| place | in winter |\n|---|---|" in said
    assert "Room 12" not in said


@pytest.mark.parametrize("claim", ["Можно приехать с собакой.", "Pets welcome, no surcharge."])
def test_a_claim_in_other_words_is_checked_against_all(claim: str) -> None:
    text = among_filler("A guest may bring a dog.")
    assert shown(text, claim) == formatted(1, passage(text), "en")


def test_a_short_passage_is_shown_whole() -> None:
    text = " ".join(FILLER[:5])
    assert shown(text, "Room 20 is cleaned by the night shift.") == formatted(1, passage(text), "en")


@given(st.lists(texts, max_size=12), st.lists(texts, max_size=3))
def test_any_text_keeps_the_order_of_its_sentences(parts: list[str], claims: list[str]) -> None:
    of = passage("\n".join(parts))
    places = sentences_to_check(of, claims)
    assert places <= set(range(len(of.sentences)))
    assert formatted(1, of, "ru", range(len(of.sentences))) == formatted(1, of, "ru")
    assert formatted(1, of, "ru", places).startswith("[1] source:")
