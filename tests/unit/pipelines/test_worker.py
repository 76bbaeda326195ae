from threading import Event

import pytest

from pipelines.worker import Worker


class Counting(Worker):
    def __init__(self, pauses: list[float | Exception | None], **options: bool | float | Event) -> None:
        super().__init__("counting", 60.0, **options)  # type: ignore[arg-type]
        self.pauses = iter(pauses)
        self.rounds, self.reached, self.finished = 0, Event(), False

    def work(self) -> float | None:
        self.rounds += 1
        pause = next(self.pauses)
        if isinstance(pause, Exception):
            raise pause
        if pause is None:
            self.reached.set()
        return pause

    def finish(self) -> None:
        self.finished = True


def test_rounds_go_on_after_a_fault_and_end_when_closed(caplog: pytest.LogCaptureFixture) -> None:
    worker = Counting([0.0, OSError("away"), None], at_once=True, after_fault=0.0)
    worker.warm_up()
    assert worker.reached.wait(10)
    worker.close()
    assert (worker.rounds, worker.finished) == (3, True)
    assert "counting: OSError" in caplog.text


def test_a_wake_ends_the_pause() -> None:
    wake = Event()
    worker = Counting([None], wake=wake)
    worker.warm_up()
    assert worker.rounds == 0
    wake.set()
    assert worker.reached.wait(10)
    worker.close()


def test_a_worker_that_never_began_can_be_closed() -> None:
    worker = Counting([])
    worker.close()
    assert (worker.rounds, worker.finished) == (0, False)
