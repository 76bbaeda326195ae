"""The outcome table: exactly one outcome for every turn, with a reason and texts in both languages."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from haystack import Document
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.answer.drafts import to_answer
from components.decide.main_topics import MainTopics
from components.decide.outcome import OutcomeComposer, partly_answered
from components.faults import collect_degraded, degraded
from components.language.texts import LOCALES, text
from components.turn import (
    Answerability,
    Draft,
    Exchange,
    FactualityStatus,
    Gate,
    Intent,
    Outcome,
    Reason,
    Risk,
    Route,
    Turn,
    Verdict,
)
from components.understand.intent import CALLBACK, PLEA, Reading
from tenants.accounts import policy, registry
from tenants.accounts.hours import WEEKDAYS, Hours
from tenants.accounts.policy import Policy
from tenants.core.context import Tenant, acting_as
from tenants.desk import operator_sessions
from tenants.knowledge import lexicon
from tenants.knowledge.lexicon import Lexicon
from tests.turns import document, draft, passage

SOURCE = document("Гарантия два года.", heading="Условия › Гарантия")
OTHER = document("Возврат за две недели.", "c2", heading="Условия › Возврат")
GOOD = replace(
    draft("Гарантия два года.", of=passage("Гарантия два года.", heading="Условия › Гарантия")),
    factuality_status="checked",
    answerability="fully",
    confidence=0.9,
)
SHOWN = {"answered", "partially_answered"}
WITH_ARTICLES = {"low_confidence", "cannot_answer", "clarify", "refused"}


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> dict[str, Policy]:
    """The tenant's policy; a test may replace it."""
    held = {"now": Policy(approved_offers={"cancellation": "скидка 10%"}, handoff_channel="chat")}
    monkeypatch.setattr(policy, "current", lambda: held["now"])
    monkeypatch.setattr(registry, "current", lambda: SimpleNamespace(tenant_id="shop", name="shop"))
    monkeypatch.setattr(lexicon, "current", lambda: Lexicon(9, {}, {}))
    return held


def near(relevance: float, *documents: Document) -> list[Document]:
    """Return accepted documents of this relevance."""
    found = documents or (SOURCE, OTHER)
    return [replace(one, meta={**one.meta, "relevance": relevance, "graded": True}) for one in found]


def composed(
    question: str = "гарантия на люк машины",
    documents: Sequence[Document] = (),
    drafted: Draft | None = None,
    route: Route = "auto",
    failed: Sequence[str] = (),
    **inputs: Any,  # noqa: ANN401
) -> Turn:
    adequacy = max((float(found.meta["relevance"]) for found in documents), default=0.0)
    with collect_degraded():
        for step in failed:
            degraded(step)
        outputs = OutcomeComposer(clarify_from=0.35, clarify_words=2).run(
            question=question,
            graded=list(documents),
            looked_up=list(documents),
            adequacy=adequacy,
            answers=[to_answer(drafted, question)] if drafted is not None else None,
            verdict=Verdict(route) if drafted is not None else None,
            **inputs,
        )
    return outputs["turn"]


@pytest.mark.parametrize(
    ("changes", "route", "outcome", "reason"),
    [
        ({}, "auto", "answered", None),
        ({"missing": ("возврат",), "answerability": "partially"}, "auto", "partially_answered", None),
        ({"answerability": "partially"}, "auto", "partially_answered", None),
        ({"answerability": "cannot"}, "human", "cannot_answer", "insufficient_context"),
        ({"claims": (), "text": ""}, "human", "refused", "unverified_answer"),
        ({"claims": (), "text": "", "factuality_status": "no_claims"}, "human", "refused", "llm_self_refusal"),
        ({"factuality_status": "failed"}, "human", "human_followup", "budget_exhausted"),
        ({"answerability": "unknown"}, "human", "low_confidence", None),
    ],
)
def test_each_draft_has_its_outcome(
    changes: dict[str, Any], route: Route, outcome: Outcome, reason: Reason | None
) -> None:
    after = composed(documents=near(0.1, SOURCE), drafted=replace(GOOD, **changes), route=route)
    assert (after.outcome, after.reason) == (outcome, reason)
    assert (GOOD.text in after.reply.text) == (outcome in SHOWN)
    assert bool(after.reply.articles) == (outcome in WITH_ARTICLES)


@pytest.mark.parametrize(
    ("documents", "failed", "outcome", "reason"),
    [
        ([], (), "refused", "no_relevant_context"),
        (near(0.1, SOURCE), (), "refused", "no_relevant_context"),
        (near(0.4, SOURCE), (), "low_confidence", None),
        ([], ("grader",), "failed", "pipeline_error"),
        (near(0.1, SOURCE), ("answer",), "failed", "pipeline_error"),
        (near(0.4, SOURCE), ("answer",), "low_confidence", None),
    ],
)
def test_each_situation_without_a_draft_has_its_outcome(
    documents: list[Document], failed: tuple[str, ...], outcome: Outcome, reason: Reason | None
) -> None:
    after = composed(documents=documents, failed=failed)
    assert (after.outcome, after.reason) == (outcome, reason)
    shown = documents if after.outcome in WITH_ARTICLES else []
    assert [one.passage.chunk_id for one in after.reply.articles] == [one.id for one in shown]


def test_without_an_answer_only_what_the_model_chose_is_offered() -> None:
    none = Draft("", (), (), answerability="cannot")
    for to_read, offered in (((), []), ((OTHER.id, "unknown"), [OTHER.id]), (None, [SOURCE.id, OTHER.id])):
        after = composed(documents=near(0.2), drafted=replace(none, to_read=to_read), route="human")
        assert after.outcome == "refused"
        assert [one.passage.chunk_id for one in after.reply.articles] == offered


@pytest.mark.parametrize(
    ("likeliest", "offered", "key"), [(0.1, 2, "near_some"), (0.04, 2, "far_some"), (0.015, 0, "")]
)
def test_the_text_above_articles_admits_how_unlikely_they_are(likeliest: float, offered: int, key: str) -> None:
    documents = [*near(likeliest, SOURCE), *near(0.014, OTHER)]
    outputs = OutcomeComposer(articles_from=0.01, any_from=0.02).run(question="гарантия и возврат", graded=documents)
    reply = outputs["turn"].reply
    assert len(reply.articles) == offered
    assert reply.text == text(f"outcomes.articles.{key}" if key else "outcomes.refused.no_relevant_context", "ru")


def test_failed_gates_make_a_full_answer_a_partial_one() -> None:
    verdict = Verdict("auto", ("quality",), (Gate("quality", False, 40, 60),))
    answers = [to_answer(GOOD, "гарантия")]
    after = OutcomeComposer().run(question="гарантия", answers=answers, verdict=verdict)["turn"]
    assert after.outcome == "partially_answered"


def test_the_best_earlier_answer_is_shown_if_the_last_pass_brought_none() -> None:
    best = to_answer(replace(GOOD, answerability="partially"), "гарантия")
    after = OutcomeComposer().run(question="гарантия", best=best, verdict=Verdict("retry"), exhausted=Verdict("human"))
    assert after["turn"].outcome == "partially_answered"


def test_a_tenant_may_send_weak_answers_to_a_person(rules: dict[str, Policy]) -> None:
    rules["now"] = Policy(low_confidence_to_human=True, handoff_channel="desk")
    after = composed(documents=near(0.4, SOURCE))
    assert (after.outcome, after.reason) == ("human_followup", "low_confidence")
    assert after.reply.handoff == {"channel": "desk", "offer": ""}


def test_a_tenant_may_ask_for_more_confidence_in_quotations(rules: dict[str, Policy]) -> None:
    rules["now"] = Policy(answer_threshold=0.6)
    assert composed(drafted=replace(GOOD, quoted=True, confidence=0.6)).outcome == "answered"
    assert composed(drafted=replace(GOOD, quoted=True, confidence=0.59)).outcome != "answered"


def test_a_partial_answer_says_what_is_missing_and_where_to_ask() -> None:
    assert composed(drafted=GOOD).reply.notice is None
    notice = composed(drafted=replace(GOOD, answerability="partially", missing=("цена", "срок"))).reply.notice
    assert notice == "Не нашёл точного ответа: цена; срок. Если это важно, обратитесь к сотруднику."


def test_advice_is_given_once() -> None:
    turn = composed(drafted=replace(GOOD, missing=("цена",), answerability="partially"))
    notice = partly_answered(turn, (), unsure=("срок",)).reply.notice
    assert notice == (
        "Не нашёл точного ответа: цена. Не уверен, что ответил на это: срок. Если это важно, обратитесь к сотруднику."
    )


def test_a_truncated_list_is_announced() -> None:
    assert composed(drafted=replace(GOOD, truncated=True)).reply.notice == (
        "Показана часть раздела, остальное — в источнике."
    )


@pytest.mark.parametrize(("question", "relevance"), [("сроки", 0.4), ("условия", 0.1)])
def test_a_vague_question_is_clarified_with_topics(question: str, relevance: float) -> None:
    after = composed(question, near(relevance))
    assert (after.outcome, after.reason) == ("clarify", None)
    assert after.reply.clarification == ("Гарантия", "Возврат")
    assert [one.snippet for one in after.reply.articles] == ["Гарантия два года.", "Возврат за две недели."]


def test_choices_are_headed_by_the_question_if_several_are() -> None:
    headed = [document(f"{one}: год.", one, heading=one) for one in ("Сроки службы", "Сроки")]
    assert composed("сроки", near(0.4, OTHER, *headed)).reply.clarification == ("Сроки службы", "Сроки")
    assert composed("сроки", near(0.4, OTHER, headed[0])).reply.clarification == ("Возврат", "Сроки службы")


def test_a_choice_is_understood_without_the_question() -> None:
    found = [document(f"{one}.", one, title="Рассрочка", heading=one) for one in ("Бонусы", "Рассрочка на сайте")]
    options = composed("рассрочка", near(0.4, *found)).reply.clarification
    assert options == ("Рассрочка › Бонусы", "Рассрочка на сайте")


def test_a_choice_is_not_offered_again() -> None:
    headed = [document(f"{one}: год.", one, heading=one) for one in ("Сроки службы", "Сроки")]
    chosen = [Exchange("помогите", "clarify", options=("Оплата", "Сроки"))]
    assert composed("Сроки", near(0.4, *headed), history=chosen).outcome != "clarify"


def test_the_choices_of_a_model_are_offered() -> None:
    after = composed(drafted=replace(GOOD, claims=(), text="", options=("Волна", "Бриз")), route="human")
    assert (after.outcome, after.reply.clarification) == ("clarify", ("Волна", "Бриз"))


ASKED_BACK = [Exchange("сроки", "clarify"), Exchange("сроки гарантии", "answered")]


@pytest.mark.parametrize(
    ("question", "documents", "history"),
    [
        ("сроки", near(0.3), []),
        ("условия гарантии машины", near(0.4), []),
        ("условия", near(0.4, SOURCE), []),
        ("условия", near(0.4), ASKED_BACK),
    ],
)
def test_nothing_else_is_clarified(question: str, documents: list[Document], history: list[Exchange]) -> None:
    assert composed(question, documents, history=history).outcome == "low_confidence"


def test_a_chosen_topic_is_clarified_once_more() -> None:
    plea = Exchange("помогите", "clarify", options=("Оплата", "условия"))
    assert composed("условия", near(0.4), history=[plea]).outcome == "clarify"
    assert composed("условия", near(0.4), history=[plea, Exchange("условия", "clarify")]).outcome == "low_confidence"


def test_only_approved_offers_are_made() -> None:
    offered = composed("отмените", fixed=Reading("high_stakes", 1.0, "cancellation")).reply.handoff
    assert offered == {"channel": "chat", "offer": "скидка 10%"}
    complaint = composed("жалоба", fixed=Reading("high_stakes", 1.0, "complaint")).reply.handoff
    assert complaint == {"channel": "chat", "offer": ""}


@pytest.mark.parametrize(
    ("question", "offer"),
    [
        ("Отмените мой заказ", "отмена до отправки"),
        ("Хочу отменить подписку", "пауза на месяц"),
        ("Отмените всё", ""),
    ],
)
def test_offer_fits_what_is_cancelled(rules: dict[str, Policy], question: str, offer: str) -> None:
    offers = {"cancellation/заказ покупка": "отмена до отправки", "cancellation/подписка": "пауза на месяц"}
    rules["now"] = Policy(approved_offers=offers)
    handoff = composed(question, fixed=Reading("high_stakes", 1.0, "cancellation")).reply.handoff
    assert handoff is not None
    assert handoff["offer"] == offer


@pytest.mark.parametrize("intent", ["irrelevant", "nonsense"])
@pytest.mark.parametrize(("locale", "topics"), [("ru", "доставке и возврате"), ("en", "delivery and returns")])
def test_topics_are_named_off_topic(rules: dict[str, Policy], intent: Intent, locale: str, topics: str) -> None:
    rules["now"] = Policy(topics_ru="доставке и возврате", topics_en="delivery and returns")
    assert topics in composed("?", fixed=Reading(intent, 1.0, "none"), locale=locale).reply.text
    talk = Reading("chitchat", 1.0, kind="about_assistant")
    assert topics in composed("?", fixed=talk, locale=locale).reply.text


ALWAYS_OPEN = Hours(zone="UTC", week=dict.fromkeys(WEEKDAYS, ("00:00-24:00",)))
CLOSED = Hours(zone="UTC", week={})


@pytest.mark.parametrize(
    ("policy_now", "desk_in_use", "calls"),
    [
        (Policy(hours=ALWAYS_OPEN), False, True),
        (Policy(hours=CLOSED), True, False),
        (Policy(), False, False),
        (Policy(), True, True),
        (Policy(spent_budget_to_person="always"), False, True),
        (Policy(hours=ALWAYS_OPEN, spent_budget_to_person="never"), True, False),
    ],
)
@pytest.mark.parametrize("claims", [True, False])
def test_spent_budget_calls_person_at_desk(
    rules: dict[str, Policy],
    monkeypatch: pytest.MonkeyPatch,
    policy_now: Policy,
    desk_in_use: bool,
    calls: bool,
    claims: bool,
) -> None:
    rules["now"] = policy_now
    monkeypatch.setattr(operator_sessions, "desk_in_use", lambda: desk_in_use)
    weak = replace(GOOD, answerability="cannot")
    if not claims:
        weak = replace(weak, claims=(), factuality_status="skipped")
    verdict = Verdict("human", ("quality", "budget_exhausted"))
    with acting_as(Tenant("acme", "visitor")):
        composer = OutcomeComposer()
        after = composer.run(question="гарантия", answers=[to_answer(weak, "гарантия")], verdict=verdict)["turn"]
    assert ((after.outcome, after.reason) == ("human_followup", "budget_exhausted")) is calls


FIXED: list[tuple[Outcome, Reason, Intent, Risk]] = [
    ("nonsense", "no_intent", "nonsense", "none"),
    ("irrelevant", "off_topic", "irrelevant", "none"),
    ("irrelevant", "off_topic", "chitchat", "none"),
    ("out_of_scope", "out_of_scope", "out_of_scope", "none"),
    ("human_followup", "user_request", "wants_human", "none"),
    *(("high_stakes", "high_risk", "high_stakes", risk) for risk in get_args(Risk)),
]


@pytest.mark.parametrize(("outcome", "reason", "intent", "risk"), FIXED)
def test_a_fixed_intent_is_worded_in_both_languages(
    outcome: Outcome, reason: Reason, intent: Intent, risk: Risk
) -> None:
    by_locale = {locale: composed("?", fixed=Reading(intent, 1.0, risk), locale=locale) for locale in LOCALES}
    assert {(after.outcome, after.reason) for after in by_locale.values()} == {(outcome, reason)}
    texts = {after.reply.text for after in by_locale.values()}
    assert len(texts) == len(LOCALES)
    assert all(texts)


@pytest.mark.parametrize("locale", LOCALES)
def test_a_plea_is_asked_back_without_options(locale: str) -> None:
    after = composed("помогите", fixed=Reading("answerable", 1.0, kind=PLEA), locale=locale)
    assert (after.outcome, after.reason, after.reply.clarification, after.reply.articles) == ("clarify", None, None, ())
    assert after.reply.text


@pytest.mark.parametrize("locale", ["ru", "en"])
def test_a_request_for_a_call_asks_for_the_number(locale: str) -> None:
    after = composed("перезвоните", fixed=Reading("wants_human", 1.0, kind=CALLBACK), locale=locale)
    assert (after.outcome, after.reply.text) == ("human_followup", text("outcomes.human_followup.callback", locale))


def test_a_doubt_holds_only_if_the_knowledge_base_has_nothing() -> None:
    doubt = Reading("irrelevant", 0.5, kind="irrelevant")
    by_meaning = replace(SOURCE, meta={**SOURCE.meta, "scores": {"cosine": 0.85}})
    for documents in (near(0.04, by_meaning), near(0.1, SOURCE)):
        refused = composed("?", documents, doubt=doubt, refused=Verdict("human"))
        assert (refused.outcome, refused.intent, refused.reply.articles) == ("irrelevant", "irrelevant", ())
    assert composed("?", near(0.06, by_meaning), doubt=doubt, refused=Verdict("human")).outcome == "refused"
    assert composed("?", near(0.34, SOURCE), doubt=doubt, refused=Verdict("human")).outcome == "low_confidence"


def test_a_doubtful_plea_is_asked_what_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MainTopics, "find", lambda _self, _locale: ("Доставка", "Оплата"))
    doubt = Reading("answerable", 0.6, kind=PLEA)
    by_meaning = replace(SOURCE, meta={**SOURCE.meta, "scores": {"cosine": 0.85}})
    asked = composed("всё плохо", near(0.04, by_meaning), doubt=doubt, refused=Verdict("human"))
    assert (asked.outcome, asked.reply.articles) == ("clarify", ())
    assert asked.reply.clarification == ("Доставка", "Оплата")
    assert asked.reply.text == text("outcomes.clarify.plea_topics", "ru")
    assert composed("?", near(0.07, by_meaning), doubt=doubt, refused=Verdict("human")).outcome == "refused"


def test_a_doubtful_complaint_goes_to_a_person() -> None:
    doubt = Reading("high_stakes", 0.8, "complaint", "complaint")
    turn = composed("вы там все жулики", doubt=doubt, refused=Verdict("human"))
    assert (turn.outcome, turn.risk) == ("high_stakes", "complaint")
    assert turn.reply.text == text("outcomes.high_stakes.complaint", "ru")


@pytest.mark.parametrize("kind", ["greeting", "about_assistant"])
def test_small_talk_names_the_tenant(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    reading = Reading("chitchat", 1.0, kind=kind)
    assert "shop" not in composed("?", fixed=reading).reply.text
    monkeypatch.setattr(registry, "current", lambda: SimpleNamespace(tenant_id="shop", name="Пристань"))
    assert "«Пристань». Я" in composed("?", fixed=reading).reply.text


def test_a_short_message_with_two_readings_is_not_answered() -> None:
    unsure = replace(GOOD, quoted=True, confidence=0.5)
    elsewhere = document("Вынимайте сетку пассатижами.", "c3", doc_id="mesh")
    lead = replace(elsewhere, meta={**elsewhere.meta, "relevance": 0.1, "leads": True})
    turn = composed("плоскогубцами не сломаю?", near(0.5), unsure, in_context=[lead])
    assert turn.outcome == "low_confidence"
    assert turn.reply.text == text("outcomes.articles.near_some", "ru")
    assert "mesh" in {one.passage.doc_id for one in turn.reply.articles}
    surer = replace(unsure, confidence=0.7)
    assert composed("плоскогубцами не сломаю?", near(0.7), surer, in_context=[lead]).outcome == "answered"


def test_a_likelier_section_of_another_reading_is_no_certain_answer() -> None:
    elsewhere = document("Вынимайте сетку пассатижами.", "c3", doc_id="mesh")
    lead = replace(elsewhere, meta={**elsewhere.meta, "relevance": 0.4, "leads": True})
    alone = composed("плоскогубцами не сломаю?", near(0.3)[:1])
    assert alone.reply.text == text("outcomes.articles.likely_one", "ru")
    turn = composed("плоскогубцами не сломаю?", near(0.3)[:1], in_context=[lead])
    assert turn.reply.articles[0].passage.doc_id == "mesh"
    assert turn.reply.text == text("outcomes.articles.near_some", "ru")


def test_a_likely_article_counts_after_one_of_another_reading() -> None:
    elsewhere = document("Вынимайте сетку пассатижами.", "c3", doc_id="mesh")
    lead = replace(elsewhere, meta={**elsewhere.meta, "relevance": 0.4, "leads": True})
    alone = composed("?", near(0.34, SOURCE), refused=Verdict("human"))
    beside = composed("?", near(0.34, SOURCE), refused=Verdict("human"), in_context=[lead])
    assert beside.reply.articles[0].passage.doc_id == "mesh"
    assert (alone.outcome, beside.outcome) == ("low_confidence", "low_confidence")


@pytest.mark.parametrize(("standalone", "offered"), [("", set()), ("у меня было 900 (баллы)", {"points"})])
def test_a_follow_up_is_offered_the_articles_of_its_topic(standalone: str, offered: set[str]) -> None:
    lead = document("Баллы начисляются через 14 дней.", "c3", doc_id="points", relevance=0.02, leads=True)
    composer = OutcomeComposer(articles_from=0.005)
    turn = composer.run(question="у меня было 900", standalone=standalone, in_context=[lead])["turn"]
    assert {one.passage.doc_id for one in turn.reply.articles} == offered


drafts = st.builds(
    replace,
    st.just(GOOD),
    claims=st.sampled_from([(), GOOD.claims]),
    factuality_status=st.sampled_from(get_args(FactualityStatus)),
    answerability=st.sampled_from(get_args(Answerability)),
    missing=st.sampled_from([(), ("E21",)]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(st.none(), drafts),
    st.sampled_from([[], near(0.4), near(0.9)]),
    st.sampled_from(get_args(Route)),
    st.sampled_from([*LOCALES, "de"]),
    st.sampled_from([(), ("grader",), ("verifier",)]),
    st.booleans(),
)
def test_every_turn_gets_one_outcome_and_a_text(
    rules: dict[str, Policy],
    one: Draft | None,
    documents: list[Document],
    route: Route,
    locale: str,
    failed: tuple[str, ...],
    to_human: bool,
) -> None:
    rules["now"] = Policy(low_confidence_to_human=to_human)
    after = composed("условия", documents, one, route, failed, locale=locale)
    assert after.outcome in get_args(Outcome)
    assert after.reason is None or after.reason in get_args(Reason)
    assert after.reply.text
    if after.outcome in SHOWN:
        assert one is not None
        assert one.claims
        assert one.factuality_status != "failed"
        assert after.verdict.route == "auto"
    assert (after.reply.handoff is not None) == (after.outcome in {"human_followup", "high_stakes"})
    assert (after.reply.clarification is not None) == (after.outcome == "clarify")
    assert after.outcome in WITH_ARTICLES or not after.reply.articles
