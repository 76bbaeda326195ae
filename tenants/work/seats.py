"""Scheduler of turns: few compute at a time, many wait, and tenants share both fairly.

Threat: a tenant with slow tools or models, or with a thousand questions at once, delays the questions of all others. A
turn that waits for another server gives its seat at the processor to another turn. A free seat goes to the tenant with
the fewest seats, and one extra seat is reserved for tenants without any. The more turns a tenant has at work, the more
capacity must be free before it gets another. Its next turn is that of the visitor, or address, with the fewest at work:
an address with many visitors does not delay the other customers of a tenant. Other callers, such as a tenant's own
server, ask for many people: they take turns with the visitor or address that has the fewest.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import TypeVar

from tenants.core import context, fairness
from tenants.core.errors import NoTenant
from tenants.core.fair_semaphore import may_take_more

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Start:
    """Work that has not begun: `begin` says whether it still may, `run` does it and settles its future.

    :ivar is_counted: whether it counts as a question already: nothing but a seat keeps it from beginning.
    """

    begin: Callable[[], bool]
    run: Callable[[], None]
    cancel: Callable[[], bool]
    is_question: bool
    is_counted: bool


@dataclass(slots=True)
class _Line:
    """A tenant's waiting turns: those that come back from a wait, and, by sender, those that have not begun."""

    returning: deque[Event] = field(default_factory=deque)
    starting: dict[str, deque[_Start]] = field(default_factory=dict)


class Seats:
    """Runs work in threads, in the context of its caller and on behalf of the caller's tenant. Thread-safe.

    :param seats: how many compute at once, plus one for a tenant without a seat.
    :param threads: how many are at work at once, including those that wait for other servers.
    :param each: how many one tenant has at work at once; None: as many as leave capacity for others.
    :param name: prefix of the threads' names.
    """

    def __init__(self, seats: int, threads: int, *, each: int | None = None, name: str = "seat") -> None:
        self._kept = 1 if each is None else 0
        self._free = seats + self._kept
        self._idle = max(seats, threads)
        self._each = each
        self._pool = ThreadPoolExecutor(self._idle, thread_name_prefix=name)
        self._lines: dict[str, _Line] = {}
        self._at_work: Counter[str] = Counter()
        self._at_work_of: Counter[tuple[str, str]] = Counter()
        self._seats_of: Counter[str] = Counter()
        self._closed = False
        self._lock = Lock()

    def submit(self, work: Callable[[], T], *, sender: str = "", is_question: bool = False) -> Future[T]:
        """Run `work` once it is the tenant's turn. A cancelled future is never begun.

        :param sender: whose work it is, where the caller in context does not say it.
        :param is_question: pages and ingestion give way while it has a seat, or only a seat is missing.
        """
        try:
            caller = context.current()
            tenant_id, sender = caller.tenant_id, sender or caller.sender
        except NoTenant:
            tenant_id = ""
        future: Future[T] = Future()
        seated = partial(copy_context().run, self._seated, _Seat(self, tenant_id, is_question), work)

        def run() -> None:
            try:
                result = seated()
            except BaseException as error:
                self._leave(tenant_id, sender)
                future.set_exception(error)
            else:
                self._leave(tenant_id, sender)
                future.set_result(result)

        with self._lock:
            if self._closed:
                future.cancel()
                return future
            is_counted = is_question and self._may_begin(self._at_work[tenant_id])
            start = _Start(future.set_running_or_notify_cancel, run, future.cancel, is_question, is_counted)
            self._lines.setdefault(tenant_id, _Line()).starting.setdefault(sender, deque()).append(start)
            if is_counted:
                fairness.begin()
            self._fill()
        return future

    def map(self, work: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
        """Yield the result of `work` for each item, in order. All are queued when this returns."""
        futures = [self.submit(partial(work, item)) for item in items]
        return (future.result() for future in futures)

    def close(self) -> None:
        """Finish running work and cancel the rest."""
        with self._lock:
            self._closed = True
            waiting = [start for line in self._lines.values() for starts in line.starting.values() for start in starts]
            for line in self._lines.values():
                line.starting.clear()
        for start in waiting:
            start.cancel()
            if start.is_counted:
                fairness.end()
        self._pool.shutdown(wait=True)

    def release(self, tenant_id: str) -> None:
        """Give back a seat of this tenant."""
        with self._lock:
            self._vacate(tenant_id)
            self._fill()

    def regain(self, tenant_id: str) -> None:
        """Wait for a seat, ahead of the tenant's turns that have not begun."""
        seated = Event()
        with self._lock:
            self._lines.setdefault(tenant_id, _Line()).returning.append(seated)
            self._fill()
        seated.wait()

    def _seated(self, seat: "_Seat", work: Callable[[], T]) -> T:
        _SEAT.set(seat)
        try:
            return work()
        finally:
            seat.leave()

    def _fill(self) -> None:
        """Give the free seats away, each to the tenant with the fewest. Called with the lock."""
        while self._free and (tenant_id := self._next()) is not None:
            line = self._lines.pop(tenant_id)
            self._free -= 1
            self._seats_of[tenant_id] += 1
            if line.returning:
                line.returning.popleft().set()
            else:
                self._begin_next(tenant_id, line)
            if line.returning or line.starting:
                self._lines[tenant_id] = line

    def _next(self) -> str | None:
        able = (tenant_id for tenant_id, line in self._lines.items() if self._may_go(tenant_id, line))
        # Among tenants with equally few seats, the longest waiting one is next. Turns at work are not counted:
        # turns that come back from a wait would be passed by the new turns of other tenants.
        return min(able, key=self._seats_of.__getitem__, default=None)

    def _may_go(self, tenant_id: str, line: _Line) -> bool:
        if self._free <= self._kept and self._seats_of[tenant_id]:
            return False
        return bool(line.returning or (line.starting and self._may_begin(self._at_work[tenant_id])))

    def _may_begin(self, own: int) -> bool:
        return may_take_more(own, self._idle) if self._each is None else own < self._each and self._idle > 0

    def _begin_next(self, tenant_id: str, line: _Line) -> None:
        """Begin a turn of the sender with the fewest at work, of several with equally few the longest waiting one."""
        at_work = {sender: self._at_work_of[tenant_id, sender] for sender in line.starting}
        if "" in at_work:
            # It asks for many people, but must not keep a visitor waiting for ever.
            at_work[""] = min((count for sender, count in at_work.items() if sender), default=0)
        sender = min(at_work, key=at_work.__getitem__)
        starts = line.starting.pop(sender)
        start = starts.popleft()
        if starts:
            line.starting[sender] = starts
        if not start.begin():
            self._vacate(tenant_id)
            if start.is_counted:
                fairness.end()
            return
        if start.is_question and not start.is_counted:
            fairness.begin()
        self._idle -= 1
        self._at_work[tenant_id] += 1
        if sender:
            self._at_work_of[tenant_id, sender] += 1
        self._pool.submit(start.run)

    def _vacate(self, tenant_id: str) -> None:
        self._free += 1
        self._seats_of[tenant_id] -= 1
        if not self._seats_of[tenant_id]:
            del self._seats_of[tenant_id]

    def _leave(self, tenant_id: str, sender: str) -> None:
        with self._lock:
            self._idle += 1
            self._at_work[tenant_id] -= 1
            self._at_work += Counter()  # drops those that have none
            if sender:
                self._at_work_of[tenant_id, sender] -= 1
                self._at_work_of += Counter()
            self._fill()


class _Seat:
    """The seat of one turn, which may wait in several threads at once: it is left with the first and taken again after
    the last of them."""

    def __init__(self, seats: Seats, tenant_id: str, is_question: bool) -> None:
        self._seats = seats
        self._tenant_id = tenant_id
        self._is_question = is_question
        self._waits = 0
        self._over = False
        self._lock = Lock()

    @contextmanager
    def left(self) -> Iterator[None]:
        with self._lock:
            self._waits += 1
            if self._waits == 1 and not self._over:
                self._release()
        try:
            yield
        finally:
            with self._lock:
                self._waits -= 1
                if not self._waits and not self._over:
                    if self._is_question:
                        fairness.begin()
                    self._seats.regain(self._tenant_id)

    def leave(self) -> None:
        with self._lock:
            self._over = True
            if not self._waits:
                self._release()

    def _release(self) -> None:
        self._seats.release(self._tenant_id)
        if self._is_question:
            fairness.end()


_SEAT: ContextVar[_Seat | None] = ContextVar("opora_seat", default=None)


@contextmanager
def waiting() -> Iterator[None]:
    """Wrap a wait for another server: another turn may compute meanwhile."""
    seat = _SEAT.get()
    if seat is None:
        yield
        return
    with seat.left():
        yield
