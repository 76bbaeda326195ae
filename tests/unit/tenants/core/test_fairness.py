"""Questions have priority, and ingestion still advances."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tenants.core import fairness
from tenants.core.fairness import QuestionPriority
from tests.turns import question_in_work


def waits(crossing: QuestionPriority) -> bool:
    """Whether a slice of ingest waits when it gives way; for ever where patience has no end."""
    waited: list[float] = []
    usual = crossing._changed.wait_for

    def wait_for(predicate: Callable[[], bool], timeout: float) -> bool:
        waited.append(timeout)
        return usual(predicate, timeout)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossing._changed, "wait_for", wait_for)
        crossing.yield_to_questions()
    return bool(waited)


def test_ingest_does_not_wait_without_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "PATIENCE_SECONDS", float("inf"))
    assert not waits(QuestionPriority())


def test_ingest_waits_until_the_last_question_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 60.0)
    crossing = QuestionPriority()
    waiting = Event()
    order: list[str] = []

    def slice_of_ingest() -> None:
        waiting.set()
        crossing.yield_to_questions()
        order.append("ingest")

    with ThreadPoolExecutor(1) as pool:
        with question_in_work(crossing):
            with question_in_work(crossing):
                work = pool.submit(slice_of_ingest)
                waiting.wait()
                order.append("first")
            order.append("second")
        work.result()
    assert order == ["first", "second", "ingest"]


def test_ingest_goes_on_under_questions_that_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 0.001)
    crossing = QuestionPriority()
    with question_in_work(crossing):
        assert waits(crossing)
        for _ in range(10):
            crossing.yield_to_questions()


def test_within_a_slice_ingest_does_not_wait_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "SLICE_SECONDS", 60.0)
    monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 0.001)
    crossing = QuestionPriority()
    with question_in_work(crossing):
        assert waits(crossing)
        monkeypatch.setattr(fairness, "PATIENCE_SECONDS", float("inf"))
        assert not waits(crossing)


def test_others_are_let_in_sooner_for_a_while() -> None:
    usual = sys.getswitchinterval()
    with fairness.interruptible():
        assert sys.getswitchinterval() < usual
    assert sys.getswitchinterval() == usual


def test_it_is_quiet_when_nobody_has_asked_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    crossing = QuestionPriority()
    assert crossing.is_idle()
    with question_in_work(crossing):
        assert not crossing.is_idle()
    assert not crossing.is_idle()
    monkeypatch.setattr(fairness, "IDLE_SECONDS", -1.0)
    assert crossing.is_idle()
