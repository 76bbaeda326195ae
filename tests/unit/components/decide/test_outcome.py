"""The outcome table: exactly one outcome for every turn, its reason, and words in both languages."""

from dataclasses import replace
from typing import get_args

import pytest
from haystack import Pipeline
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.decide.answer_guard import AnswerRules
from components.decide.outcome import OutcomeComposer
from components.language.texts import LOCALES
from components.turn import (
    Answerability,
    Citation,
    Claim,
    Draft,
    Exchange,
    FactualityStatus,
    Intent,
    Outcome,
    Reason,
    Reply,
    Risk,
    Route,
    Turn,
    Verdict,
)
from tenants import policy
from tenants.policy import Policy
from tests.turns import passage, turn

SOURCE = passage("Гарантия два года.", heading="Условия › Гарантия")
OTHER = passage("Возврат за две недели.", "c2", heading="Условия › Возврат")
GOOD = Draft(
    "Гарантия два года. [1]",
    (Claim("Гарантия два года.", (1,), "supported"),),
    (Citation(1, SOURCE, SOURCE.text, (0, len(SOURCE.text))),),
    factuality=100.0,
    factuality_status="checked",
    answerability="fully",
)
SHOWN = {"answered", "partially_answered"}
WITH_ARTICLES = {"low_confidence", "cannot_answer", "clarify", "refused"}


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> dict[str, Policy]:
    """The tenant's policy; a test may put another one in."""
    held = {"now": Policy(approved_offers={"cancellation": "скидка 10%"}, handoff_channel="chat")}
    monkeypatch.setattr(policy, "current", lambda: held["now"])
    return held


def composed(given_turn: Turn) -> Turn:
    return OutcomeComposer(clarify_from=0.35, clarify_words=2, options=3).run(given_turn)["turn"]


def test_a_truncated_list_is_announced() -> None:
    whole, cut = (composed(drafted(truncated=flag)) for flag in (False, True))
    assert whole.outcome == cut.outcome
    assert whole.reply.notice is None
    assert cut.reply.notice == "Показана часть раздела, остальное — в источнике."
    titled = replace(GOOD.citations[0], passage=replace(SOURCE, title="Гарантия"))
    assert composed(drafted(truncated=True, citations=(titled,))).reply.notice == (
        "Показана часть раздела, остальное — в статье «Гарантия»."
    )


def drafted(route: Route = "auto", **changes: object) -> Turn:
    draft = replace(GOOD, **changes)  # type: ignore[arg-type]
    return replace(turn("гарантия", SOURCE), draft=draft, best=draft, verdict=Verdict(route))


@pytest.mark.parametrize(
    ("given_turn", "outcome", "reason"),
    [
        (drafted(), "answered", None),
        (drafted(missing=("E21",)), "partially_answered", None),
        (drafted("human"), "low_confidence", None),
        (drafted("human", missing=("E21",)), "low_confidence", None),
        (drafted(answerability="cannot"), "cannot_answer", "insufficient_context"),
        (drafted("human", answerability="cannot"), "cannot_answer", "insufficient_context"),
        (drafted("human", claims=(), text=""), "refused", "unverified_answer"),
        (drafted("human", factuality_status="failed"), "human_followup", "budget_exhausted"),
        (turn("гарантия на люк машины"), "refused", "no_relevant_context"),
        (turn("гарантия на люк машины", SOURCE, relevance=0.2), "refused", "no_relevant_context"),
        (turn("гарантия на люк машины", SOURCE, relevance=0.4), "low_confidence", None),
        (replace(turn("гарантия"), degraded=("grader",)), "failed", "pipeline_error"),
    ],
)
def test_each_situation_has_its_outcome(given_turn: Turn, outcome: Outcome, reason: Reason | None) -> None:
    after = composed(given_turn)
    assert (after.outcome, after.reason) == (outcome, reason)
    assert after.reply.text
    assert (GOOD.text in after.reply.text) == (outcome in SHOWN)
    offered = outcome in WITH_ARTICLES and bool(given_turn.evidence.passages)
    assert [one.passage for one in after.reply.articles] == ([SOURCE] if offered else [])
    assert ("Ближе всего к вопросу эта статья." in after.reply.text) == offered


def test_a_tenant_may_send_weak_answers_to_a_person(rules: dict[str, Policy]) -> None:
    rules["now"] = Policy(low_confidence_to_human=True, handoff_channel="desk")
    after = composed(drafted("human"))
    assert (after.outcome, after.reason) == ("human_followup", "low_confidence")
    assert GOOD.text not in after.reply.text
    assert after.reply.handoff == {"channel": "desk", "offer": ""}


def test_a_tenant_may_ask_for_more_confidence(rules: dict[str, Policy]) -> None:
    rules["now"] = Policy(answer_threshold=0.6)
    assert composed(drafted(confidence=0.6)).outcome == "answered"
    assert composed(drafted(confidence=0.59)).outcome == "low_confidence"


def test_notices_accompany_shown_answers_only() -> None:
    assert composed(drafted()).reply.notice is None
    partial = composed(drafted(missing=("E21", "E22"))).reply.notice
    assert partial is not None
    assert "E21, E22" in partial


def test_a_code_that_the_evidence_holds_is_only_not_mentioned() -> None:
    partial = drafted(missing=("E21", "E22"))
    partial = replace(
        partial,
        query=replace(partial.query, codes=("E21", "E22")),
        evidence=replace(partial.evidence, uncovered=("E22",)),
    )
    assert composed(partial).reply.notice == (
        "В базе знаний нет сведений о следующем: E22. В показанном тексте не упомянуто: E21."
    )


def test_only_answers_keep_their_suggestions() -> None:
    reply = Reply(suggestions=("Подробнее: Возврат",))
    assert composed(replace(drafted(), reply=reply)).reply.suggestions == reply.suggestions
    assert composed(replace(turn("а"), reply=reply)).reply.suggestions == ()


def near(question: str, relevance: float) -> Turn:
    return turn(question, SOURCE, OTHER, relevance=relevance)


def test_a_short_nearly_answered_question_is_clarified_with_topics() -> None:
    after = composed(near("условия", 0.4))
    assert (after.outcome, after.reason) == ("clarify", None)
    assert after.reply.clarification == ("Гарантия", "Возврат")
    assert [one.snippet for one in after.reply.articles] == ["Гарантия два года.", "Возврат за две недели."]


@pytest.mark.parametrize(
    "given_turn",
    [
        near("условия", 0.3),
        near("условия гарантии машины", 0.4),
        turn("условия", SOURCE, relevance=0.4),
        replace(near("условия", 0.4), history=(Exchange("сроки", "clarify"), Exchange("сроки гарантии", "answered"))),
    ],
)
def test_any_other_refusal_offers_articles(given_turn: Turn) -> None:
    assert composed(given_turn).outcome == "low_confidence"


@pytest.mark.parametrize("locale", LOCALES)
def test_an_unknown_code_is_named_in_the_refusal(locale: str) -> None:
    question_turn = replace(turn("ошибка E401"), locale=locale)
    after = composed(replace(question_turn, evidence=replace(question_turn.evidence, uncovered=("E401", "ошибк"))))
    assert (after.outcome, after.reason) == ("refused", "no_relevant_context")
    assert "E401" in after.reply.text


def test_articles_about_other_codes_are_not_offered() -> None:
    question_turn = turn("ошибка E401", passage("Код E20: вода не сливается."), relevance=0.5)
    after = composed(
        replace(question_turn, evidence=replace(question_turn.evidence, uncovered=("E401",), adequacy=0.0))
    )
    assert (after.outcome, after.reply.articles) == ("refused", ())


def test_only_approved_offers_are_made() -> None:
    stakes = replace(turn("отмените"), outcome="high_stakes", reason="high_risk", intent="high_stakes")
    offered = composed(replace(stakes, risk="cancellation")).reply.handoff
    assert offered == {"channel": "chat", "offer": "скидка 10%"}
    assert composed(replace(stakes, risk="complaint")).reply.handoff == {"channel": "chat", "offer": ""}


FIXED: list[tuple[Outcome, Reason, Intent, Risk]] = [
    ("nonsense", "no_intent", "nonsense", "none"),
    ("irrelevant", "off_topic", "irrelevant", "none"),
    ("irrelevant", "off_topic", "chitchat", "none"),
    ("out_of_scope", "out_of_scope", "out_of_scope", "none"),
    ("human_followup", "user_request", "wants_human", "none"),
    ("blocked", "blocked_by_guardrails", "answerable", "none"),
    *(("high_stakes", "high_risk", "high_stakes", risk) for risk in get_args(Risk)),
]


@pytest.mark.parametrize(("outcome", "reason", "intent", "risk"), FIXED)
def test_an_earlier_outcome_is_kept_and_worded_in_both_languages(
    outcome: Outcome, reason: Reason, intent: Intent, risk: Risk
) -> None:
    decided_turn = replace(turn("?"), outcome=outcome, reason=reason, intent=intent, risk=risk)
    by_locale = {locale: composed(replace(decided_turn, locale=locale)) for locale in LOCALES}
    assert {(after.outcome, after.reason) for after in by_locale.values()} == {(outcome, reason)}
    texts = {after.reply.text for after in by_locale.values()}
    assert len(texts) == len(LOCALES)
    assert all(texts)


turns = st.builds(
    lambda decided_turn, draft, route, locale, degraded, intent: replace(
        decided_turn, draft=draft, best=draft, verdict=Verdict(route), locale=locale, degraded=degraded, intent=intent
    ),
    st.sampled_from([near("условия", 0.4), near("условия", 0.9), near("E401", 0.0), turn("?")]),
    st.one_of(
        st.none(),
        st.builds(
            replace,
            st.just(GOOD),
            claims=st.sampled_from([(), GOOD.claims]),
            factuality_status=st.sampled_from(get_args(FactualityStatus)),
            answerability=st.sampled_from(get_args(Answerability)),
            missing=st.sampled_from([(), ("E21",)]),
        ),
    ),
    st.sampled_from(get_args(Route)),
    st.sampled_from([*LOCALES, "de"]),
    st.sampled_from([(), ("grader",), ("verifier",)]),
    st.sampled_from(get_args(Intent)),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns, st.booleans())
def test_every_turn_gets_one_outcome_and_a_text(rules: dict[str, Policy], decided_turn: Turn, to_human: bool) -> None:
    rules["now"] = Policy(low_confidence_to_human=to_human)
    after = composed(decided_turn)
    assert after.outcome in get_args(Outcome)
    assert after.reason is None or after.reason in get_args(Reason)
    assert after.reply.text
    if after.outcome in SHOWN:
        assert decided_turn.draft is not None
        assert decided_turn.draft.claims
        assert decided_turn.draft.factuality_status != "failed"
    if after.outcome in {"answered", "partially_answered"}:
        assert decided_turn.verdict.route == "auto"
    assert (after.reply.handoff is not None) == (after.outcome in {"human_followup", "high_stakes"})
    assert (after.reply.clarification is not None) == (after.outcome == "clarify")
    assert after.outcome in WITH_ARTICLES or not after.reply.articles


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("outcome", OutcomeComposer(0.1, 0.2, 0.4, 3, 2))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    assert again.to_dict()["components"]["outcome"]["init_parameters"] == {
        "articles_from": 0.1,
        "weak_from": 0.2,
        "clarify_from": 0.4,
        "clarify_words": 3,
        "options": 2,
        "guard": AnswerRules().to_dict(),
    }
