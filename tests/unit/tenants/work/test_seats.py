"""Scheduling of turns: waits hold no seat, tenants take turns, and none of them takes everything."""

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Event, Lock

import pytest

from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.core.fair_semaphore import may_take_more
from tenants.work.seats import Seats, waiting
from tests.webhooks import wait_until

PATIENCE_SECONDS = 60


@pytest.fixture
def go() -> Iterator[Event]:
    """Set it and every `held` turn ends."""
    event = Event()
    yield event
    event.set()


def blocking_turn(go: Event) -> tuple[Callable[[], bytes], Event]:
    """Return a turn that computes until `go`, and an event set once it has begun."""
    begun = Event()

    def work() -> bytes:
        begun.set()
        assert go.wait(PATIENCE_SECONDS)
        return b""

    return work, begun


def away(go: Event) -> tuple[Callable[[], bytes], Event]:
    """Return the same for a turn that waits for another server."""
    work, begun = blocking_turn(go)

    def waits() -> bytes:
        with waiting():
            return work()

    return waits, begun


def submit(seats: Seats, tenant_id: str, work: Callable[[], bytes], *, is_question: bool = False) -> Future[bytes]:
    with acting_as(Tenant(tenant_id, "anna")):
        return seats.submit(work, is_question=is_question)


def submit_for(seats: Seats, sender: str, work: Callable[[], bytes]) -> Future[bytes]:
    """Submit the turn of a visitor whose sender this is; empty: of the tenant's own server."""
    with acting_as(Tenant("acme", "v", site="shop", sender=sender)):
        return seats.submit(work)


def noted(order: list[str], name: str) -> Callable[[], bytes]:
    """Return a turn that only notes its name."""
    return lambda: order.append(name) or b""  # type: ignore[func-returns-value]


def result(future: Future[bytes]) -> bytes:
    return future.result(PATIENCE_SECONDS)


def test_who_waits_for_somebody_else_holds_no_seat(go: Event) -> None:
    seats = Seats(1, 8)
    work, begun = away(go)
    slow = [submit(seats, "slow", work) for _ in range(4)]
    assert begun.wait(PATIENCE_SECONDS)
    assert result(submit(seats, "quick", lambda: b"answer")) == b"answer"
    assert not any(future.done() for future in slow)
    go.set()
    assert [result(future) for future in slow] == [b""] * 4
    seats.close()


def test_a_seat_is_left_once_however_many_threads_of_a_turn_wait(go: Event) -> None:
    seats, computing, most, lock = Seats(1, 4), [0], [0], Lock()

    def computes() -> None:
        with lock:
            computing[0] += 1
            most[0] = max(most[0], computing[0])
        with lock:
            computing[0] -= 1

    def work() -> bytes:
        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(copy_context().run, away(go)[0]) for _ in range(2)]:
                future.result()
        computes()
        return b""

    turns = [submit(seats, "acme", work) for _ in range(3)]
    go.set()
    wait(turns, PATIENCE_SECONDS)
    assert [result(turn) for turn in turns] == [b""] * 3
    assert most == [1]
    assert result(submit(seats, "acme", lambda: b"still one")) == b"still one"
    seats.close()


def test_a_seat_is_kept_for_whoever_has_none(go: Event) -> None:
    seats = Seats(1, 8)
    starts = [blocking_turn(go) for _ in range(3)]
    turns = [
        submit(seats, tenant_id, work) for tenant_id, (work, _) in zip(("busy", "busy", "new"), starts, strict=True)
    ]
    assert starts[0][1].wait(PATIENCE_SECONDS)
    assert starts[2][1].wait(PATIENCE_SECONDS)
    assert not starts[1][1].is_set()
    go.set()
    assert [result(turn) for turn in turns] == [b""] * 3
    seats.close()


def test_a_free_seat_goes_to_the_tenant_with_the_fewest(go: Event) -> None:
    seats, order = Seats(2, 8), list[str]()
    starts = [blocking_turn(go) for _ in range(3)]
    turns = [
        submit(seats, tenant_id, work) for tenant_id, (work, _) in zip(("busy", "busy", "new"), starts, strict=True)
    ]
    for _, begun in starts:
        assert begun.wait(PATIENCE_SECONDS)

    crowd = [submit(seats, "busy", noted(order, "busy")) for _ in range(5)]
    turns += [submit(seats, "quiet", noted(order, "quiet")), *crowd]
    go.set()
    wait(turns, PATIENCE_SECONDS)
    assert order.index("quiet") <= 2
    seats.close()


def test_an_address_with_many_visitors_delays_no_other_customer(go: Event) -> None:
    seats, order = Seats(1, 1, each=1), list[str]()

    work, begun = blocking_turn(go)
    turns = [submit_for(seats, "192.0.2.1", work)]
    assert begun.wait(PATIENCE_SECONDS)
    turns += [submit_for(seats, "192.0.2.1", noted(order, f"crowd-{number}")) for number in range(5)]
    turns.append(submit_for(seats, "192.0.2.2", noted(order, "customer")))
    turns += [submit_for(seats, "", noted(order, "server")) for _ in range(2)]
    go.set()
    assert [result(turn) for turn in turns] == [b""] * 9
    assert order == ["crowd-0", "customer", "server", "crowd-1", "server", "crowd-2", "crowd-3", "crowd-4"]
    seats.close()


def test_a_server_that_asks_for_many_passes_nobody_for_ever(go: Event) -> None:
    seats, order = Seats(2, 2, each=2), list[str]()

    (first, begun), (second, begun_too) = blocking_turn(go), blocking_turn(once := Event())
    turns = [submit_for(seats, "office", first), submit_for(seats, "", second)]
    assert begun.wait(PATIENCE_SECONDS)
    assert begun_too.wait(PATIENCE_SECONDS)
    turns += [submit_for(seats, "", noted(order, "server")), submit_for(seats, "office", noted(order, "office"))]
    turns += [submit_for(seats, "", noted(order, "server")) for _ in range(3)]
    once.set()
    wait(turns[1:], PATIENCE_SECONDS)
    assert order == ["server", "office", "server", "server", "server"]
    go.set()
    assert [result(turn) for turn in turns] == [b""] * 7
    seats.close()


def test_a_sender_with_turns_at_work_is_passed(go: Event) -> None:
    seats, order = Seats(2, 2, each=2), list[str]()

    (first, begun), (second, begun_too) = blocking_turn(go), blocking_turn(once := Event())
    turns = [submit_for(seats, "crowd", first), submit_for(seats, "crowd", second)]
    assert begun.wait(PATIENCE_SECONDS)
    assert begun_too.wait(PATIENCE_SECONDS)
    turns += [submit_for(seats, "crowd", noted(order, "crowd")), submit_for(seats, "other", noted(order, "other"))]
    once.set()
    wait(turns[1:], PATIENCE_SECONDS)
    assert order == ["other", "crowd"]
    go.set()
    assert [result(turn) for turn in turns] == [b""] * 4
    seats.close()


def test_new_tenants_do_not_pass_a_turn_that_comes_back(go: Event) -> None:
    """As with a thousand tenants, where nearly every question comes from one without a turn at work."""
    seats, back, has_left, finished = Seats(1, 8), Event(), Event(), Event()

    def early() -> bytes:
        with waiting():
            has_left.set()
            assert back.wait(PATIENCE_SECONDS)
        finished.set()
        return b""

    turns = [submit(seats, "early", early)]
    assert has_left.wait(PATIENCE_SECONDS)
    held = [blocking_turn(go) for _ in range(2)]
    turns += [submit(seats, f"held-{at}", work) for at, (work, _) in enumerate(held)]
    for _, begun in held:
        assert begun.wait(PATIENCE_SECONDS)
    back.set()
    wait_until(lambda: "early" in seats._lines)
    new = [submit(seats, f"new-{at}", lambda: b"after" if finished.wait(2) else b"before") for at in range(2)]
    go.set()
    wait([*turns, *new], PATIENCE_SECONDS)
    assert [result(one) for one in new] == [b"after"] * 2
    seats.close()


def test_a_tenant_leaves_threads_for_others(go: Event) -> None:
    seats = Seats(2, 8)
    starts = [away(go) for _ in range(20)]
    turns = [submit(seats, "slow", work) for work, _ in starts]
    for _, begun in starts[:6]:
        assert begun.wait(PATIENCE_SECONDS)
    assert result(submit(seats, "quick", lambda: b"answer")) == b"answer"
    assert not starts[6][1].is_set()
    go.set()
    wait(turns, PATIENCE_SECONDS)
    seats.close()


def test_a_tenant_may_be_held_to_one_at_a_time(go: Event) -> None:
    seats = Seats(4, 4, each=1)
    first, begun = blocking_turn(go)
    second, begun_after = blocking_turn(go)
    turns = [submit(seats, "busy", work) for work in (first, second)]
    assert begun.wait(PATIENCE_SECONDS)
    assert result(submit(seats, "quiet", lambda: b"answer")) == b"answer"
    assert not begun_after.is_set()
    go.set()
    wait(turns, PATIENCE_SECONDS)
    assert begun_after.is_set()
    seats.close()


def test_a_list_is_worked_through_in_order() -> None:
    seats = Seats(2, 2)
    assert list(seats.map(str, range(50))) == [str(number) for number in range(50)]
    seats.close()


def test_a_cancelled_turn_never_begins_and_a_failed_one_frees_its_seat(go: Event) -> None:
    seats = Seats(1, 1)
    work, begun = blocking_turn(go)
    running = submit(seats, "acme", work)
    assert begun.wait(PATIENCE_SECONDS)
    dropped = submit(seats, "acme", lambda: pytest.fail("it began"))
    assert dropped.cancel()
    failing = submit(seats, "acme", lambda: bytes(-1))
    go.set()
    assert result(running) == b""
    with pytest.raises(ValueError, match="negative"):
        result(failing)
    assert result(submit(seats, "acme", lambda: b"answer")) == b"answer"
    seats.close()


def test_closing_finishes_what_has_begun_and_drops_the_rest(go: Event) -> None:
    seats = Seats(1, 4)
    work, begun = blocking_turn(go)
    running = submit(seats, "acme", work)
    assert begun.wait(PATIENCE_SECONDS)
    queued = submit(seats, "acme", lambda: b"never")
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(seats.close)
        with pytest.raises(CancelledError):
            result(queued)
        go.set()
        closing.result(PATIENCE_SECONDS)
    assert result(running) == b""
    assert submit(seats, "acme", lambda: b"never").cancelled()


def test_nobody_gets_all_of_something_bounded() -> None:
    taken = 0
    while may_take_more(taken, 64 - taken):
        taken += 1
    assert taken == 48
    assert may_take_more(0, 16)
    assert may_take_more(0, 1)


def test_only_turns_that_compute_or_are_about_to_count_as_questions(go: Event) -> None:
    seats = Seats(1, 3)
    waits, is_away = away(go)
    waiting_turn = submit(seats, "mallory", waits, is_question=True)
    assert is_away.wait(PATIENCE_SECONDS)
    wait_until(lambda: not fairness.has_questions())
    computes, has_begun = blocking_turn(go)
    in_background = submit(seats, "acme", computes)
    assert has_begun.wait(PATIENCE_SECONDS)
    assert not fairness.has_questions()
    queued = submit(seats, "acme", lambda: b"", is_question=True)
    assert fairness.has_questions()
    queued.cancel()
    go.set()
    wait([waiting_turn, in_background])
    wait_until(lambda: not fairness.has_questions())
    seats.close()
