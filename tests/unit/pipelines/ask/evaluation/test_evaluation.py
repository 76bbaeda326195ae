"""Runs over a tenant's own questions: marks, effects, losses, the budget, and who runs them at night."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from secrets import token_hex
from threading import Event, Semaphore

import pytest
from sqlalchemy import event, func, select, update

from components.turn import Turn
from pipelines.ask.evaluation import questions, report, usecase
from pipelines.ask.evaluation.questions import QuestionForm
from pipelines.ask.evaluation.usecase import Evaluation
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from tenants.access import spending
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.all_tables import Base
from tenants.chats import outbox, webhooks
from tenants.core.context import SCOPES, Tenant, acting_as, current
from tenants.core.errors import Busy, Invalid
from tenants.desk import evaluation_results
from tenants.desk.tables import EvaluationQuestionRow
from tenants.storage import database
from tests.turns import question_in_work
from tests.webhooks import wait_until

OWN = {"tenants", "evaluation_questions", "evaluation_results"}


class ScriptedEngine:
    """Finishes every turn as the test says."""

    digest = "scripted"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reply: Callable[[Turn], Turn] = lambda turn: replace(turn, outcome="refused", reason="no_relevant_context")

    def warm_up(self) -> None: ...

    def close(self) -> None: ...

    def run(self, turn: Turn) -> Turn:
        self.asked.append(turn.question)
        return self.reply(turn)


@pytest.fixture(scope="module")
def shop_evaluation(shop: Tenant) -> Iterator[Evaluation]:
    ask = Ask()
    yield Evaluation(ask)
    ask.close()


@pytest.fixture
def scripted(shared_installation: None) -> Iterator[tuple[Evaluation, ScriptedEngine]]:
    """An evaluation of a new tenant, whose questions all expect a refusal."""
    tenant_id = f"t{token_hex(4)}"
    Registry().add(tenant_id)
    engine = ScriptedEngine()
    with acting_as(Tenant(tenant_id, "anna", SCOPES)):
        questions.add(QuestionForm(question=f"Вопрос {number}?", refused=True) for number in range(40))
        yield Evaluation(Ask(engine)), engine


def rows() -> dict[str, int]:
    """Rows of each table of the installation."""
    with database.across_tenants() as session:
        tables = [table for table in Base.metadata.sorted_tables if table.name not in OWN]
        return {table.name: session.scalar(select(func.count()).select_from(table)) or 0 for table in tables}


def added_at(moment: datetime) -> None:
    """Store that the questions of the tenant were added then."""
    with database.writing() as session:
        session.execute(update(EvaluationQuestionRow).values(created_at=moment))


def test_a_run_marks_replies_and_has_no_effect(shop_evaluation: Evaluation) -> None:
    questions.add(
        [
            QuestionForm(question="Сколько стоит доставка?", facts=("490 ₽|490 рублей",)),
            QuestionForm(question="Сколько стоит доставка завтра?", facts=("999 рублей",)),
            QuestionForm(question="Какой высоты Эльбрус?", refused=True),
            QuestionForm(question="Стиральная машина показывает ошибку E20, что делать?", refused=True),
            QuestionForm(question="Позовите сотрудника", facts=("14 дней",)),
        ]
    )
    before = rows()
    shown = shop_evaluation.run()
    assert rows() == before
    marks = {one.question: one.mark for one in shown.answers}
    assert marks["Сколько стоит доставка?"] in ("answered", "offered")
    assert marks["Какой высоты Эльбрус?"] == "refused"
    assert marks["Стиральная машина показывает ошибку E20, что делать?"] == "wrong"
    assert marks["Позовите сотрудника"] == "missed"
    assert shown.result.figures["right"] == sum(one.is_right for one in shown.answers) / 5
    assert shown.failing[0].mark == "wrong"
    assert (shown.before, shown.difference) == (None, None)


def answer_first(count: int) -> Callable[[Turn], Turn]:
    """Answer the first questions, which is wrong, and refuse the others."""

    def reply(turn: Turn) -> Turn:
        number = int(turn.question.split()[1].rstrip("?"))
        if number < count:
            return replace(turn, outcome="answered")
        return replace(turn, outcome="refused", reason="no_relevant_context")

    return reply


def test_a_loss_beyond_noise_is_announced_once(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    evaluation, engine = scripted
    webhooks.add("https://crm.example/hook", ["quality.dropped"])
    evaluation.run()
    engine.reply = answer_first(6)
    shown = evaluation.run()
    assert shown.result.loss is not None
    assert shown.difference is not None
    assert len(shown.difference.worse) == 6
    assert {loss.share: (loss.before, loss.now) for loss in shown.difference.losses} == {
        "right": (1.0, 0.85),
        "wrong": (0.0, 0.15),
    }
    unseen = evaluation_results.unseen_loss()
    assert unseen is not None
    assert unseen.run_id == shown.result.run_id
    (delivery,) = outbox.latest()
    assert delivery.event == "quality.dropped"
    assert shown.result.run_id in delivery.body
    assert "Вопрос" not in delivery.body
    assert evaluation.run().result.loss is None
    assert len(outbox.latest()) == 1
    assert evaluation_results.unseen_loss() is not None
    evaluation_results.acknowledge()
    assert evaluation_results.unseen_loss() is None


def test_a_loss_within_noise_is_not_announced(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    evaluation, engine = scripted
    evaluation.run()
    engine.reply = answer_first(4)  # 10 points, which noise brings in one case of 16
    shown = evaluation.run()
    assert shown.difference is not None
    assert len(shown.difference.worse) == 4
    assert shown.result.loss is None


def test_a_changed_question_is_not_compared(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    evaluation, _ = scripted
    evaluation.run()
    stored = questions.add(QuestionForm(question=f"Вопрос {number}?", facts=("никогда",)) for number in range(10))
    assert (stored.changed, stored.unchanged) == (10, 0)
    shown = evaluation.run()
    assert shown.result.figures["right"] == 0.75
    assert shown.difference is not None
    assert shown.difference.worse == ()


def test_a_run_leaves_half_of_the_budget(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    evaluation, engine = scripted
    policy.change(spend_cap_usd_per_day=1.0)

    def costly(turn: Turn) -> Turn:
        spending.spend(0.2)
        return replace(turn, outcome="refused", reason="no_relevant_context")

    engine.reply = costly
    shown = evaluation.run()
    assert (shown.result.state, shown.result.reason) == ("stopped", "budget_spent")
    assert len(engine.asked) == 3
    with pytest.raises(Invalid, match="evaluation_budget_spent"):
        evaluation.run()


def test_one_process_at_a_time_runs_it(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    evaluation, engine = scripted
    other = Evaluation(Ask(engine))

    def twice(turn: Turn) -> Turn:
        with pytest.raises(Busy, match="evaluation_running"):
            other.run()
        return replace(turn, outcome="refused", reason="no_relevant_context")

    engine.reply = twice
    assert evaluation.run().result.state == "done"
    assert len(evaluation_results.latest()) == 1


def test_a_night_is_run_once_at_the_hour_of_the_tenant(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    _, engine = scripted
    # Not at the hour of the other tenants.
    moment = (datetime.now(UTC) - timedelta(days=1)).replace(hour=12, minute=30)
    policy.change(evaluation_hour=moment.hour)

    def at(now: datetime) -> None:
        replica = Evaluation(Ask(engine))
        replica.start_due(now)
        replica._pool.shutdown(wait=True)
        replica.close()

    added_at(moment)
    at(moment)
    assert engine.asked == []
    added_at(moment - timedelta(hours=1))
    at(moment)
    at(moment)
    (result,) = evaluation_results.latest()
    assert (result.nightly, result.state, len(engine.asked)) == (True, "done", 40)
    at(moment + timedelta(hours=4))
    policy.change(evaluation_hour=None)
    at(moment + timedelta(days=1))
    assert len(evaluation_results.latest()) == 1


def test_tenants_without_questions_cost_no_query_at_night(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    evaluation, engine = scripted
    moment = (datetime.now(UTC) - timedelta(days=1)).replace(hour=13)

    def statements() -> int:
        seen: list[str] = []
        event.listen(database.engine(), "before_cursor_execute", lambda *given: seen.append(given[2]))
        evaluation.start_due(moment)
        return len(seen)

    evaluation.start_due(moment)
    before = statements()
    for _ in range(3):
        tenant_id = f"t{token_hex(4)}"
        Registry().add(tenant_id)
        with acting_as(Tenant(tenant_id, "anna")):
            policy.change(evaluation_hour=moment.hour)
    assert (statements(), engine.asked) == (before, [])


def test_a_run_of_the_service_takes_its_seat(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    _, engine = scripted
    ask = Ask(engine)
    runner = Runner(ask, workers=1, budget=5)
    evaluation = Evaluation(ask, runner)
    shown = evaluation.run()
    assert (shown.result.state, shown.result.done) == ("done", 40)
    runner.close()
    stopped = evaluation.run()
    assert (stopped.result.state, stopped.result.reason) == ("stopped", "shutdown")


def test_a_slow_question_is_missed_and_the_run_goes_on(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    _, engine = scripted
    over, reply = Event(), engine.reply

    def slow_at_first(turn: Turn) -> Turn:
        if turn.question == "Вопрос 0?":
            over.wait(10)
        return reply(turn)

    engine.reply = slow_at_first
    ask = Ask(engine)
    runner = Runner(ask, workers=2, budget=0.3)
    shown = Evaluation(ask, runner).run()
    over.set()
    runner.close()
    assert [one.question for one in shown.failing] == ["Вопрос 0?"]
    assert (shown.failing[0].mark, shown.failing[0].outcome) == ("missed", "failed")


def test_customers_questions_go_first(
    scripted: tuple[Evaluation, ScriptedEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, engine = scripted
    ask = Ask(engine)
    runner = Runner(ask, workers=1, budget=5)
    evaluation = Evaluation(ask, runner)
    waits: list[float] = []
    monkeypatch.setattr(evaluation._closing, "wait", waits.append)
    monkeypatch.setattr(usecase, "PATIENCE_SECONDS", 0.05)
    with question_in_work():
        evaluation._let_customers_first()
    assert waits
    waits.clear()
    evaluation._let_customers_first()
    assert waits == []
    runner.close()


def test_slow_runs_delay_no_other_tenant(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    """Four tenants with slow runs occupied all threads until they had ended."""
    evaluation, engine = scripted
    asking, go = SimpleQueue[str](), Semaphore(0)

    def reply(turn: Turn) -> Turn:
        asking.put(current().tenant_id)
        assert go.acquire(timeout=20)
        return replace(turn, outcome="refused", reason="no_relevant_context")

    engine.reply = reply
    names = [f"t{token_hex(4)}" for _ in range(5)]
    for name in names:
        Registry().add(name)
        with acting_as(Tenant(name, "anna", SCOPES)):
            questions.add(QuestionForm(question=f"Вопрос {number}?", refused=True) for number in range(2))
            evaluation.start()
    first = {asking.get(timeout=20) for _ in range(4)}
    wait_until(lambda: len(evaluation._turns._lines) == 1)
    go.release()
    assert {asking.get(timeout=20)} == {*names} - first
    go.release(9)
    evaluation._pool.shutdown(wait=True)


def test_an_interrupted_run_gives_way(scripted: tuple[Evaluation, ScriptedEngine]) -> None:
    evaluation, _ = scripted
    evaluation_results.begin(40, nightly=True)
    with pytest.raises(Busy, match="evaluation_running"):
        evaluation.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "SILENT", timedelta(0))
        evaluation.run()
    newest, older = evaluation_results.latest()
    assert (newest.state, older.state, older.reason) == ("done", "stopped", "interrupted")
