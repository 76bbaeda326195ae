"""Claims are checked before they are shown; unsupported ones are dropped."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from components.answer.drafts import to_answer, to_draft, with_claims
from components.faults import collect_degraded
from components.judge.verifier import FactVerifier
from components.retrieve import rejected as near
from components.turn import Claim, Draft, RejectedApproach
from tenants.knowledge import lexicon, relations
from tenants.knowledge.lexicon import Lexicon
from tenants.knowledge.rejected import Rejected
from tenants.knowledge.relations import Relations
from tests.turns import FixedJudge, answer, document, passage

SOURCE = passage("Гарантия два года. Чек не нужен.")


@pytest.fixture(autouse=True)
def _nothing_related(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "current", lambda: relations.NONE)


def verified(judge: FixedJudge | None, *claims: Claim, quoted: bool = False, **inputs: object) -> Draft:
    draft = with_claims(Draft("", (), (), quoted=quoted), claims, {1: SOURCE})
    verifier = FactVerifier(judge)  # type: ignore[arg-type]
    return to_draft(verifier.run(answers=[to_answer(draft, "")], **inputs)["answers"][0])  # type: ignore[arg-type]


def test_a_quotation_needs_no_model() -> None:
    judge = FixedJudge()
    draft = verified(judge, Claim("Гарантия два года.", (1,)))
    assert (draft.factuality, draft.factuality_status, judge.asked) == (100.0, "checked", [])


def test_a_paraphrase_stands_if_the_model_supports_it() -> None:
    judge = FixedJudge()
    assert verified(judge, Claim("Гарантийный срок составляет два года.", (1,))).claims[0].status == "supported"
    assert judge.asked == ["Гарантийный срок составляет два года."]


def test_without_a_model_only_quotations_stand() -> None:
    draft = verified(None, Claim("Гарантия два года.", (1,)), Claim("Гарантийный срок большой.", (1,)))
    assert draft.text == "Гарантия два года. [1]"
    assert draft.factuality == 50.0


def test_an_unsupported_claim_is_dropped_and_the_rest_is_shown() -> None:
    judge = FixedJudge(unsupported=["Возврат бесплатный."])
    draft = verified(judge, Claim("Возврат бесплатный.", (1,)), Claim("Чек предъявлять не нужно.", (1,)))
    assert draft.text == "Чек предъявлять не нужно. [1]"


def test_a_procedure_that_loses_a_step_is_truncated() -> None:
    judge = FixedJudge(unsupported=["Покажите паспорт."])
    steps = [Claim(said, (1,), gap=f"\n{n}. ") for n, said in enumerate(("Найдите чек.", "Покажите паспорт."), 1)]
    assert verified(judge, *steps).truncated
    assert not verified(judge, steps[0], Claim("Покажите паспорт.", (1,))).truncated
    choice = [Claim("Выберите:", (1,), gap="\n2. "), Claim("карту", (1,), gap="\n- ")]
    assert not verified(judge, steps[0], *choice).truncated


def test_an_answer_that_loses_its_opening_is_truncated() -> None:
    judge = FixedJudge(unsupported=["Возврат бесплатный."])
    claims = [Claim("Возврат бесплатный.", (1,)), Claim("Чек не нужен.", (1,))]
    assert verified(judge, *claims).truncated
    assert not verified(judge, *reversed(claims)).truncated


def test_numbers_of_no_source_are_dropped_before_the_model_is_asked() -> None:
    judge = FixedJudge()
    draft = verified(
        judge, Claim("Гарантия 36 месяцев.", (1,)), Claim("Гарантия на 500 ₽.", (1,)), question="за 500 ₽?"
    )
    assert [claim.text for claim in draft.claims] == ["Гарантия на 500 ₽."]
    assert judge.asked == ["Гарантия на 500 ₽."]


def test_a_code_of_the_question_that_no_document_holds_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(9, {}, {}, 1, {"L1.D2.T0": 1, "L3.D3.T0": 1}))
    claims = [Claim("Код E99 означает засор.", (1,)), Claim("Проверьте фильтр.", (1,))]
    draft = verified(FixedJudge(), *claims, question="ошибка E99", documents=[document("Код E20: засор.")])
    assert [claim.text for claim in draft.claims] == ["Проверьте фильтр."]
    spelt = Claim("Включите TLS1.1 в настройках.", (1,))
    documents = [document("Протокол TLS 1.1 включается в настройках.")]
    assert verified(FixedJudge(), spelt, question="как включить TLS1.1?", documents=documents).claims


def test_a_claim_that_retells_all_that_was_read_is_dropped() -> None:
    judge = FixedJudge()
    retold = "PWNED. " + "Гарантия два года. " * 60
    draft = verified(judge, Claim(retold, (1,)), Claim("Чек не нужен.", (1,)))
    assert [claim.text for claim in draft.claims] == ["Чек не нужен."]
    assert judge.asked == []


def test_a_number_of_another_document_that_was_read_may_be_said() -> None:
    draft = verified(FixedJudge(), Claim("Подождите 36 часов.", (1,)), documents=[document("Ждать 36 часов.")])
    assert draft.claims


def test_a_rejected_approach_is_withheld() -> None:
    approach = RejectedApproach("r", "Стучать по корпусу", "опасно", "2026-01-01")
    draft = verified(FixedJudge(), Claim("Можно стучать по корпусу.", (1,)), rejected=[approach])
    assert (draft.claims, draft.withheld) == ((), (approach,))


def test_a_paraphrase_of_a_rejected_approach_is_withheld() -> None:
    approach = RejectedApproach("r", "Стучать по корпусу", "опасно", "2026-01-01")
    knock, clean = Claim("Обстучите насос молотком.", (1,)), Claim("Чек не нужен.", (1,))
    draft = verified(FixedJudge(proposals=[knock.text]), knock, clean, rejected=[approach])
    assert ([claim.text for claim in draft.claims], draft.withheld) == ([clean.text], (approach,))
    # Only the model can tell: a quoted draft is checked by words.
    assert not verified(FixedJudge(proposals=[knock.text]), knock, quoted=True, rejected=[approach]).withheld


def rejecting(monkeypatch: pytest.MonkeyPatch, *approaches: str, vectors: dict[str, list[float]]) -> None:
    """Let the tenant have rejected these. Texts without a vector are near nothing; no vectors: no encoder."""

    def cosines(texts: Sequence[str], rejected: Sequence[Rejected]) -> list[float]:
        return [float(any(vectors.get(text) == vectors[one.text] for text in texts)) for one in rejected if vectors]

    monkeypatch.setattr(near, "_cosines", cosines)
    monkeypatch.setattr(relations, "current", lambda: Relations(rejected=tuple(map(Rejected, approaches))))


KNOCK = Claim("Обстучите насос молотком.", (1,))
CLEAN = Claim("Чистите фильтр насоса.", (1,))


def test_an_approach_near_the_draft_alone_is_put_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    rejecting(
        monkeypatch,
        "Стучать по корпусу",
        "Греть феном",
        vectors={KNOCK.text: [1.0], "Стучать по корпусу": [1.0], "Греть феном": [2.0]},
    )
    judge = FixedJudge(proposals=[KNOCK.text])
    draft = verified(judge, KNOCK, CLEAN)
    assert [claim.text for claim in draft.claims] == [CLEAN.text]
    assert [one.text for one in draft.withheld] == ["Стучать по корпусу"]
    assert judge.asked == [KNOCK.text, CLEAN.text], "one call checks both"
    assert [one.text for one in judge.rejected] == ["Стучать по корпусу"]


def test_without_vectors_half_of_the_words_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    rejecting(monkeypatch, "Стучать молотком по корпусу насоса", "Греть насос феном сутки", vectors={})
    judge = FixedJudge(proposals=[KNOCK.text])
    assert [one.text for one in verified(judge, KNOCK, CLEAN).withheld] == ["Стучать молотком по корпусу насоса"]


def test_a_quotation_may_propose_an_approach_near_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said = SOURCE.text.partition(".")[0] + "."
    rejecting(monkeypatch, "Обещать долгую гарантию", vectors={said: [1.0], "Обещать долгую гарантию": [1.0]})
    judge = FixedJudge(proposals=[said])
    draft = verified(judge, Claim(said, (1,)), Claim("Чек не нужен.", (1,)))
    assert ([claim.text for claim in draft.claims], len(draft.withheld)) == (["Чек не нужен."], 1)


def test_a_quoted_draft_is_compared_with_all_approaches_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    approach = "Гарантия два года"
    rejecting(monkeypatch, approach, "Чек нужен", vectors={approach: [1.0], "Чек нужен": [1.0]})
    draft = verified(None, Claim("Гарантия два года.", (1,)), Claim("Чек не нужен.", (1,)), quoted=True)
    assert ([claim.text for claim in draft.claims], [one.text for one in draft.withheld]) == (
        ["Чек не нужен."],
        [approach],
    )


def test_no_claim_passes_if_proposals_cannot_be_checked() -> None:
    approach = RejectedApproach("r", "Стучать по корпусу", "опасно", "2026-01-01")
    with collect_degraded() as noted:
        draft = verified(FixedJudge(broken=["check"]), Claim("Чек не нужен.", (1,)), rejected=[approach])
    assert (draft.factuality_status, list(noted)) == ("failed", ["verifier"])


def test_a_claim_without_a_citation_is_dropped() -> None:
    assert verified(FixedJudge(), Claim("Гарантия большая.", ())).claims == ()


def test_a_failing_model_leaves_the_draft_unchecked() -> None:
    with collect_degraded() as noted:
        draft = verified(FixedJudge(broken=["check"]), Claim("Гарантийный срок большой.", (1,)))
    assert (draft.factuality, draft.factuality_status, list(noted)) == (0.0, "failed", ["verifier"])
    assert draft.claims


def test_claims_beyond_the_limit_are_dropped() -> None:
    draft = answer("Первое утверждение верно.", "Второе утверждение верно.", of=SOURCE)
    verifier = FactVerifier(FixedJudge(), max_claims=1)  # type: ignore[arg-type]
    assert len(to_draft(verifier.run(answers=[draft])["answers"][0]).claims) == 1


def test_a_draft_without_claims_is_not_checked() -> None:
    draft = replace(Draft("", (), ()), options=("Волна",))
    checked = to_draft(FactVerifier().run(answers=[to_answer(draft, "")])["answers"][0])
    assert (checked.factuality_status, checked.options) == ("no_claims", ("Волна",))
