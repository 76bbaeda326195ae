"""Audit records of turns: complete, without personal data, and never at the visitor's expense."""

import json
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

import pytest

from components.language.words import stems
from components.models.calls import Call
from components.turn import Draft, Exchange, Intent, Outcome, Reason, Turn
from pipelines.ask import effects
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskFilters, AskRequest, TurnAnswer
from pipelines.ask.record import entry, misses, redacted
from pipelines.ask.usecase import Ask
from settings import get_settings
from tenants.accounts import policy
from tenants.audit import search
from tenants.audit.entry import Entry
from tenants.audit.recorder import Recorder
from tenants.audit.search import Record, TurnQuery
from tenants.chats import tickets
from tenants.core import context
from tenants.knowledge import gaps
from tenants.knowledge.gaps import Miss
from tenants.privacy import persons
from tests.audits import AT

pytestmark = pytest.mark.usefixtures("shop")

E20 = "Стиральная машина показывает ошибку E20, что делать?"


@pytest.fixture(scope="module")
def ask(shop: context.Tenant) -> Iterator[Ask]:
    usecase = Ask()
    usecase.engine.warm_up()
    yield usecase
    usecase.close()


def recorded(ask: Ask, request: AskRequest) -> tuple[TurnAnswer, Record]:
    """Return the answer and its record."""
    answer = ask.answer(request)
    ask.recorder.close()
    return answer, search.get(answer.turn_id)


def part(record: Record, name: str) -> dict[str, object]:
    assert record.content is not None
    result = record.content[name]
    assert isinstance(result, dict)
    return result


def test_the_record_holds_the_answer_as_it_was_given(ask: Ask) -> None:
    request = AskRequest(question=E20, session_id="s1", quality="quick", locale="ru", context="Волна 7")
    answer, record = recorded(ask, request)
    assert part(record, "answer") == json.loads(answer.encoded)
    assert (record.outcome, record.reason) == ("answered", None)
    assert part(record, "request") == request.model_dump(exclude={"contact"})
    assert part(record, "state") == {"pipeline": ask.engine.digest, "generation": 1}
    assert (record.content or {})["schema"] == "audit.v1"
    assert record.person == persons.digest("shop", "anna")
    assert "anna" not in json.dumps(record.content)
    cited = search.find(TurnQuery(document="errors_e10_e30.md", cited=True))
    assert answer.turn_id in {item.turn_id for item in cited}


def test_record_holds_scores_of_all_passages(ask: Ask) -> None:
    answer, record = recorded(ask, AskRequest(question=E20))
    assert record.content is not None
    retrieved, found = record.content["retrieved"], record.content["found"]
    assert isinstance(retrieved, list)
    assert isinstance(found, list)
    assert len(retrieved) == answer.meta.chunks.retrieved > len(answer.citations)
    assert {one["doc_id"] for one in retrieved} == set(found)
    assert all(one["scores"] and 0 <= one["relevance"] <= 1 for one in retrieved)
    cited = {one.chunk_id for one in answer.citations if one.origin == "primary"}
    assert cited <= {one["chunk_id"] for one in retrieved if one["relevant"]}


@pytest.mark.parametrize("trace_content", [False, True])
def test_record_holds_prompts_as_the_policy_says(ask: Ask, trace_content: bool) -> None:
    prompt = "[user]\nКуда вернуть? Мой телефон 8 916 123-45-67"
    call = Call("answer", "ollama", "qwen", "answer.ru@1", "fast", 0.0, 9.0, "ok", 100, 20, caller="answer #2")
    turn = ask.turn(AskRequest(question=E20))
    with policy.overridden(policy.with_changes({"trace_content": trace_content})):
        stored = entry(
            AskRequest(question=E20), turn, answer_of(turn), at=AT, pipeline="p", calls=[replace(call, request=prompt)]
        )
    [kept] = json.loads(stored.body)["calls"]
    masked = "[user]\nКуда вернуть? Мой телефон [phone]"
    assert (kept["step"], kept["model"], kept["prompt"]) == ("answer #2", "qwen", "answer.ru@1")
    assert (kept["characters"], kept["sha256"]) == (len(masked), sha256(masked.encode()).hexdigest())
    assert kept["text"] == (masked if trace_content else None)


def test_personal_data_is_nowhere_in_the_record(ask: Ask) -> None:
    secret = "8 916 123-45-67, ivan@mail.ru, 4111 1111 1111 1111"
    answer, record = recorded(ask, AskRequest(question=f"Ошибка E20, заказ № 89161234567. Мои данные: {secret}"))
    record_text = json.dumps(record.content, ensure_ascii=False)
    for item in secret.split(", "):
        assert item not in record_text
        assert item in answer.encoded
    assert record.question == "Ошибка E20, заказ № 89161234567. Мои данные: [phone], [email], [card]"
    assert search.find(TurnQuery(text="ivan@mail.ru")) == ()
    # Numbers and ids that do not look personal are unchanged.
    answered, left = json.loads(answer.encoded), part(record, "answer")
    assert {name: answered[name] for name in ("turn_id", "scores", "verdict")} == {
        name: left[name] for name in ("turn_id", "scores", "verdict")
    }
    assert [item["chunk_id"] for item in answered["citations"]] == [item["chunk_id"] for item in left["citations"]]  # type: ignore[attr-defined]


def test_personal_data_in_the_text_of_an_article_is_masked(ask: Ask) -> None:
    answer = ask.answer(AskRequest(question="Сколько ждать мастера"))
    article = answer.articles[0].model_copy(update={"text": "Мастер Иван: +7 916 123-45-67"})
    left = json.loads(redacted(answer.model_copy(update={"articles": (article,)})))
    assert left["articles"][0]["text"] == "Мастер Иван: [phone]"


def test_personal_data_in_filters_is_masked_wherever_they_are_repeated(ask: Ask) -> None:
    filters = AskFilters(tags=("+7 916 123-45-67",), doc_ids=("anna@shop.example",))
    _, record = recorded(ask, AskRequest(question=E20, quality="quick", filters=filters, anonymous=True))
    assert "[phone]" in json.dumps(record.content)
    assert not {"123-45-67", "anna@"} & {part for part in ("123-45-67", "anna@") if part in json.dumps(record.content)}


def test_an_anonymous_turn_is_nobodys(ask: Ask) -> None:
    answer, record = recorded(ask, AskRequest(question="Хочу поговорить с человеком", session_id="s9", anonymous=True))
    assert (record.person, part(record, "request")["session_id"]) == ("", None)
    assert "s9" not in json.dumps(record.content)
    assert answer.session_id == "s9"
    assert answer.handoff is not None
    ticket = tickets.get(answer.handoff.ticket_id or "")
    assert ticket is not None
    assert ticket.subject == effects.ANONYMOUS
    assert "s9" not in ticket.session_id


def test_the_conversation_is_kept_as_the_turn_knew_it(ask: Ask) -> None:
    for question in ("Пишите на ivan@mail.ru, что значит E20?", "А если не поможет?"):
        _, record = recorded(ask, AskRequest(question=question, session_id="talk"))
    history = (record.content or {})["history"]
    assert isinstance(history, list)
    assert [item[0] for item in history] == ["Пишите на [email], что значит E20?"]
    assert Exchange(*history[0]).outcome in {"answered", "low_confidence"}


@pytest.mark.parametrize(
    ("question", "reason"), [("Что означает ошибка E401?", "no_relevant_context"), (E20, None), ("Привет!", None)]
)
def test_a_refusal_for_want_of_knowledge_is_a_gap(ask: Ask, question: str, reason: str | None) -> None:
    before = {gap.gap_id: gap.count for gap in gaps.all()}
    recorded(ask, AskRequest(question=question))
    recorded(ask, AskRequest(question=f"{question.upper()}!"))
    new = [gap for gap in gaps.all() if gap.count != before.get(gap.gap_id)]
    assert [gap.reason for gap in new] == ([reason] if reason else [])
    if reason:
        assert (new[0].count - before.get(new[0].gap_id, 0), new[0].question) == (2, question)


def misses_of(
    outcome: Outcome, reason: Reason | None, *, intent: Intent = "answerable", question: str = E20
) -> list[Miss]:
    turn = Turn("t", question, outcome=outcome, reason=reason, intent=intent, standalone_question="Как вернуть чайник?")
    return list(misses(turn, answer_of(turn)))


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("refused", "no_relevant_context"),
        ("cannot_answer", "insufficient_context"),
        ("low_confidence", None),
        ("human_followup", "low_confidence"),
    ],
)
def test_unanswered_question_is_a_gap_in_its_own_words(outcome: Outcome, reason: Reason | None) -> None:
    [missed] = misses_of(outcome, reason, question="А чайник? Я на ivan@mail.ru")
    assert (missed.question, missed.reason) == ("А чайник? Я на [email]", reason or "low_confidence")
    assert set(missed.stems) == set(stems("вернуть чайник"))


@pytest.mark.parametrize(
    ("outcome", "reason", "intent"),
    [
        ("blocked", "blocked_by_guardrails", "answerable"),
        ("irrelevant", "off_topic", "chitchat"),
        ("nonsense", "no_intent", "nonsense"),
        ("out_of_scope", "out_of_scope", "out_of_scope"),
        ("human_followup", "user_request", "wants_human"),
        ("human_followup", "low_confidence", "chitchat"),
        ("answered", None, "answerable"),
        ("clarify", None, "answerable"),
    ],
)
def test_filtered_or_answered_request_is_no_gap(outcome: Outcome, reason: Reason | None, intent: Intent) -> None:
    assert misses_of(outcome, reason, intent=intent) == []


def test_topic_left_open_is_a_gap_with_the_question_as_asked() -> None:
    draft = Draft("Чек нужен.", (), (), missing=("доставка в Омск",))
    turn = Turn("t", "Нужен чек и есть ли доставка в Омск?", outcome="partially_answered", draft=draft)
    [missed] = misses(turn, answer_of(turn))
    assert (missed.question, missed.key) == (turn.question, "доставк омск")


def test_topics_left_open_are_gaps_in_their_own_words() -> None:
    """By the words of the message, they were one group, and dismissing one dismissed all."""
    topics = ("доставка в Омск", "номер карты")
    turn = Turn("t", E20, outcome="partially_answered", draft=Draft("Чек нужен.", (), (), missing=topics))
    assert tuple(missed.question for missed in misses(turn, answer_of(turn))) == topics


def test_topic_that_no_document_can_answer_is_no_gap() -> None:
    draft = Draft("Чек нужен.", (), (), missing=("какая погода завтра", "доставка в Омск"))
    turn = Turn("t", E20, outcome="partially_answered", draft=draft, filtered=("какая погода завтра",))
    assert [missed.key for missed in misses(turn, answer_of(turn))] == ["доставк омск"]


def test_a_recorder_that_fails_costs_nobody_an_answer(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(recorder: Recorder, entry: Entry) -> None:
        raise RuntimeError(entry.body)

    monkeypatch.setattr(Recorder, "record", fail)
    answer = ask.answer(AskRequest(question=E20))
    assert answer.outcome == "answered"
    assert f"turn {answer.turn_id} is not recorded" in caplog.text
    assert "E20" not in caplog.text


def test_evaluation_leaves_no_records(ask: Ask) -> None:
    before = len(search.find(TurnQuery(), limit=1_000))
    ask.turn(AskRequest(question=E20))
    ask.recorder.close()
    assert len(search.find(TurnQuery(), limit=1_000)) == before
    assert not list((get_settings().data_dir / "spool").glob("*.jsonl"))


def test_a_turn_given_up_is_recorded_and_its_late_end_is_not(ask: Ask) -> None:
    request = AskRequest(question=E20)
    ask.give_up(request, "timeout", turn_id="slow", latency_ms=60_000)
    ask.answer(request, turn_id="slow")
    ask.recorder.close()
    record = search.get("slow")
    assert (record.outcome, record.reason) == ("failed", "timeout")


def test_an_answer_without_personal_data_is_kept_to_the_letter(ask: Ask) -> None:
    answer = ask.answer(AskRequest(question=E20))
    assert redacted(answer) == answer.encoded
    assert json.loads(redacted(answer, keep_session=False)) == json.loads(answer.encoded)
