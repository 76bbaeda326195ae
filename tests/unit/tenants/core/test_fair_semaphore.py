"""Permits that tenants take in turns."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import SimpleQueue

import pytest

from tenants.core.fair_semaphore import FairSemaphore

PATIENCE_SECONDS = 20.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


def take_all(semaphore: FairSemaphore, tenant_id: str, visitor: str = "") -> int:
    """Take permits until there are no more for this holder; return how many."""
    count = 0
    while semaphore.acquire((tenant_id, visitor)):
        count += 1
    return count


@pytest.mark.parametrize("permits", [1, 2, 4, 16])
def test_a_tenant_alone_takes_all_permits(permits: int) -> None:
    semaphore = FairSemaphore(permits)
    assert semaphore.acquire(("", ""))  # a call at the start, which belongs to no tenant
    semaphore.release(("", ""))
    assert take_all(semaphore, "acme") == permits


@pytest.mark.parametrize(("permits", "most"), [(1, 1), (2, 2), (4, 3), (16, 12)])
def test_a_tenant_with_neighbours_takes_three_quarters(permits: int, most: int) -> None:
    semaphore = FairSemaphore(permits)
    assert semaphore.acquire(("acme", ""))
    semaphore.release(("acme", ""))
    assert take_all(semaphore, "mallory") == most
    assert semaphore.acquire(("acme", "")) is (permits > most)


@pytest.mark.parametrize(("permits", "most"), [(1, 1), (2, 1), (4, 2), (16, 8)])
def test_a_visitor_takes_half(permits: int, most: int) -> None:
    semaphore = FairSemaphore(permits)
    assert take_all(semaphore, "acme", "v:1") == most
    assert semaphore.acquire(("acme", "v:2")) is (permits > most)


def test_calls_of_a_back_end_wait_behind_no_visitor_with_permits(pool: ThreadPoolExecutor) -> None:
    semaphore, back_end, visitor = FairSemaphore(4), ("acme", ""), ("acme", "v:1")
    assert semaphore.acquire(visitor)
    assert take_all(semaphore, "acme") == 3
    later = [pool.submit(semaphore.acquire, holder, lambda: PATIENCE_SECONDS) for holder in (visitor, back_end)]
    wait(later, 0.1)
    semaphore.release(back_end)
    assert later[1].result(PATIENCE_SECONDS)
    assert not later[0].done()
    semaphore.release(visitor)
    assert later[0].result(PATIENCE_SECONDS)


def test_a_free_permit_goes_to_the_tenant_with_the_fewest(pool: ThreadPoolExecutor) -> None:
    semaphore, granted = FairSemaphore(3), SimpleQueue[str]()

    def acquire(tenant_id: str) -> None:
        assert semaphore.acquire((tenant_id, ""), lambda: PATIENCE_SECONDS)
        granted.put(tenant_id)

    def queue(tenant_id: str) -> Future[None]:
        future = pool.submit(acquire, tenant_id)
        wait([future], 0.1)
        return future

    assert take_all(semaphore, "mallory") == 3
    waiting = [queue(tenant_id) for tenant_id in ("mallory", "mallory", "acme", "globex")]
    order = list[str]()
    for tenant_id in ("mallory", "mallory", "mallory", "acme"):
        semaphore.release((tenant_id, ""))
        order.append(granted.get(timeout=PATIENCE_SECONDS))
    assert order == ["acme", "globex", "mallory", "mallory"]
    wait(waiting)


def test_a_caller_that_gives_up_takes_no_permit() -> None:
    semaphore = FairSemaphore(1)
    assert semaphore.acquire(("acme", ""))
    assert not semaphore.acquire(("acme", ""), iter([0.05, 0.0]).__next__)
    semaphore.release(("acme", ""))
    assert semaphore.acquire(("mallory", ""))


def test_a_caller_that_is_interrupted_takes_no_permit() -> None:
    def interrupted() -> float:
        raise KeyboardInterrupt

    semaphore = FairSemaphore(1)
    assert semaphore.acquire(("acme", ""))
    with pytest.raises(KeyboardInterrupt):
        semaphore.acquire(("acme", ""), interrupted)
    semaphore.release(("acme", ""))
    assert semaphore.acquire(("mallory", ""))
