"""A repeated step is done at the start, when woken, after its pause, and once more at the end."""

from queue import Queue
from threading import Event
from time import monotonic

from tenants.core.background_loop import Repeating, Rest
from tenants.core.context import Tenant, acting_as, tenant_id

SECONDS = 30.0


def test_a_step_is_repeated_when_woken_and_at_the_end() -> None:
    steps = Queue[int]()

    def step() -> float:
        steps.put(1)
        return 1_000.0

    repeating = Repeating(step)
    repeating.start()
    steps.get(timeout=SECONDS)
    repeating.wake()
    steps.get(timeout=SECONDS)
    assert steps.empty()
    assert repeating.close(SECONDS)
    assert steps.qsize() == 1


def test_a_hanging_step_does_not_hold_up_the_end() -> None:
    free = Event()

    def step() -> float:
        free.wait()
        return 0.0

    repeating = Repeating(step)
    repeating.start()
    assert not repeating.close(0.001)
    free.set()
    assert repeating.close(SECONDS)


def test_a_wake_during_a_rest_counts_after_it() -> None:
    pauses, steps = iter([Rest(0.2), 1_000.0, 1_000.0, 1_000.0]), Queue[float]()

    def step() -> float:
        steps.put(monotonic())
        return next(pauses)

    repeating = Repeating(step)
    repeating.start()
    failed_at = steps.get(timeout=SECONDS)
    repeating.wake()
    assert steps.get(timeout=SECONDS) - failed_at >= 0.2
    steps.get(timeout=SECONDS)
    assert repeating.close(SECONDS)


def test_a_step_does_not_run_as_the_tenant_that_started_it() -> None:
    tenants = Queue[str | None]()

    def step() -> float:
        tenants.put(tenant_id())
        return 1_000.0

    repeating = Repeating(step)
    with acting_as(Tenant("acme", "anna")):
        repeating.start()
        assert tenants.get(timeout=SECONDS) is None
        repeating.wake()
        assert tenants.get(timeout=SECONDS) is None
    assert repeating.close(SECONDS)
