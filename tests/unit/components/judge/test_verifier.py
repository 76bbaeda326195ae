"""Claim checking and repair: what stays is supported, cited, and reads as it did."""

import re
from dataclasses import replace

import pytest
from components.judge.local import LocalJudge
from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.judge.verifier import FactVerifier, with_marks, without
from components.turn import Citation, Claim, Draft, Turn
from tests.generated import texts
from tests.turns import BrokenJudge, FixedJudge, passage, turn

SOURCE = passage("Гарантия два года. Возврат 14 дней.")


def drafted(*claim_texts: str, layout: str = "{} [{}] ", cited: int = 1) -> Draft:
    """A draft whose claim number n cites passage n, or `cited` of them in turn."""
    citations = tuple(Citation(index, SOURCE, SOURCE.text, (0, len(SOURCE.text))) for index in range(1, cited + 1))
    claims = tuple(Claim(text, (place % cited + 1,)) for place, text in enumerate(claim_texts))
    text = "".join(layout.format(claim.text, claim.citations[0]) for claim in claims)
    return Draft(text.strip(), claims, citations)


def verified(draft: Draft, *unsupported: str, most: int = 10) -> Draft:
    given_turn = replace(turn("Вопрос?", SOURCE), draft=draft)
    after = FactVerifier(FixedJudge(unsupported=unsupported), most).run(given_turn)["turn"]
    assert after.draft is not None
    assert after.degraded == ()
    return after.draft


def test_supported_claims_stay_as_they_are() -> None:
    draft = drafted("Одно.", "Другое.")
    after = verified(draft)
    assert (after.text, after.factuality, after.factuality_status) == (draft.text, 100.0, "checked")
    assert [claim.status for claim in after.claims] == ["supported", "supported"]
    assert all(claim.quote for claim in after.claims)


def test_an_unsupported_claim_is_removed_with_its_mark_and_citation() -> None:
    after = verified(drafted("Одно.", "Выдумка.", "Другое.", cited=3), "Выдумка.")
    assert after.text == "Одно. [1] Другое. [3]"
    assert [citation.index for citation in after.citations] == [1, 3]
    assert after.factuality == pytest.approx(66.7)


def test_a_removed_step_takes_its_line_along() -> None:
    draft = drafted("Выключите.", "Танцуйте.", "Включите.", layout="1. {} [{}]\n")
    assert verified(draft, "Танцуйте.").text == "1. Выключите. [1]\n1. Включите. [1]"


def test_removing_a_claim_leaves_a_longer_claim_that_contains_it() -> None:
    after = verified(drafted("Это живая вода.", "вода.", cited=2), "вода.")
    assert after.text == "Это живая вода. [1]"


def test_the_same_words_twice_are_two_claims() -> None:
    draft = replace(drafted("Да.", "Да."), claims=(Claim("Да.", (1,)), Claim("Да.", (7,))), text="Да. [1] Да. [7]")
    after = verified(draft)
    assert after.text == "Да. [1]"
    assert len(after.claims) == 1


@pytest.mark.parametrize("citations", [(), (9,), (0, 8)])
def test_a_claim_without_a_citation_that_resolves_is_dropped(citations: tuple[int, ...]) -> None:
    draft = replace(drafted("Одно."), claims=(Claim("Одно.", citations),))
    after = verified(draft)
    assert (after.text.replace("[1]", "").strip(), after.claims, after.factuality) == ("", (), 0.0)


def test_claims_beyond_the_limit_are_dropped_unchecked() -> None:
    after = verified(drafted("Один.", "Два.", "Три."), most=2)
    assert after.text == "Один. [1] Два. [1]"
    assert after.factuality == pytest.approx(66.7)


def test_a_draft_without_claims_is_reported() -> None:
    assert verified(Draft("", (), ())).factuality_status == "no_claims"


def test_a_failing_judge_degrades_the_turn() -> None:
    after = FactVerifier(BrokenJudge("check_all")).run(replace(turn("?", SOURCE), draft=drafted("Одно.")))["turn"]
    assert after.draft is not None
    assert (after.draft.factuality, after.draft.factuality_status) == (0.0, "failed")
    assert after.degraded == ("verifier",)


def test_a_turn_without_a_draft_is_unchanged() -> None:
    given_turn = Turn("t", "?")
    assert FactVerifier(BrokenJudge("check_all")).run(given_turn) == {"turn": given_turn}


_said = st.lists(
    st.one_of(st.sampled_from(["Да.", "Да. Да.", "вода", "(a|b) [2]", "1. 5", "- x", "$^.*"]), texts)
    .map(lambda text: " ".join(text.replace("\x00", "").split()))
    .filter(bool),
    min_size=1,
    max_size=6,
)
_layouts = st.sampled_from(["{} [{}] ", "{} [{}]\n", "- {} [{}]\n", "1. {} [{}]\n", "{}[{}] "])


@given(_said, _layouts, st.data())
def test_dropping_claims_leaves_the_others_and_their_marks(
    claim_texts: list[str], layout: str, data: st.DataObject
) -> None:
    draft = drafted(*claim_texts, layout=layout, cited=len(claim_texts))
    dropped = data.draw(st.sets(st.integers(0, len(claim_texts) - 1)))
    left = [claim for place, claim in enumerate(draft.claims) if place not in dropped]
    expected = "".join(layout.format(claim.text, claim.citations[0]) for claim in left).strip()
    assert _words(without(dropped, draft)) == _words(expected)


def _words(text: str) -> list[str]:
    return re.sub(r"(?m)^(?:-|1\.) ", "", text).split()


@given(_said, st.data())
def test_only_supported_claims_are_shown(claim_texts: list[str], data: st.DataObject) -> None:
    lies = data.draw(st.lists(st.sampled_from(claim_texts), max_size=3))
    after = verified(drafted(*claim_texts, cited=len(claim_texts)), *lies)
    assert all(claim.status == "supported" for claim in after.claims)
    used = {index for claim in after.claims for index in claim.citations}
    assert {citation.index for citation in after.citations} == used
    assert after.factuality == pytest.approx(100 * len(after.claims) / len(claim_texts), abs=0.1)


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("verify", FactVerifier(LocalJudge(), max_claims=7))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    assert again.to_dict()["components"]["verify"]["init_parameters"]["max_claims"] == 7


def test_a_mark_outlives_the_claim_behind_which_it_stood() -> None:
    said = Claim("Билет вернут за час.", (1,)), Claim("Деньги придут на карту.", (1,))
    citation = Citation(1, SOURCE, SOURCE.text, (0, len(SOURCE.text)))
    draft = Draft("Билет вернут за час. Деньги придут на карту. [1]", said, (citation,))
    assert verified(draft, said[1].text).text == "Билет вернут за час. [1]"
    code = Claim("```sh\nrun\n```", (2,))
    assert with_marks("Выполните:\n\n```sh\nrun\n```", (code,)) == "Выполните:\n\n```sh\nrun\n```\n[2]"
